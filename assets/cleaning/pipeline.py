"""Clean a batch of documents: the steps in their order, cheap ones first, first loss is final.

::

    profile   extract   normalise   empty   language   lines       rules
    web       html      yes         yes     yes        if wanted   gopher_quality, others if wanted
    text      -         yes         yes     yes        if wanted   gopher_quality, others if wanted
    code      -         -           yes     -          -           code, others if wanted
    none      -         -           yes     -          -           -

Last comes the masking of personal data, in every profile, if `cleaning.pii` asks for it.

Every document leaves with one row in `clean` and one in the ledger. A value that was measured is
stored whatever became of the document; what a lost document did not reach is null.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from assets.cleaning.batch import Batch
from assets.cleaning.pages.verdicts import PageVerdicts
from assets.cleaning.steps import (
    classifier,
    emptiness,
    languages,
    lines,
    normalising,
    pages,
    perplexity,
    personal_data,
    quality,
    repairing,
    urls,
)
from assets.settings.cleaning import CleaningSettings
from assets.settings.sources import SourceSettings

STEPS = (
    urls.STEP,
    pages.STEP,
    repairing.STEP,
    normalising.STEP,
    repairing.BLANK_LINES_STEP,
    emptiness.STEP,
    languages.STEP,
    lines.STEP,
    quality.STEP,
    perplexity.STEP,
    classifier.STEP,
    personal_data.STEP,
)
"""In the order in which they are done."""


def clean_table(
    documents: pa.Table,
    *,
    source: SourceSettings,
    cleaning: CleaningSettings,
    page_verdicts: PageVerdicts | None = None,
    root_url: str | None = None,
) -> tuple[pa.Table, pa.Table]:
    """Clean documents (schema `DOCUMENTS`) of one source.

    `page_verdicts` are those the root holds of the source's extractor; `root_url` is where models
    lie that the settings name by hash.

    Returns:
        The table `CLEAN` and the table `LEDGER`, one row per document each, in the same order. A
        document is `kept` if its text is unchanged, `modified` if its text was extracted or
        normalised, else `dropped` or `quarantined` with a null text.
    """
    batch = Batch.begin(
        documents,
        source=source,
        cleaning=cleaning,
        page_verdicts=page_verdicts,
        root_url=root_url,
    )
    for step in STEPS:
        step.apply(batch)
    return batch.clean_rows(), batch.verdicts.ledger(documents)


def pipeline_identity(source: SourceSettings, cleaning: CleaningSettings) -> dict[str, Any]:
    """Return what decides how documents of a source are cleaned, for the stage's fingerprint."""
    identity: dict[str, Any] = {}
    for step in STEPS:
        for name, value in step.identity(source, cleaning).items():
            assert name not in identity, f"two steps name {name} in the fingerprint"
            identity[name] = value
    return identity
