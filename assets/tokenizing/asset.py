"""The assets `tokenizer`, made once and pinned, and `token_documents`, every kept text as ids."""

import dagster as dg

from assets.asset_results import OWNERS, stage_run
from assets.data_platform import DataPlatform
from assets.dedup.asset import unique_documents
from assets.report import Shown
from assets.sources.landing_log import read_log
from assets.tokenizing.tokens import CODE_VERSION, materialize_tokens
from assets.tokenizing.train import TRAINING_VERSION, materialize_tokenizer, vocabulary_warning


@dg.asset(
    deps=[unique_documents],
    group_name="tokenizing",
    kinds={"python", "json"},
    owners=OWNERS,
    code_version=str(TRAINING_VERSION),
)
def tokenizer(
    context: dg.AssetExecutionContext, platform: dg.ResourceParam[DataPlatform]
) -> dg.MaterializeResult[None]:
    """Trained on kept documents of the first generation, or copied from a file; then frozen."""
    with stage_run(context) as run:
        opened = platform.open()
        pin = materialize_tokenizer(opened.root, opened.settings, read_log(opened.root))
        shown: dict[str, Shown] = {
            "vocab_size": pin.vocab_size,
            "dtype": pin.dtype,
            "eos_token": pin.eos_token,
            "eos_token_id": pin.eos_token_id,
            "pad_token_id": pin.pad_token_id,
            "size_bytes": pin.file.size,
        }
        warning = vocabulary_warning(pin)
        shown |= {} if warning is None else {"warning": warning}
        return run.plain_result(shown, digest=pin.sha256)


@dg.asset(
    deps=[unique_documents, tokenizer],
    group_name="tokenizing",
    kinds={"python", "parquet"},
    owners=OWNERS,
    code_version=str(CODE_VERSION),
)
def token_documents(
    context: dg.AssetExecutionContext, platform: dg.ResourceParam[DataPlatform]
) -> dg.MaterializeResult[None]:
    """One row per kept document: its ids, ended by one EOS."""
    with stage_run(context) as run:
        opened = platform.open()
        report = materialize_tokens(opened.root, opened.settings, read_log(opened.root))
        return run.result(opened.root, report)
