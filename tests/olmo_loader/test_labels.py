from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from olmo_loader import InstanceFilterConfig, build_train_dataloader
from olmo_loader.errors import ConfigurationError
from olmo_loader.labels import IGNORED, get_labels
from tests.olmo_loader.small_data import EOS, make_small

X = IGNORED
IDS = torch.tensor([[5, 6, 0, 8, 9, 0]])
LENS = torch.tensor([[3, 3]], dtype=torch.int32)


@pytest.mark.parametrize(
    ("fields", "options", "expected"),
    [
        ({}, {}, [6, 0, 8, 9, 0, X]),  # documents see each other: 8 can be learned
        ({"doc_lens": LENS}, {}, [6, 0, X, 9, 0, X]),
        ({"doc_lens": LENS}, {"loss_across_docs": True}, [6, 0, 8, 9, 0, X]),
        ({"doc_lens": LENS}, {"loss_on_eos": False, "eos_token_id": 0}, [6, X, X, 9, X, X]),
        ({}, {"separator_id": 8}, [6, 0, X, X, 0, X]),
        ({"label_mask": [1, 1, 1, 0, 1, 1]}, {}, [6, 0, X, 9, 0, X]),
        ({"label_mask": [0, 1, 1, 1, 1, 0]}, {}, [6, 0, 8, 9, X, X]),
        ({"attention_mask": [1, 1, 1, 1, 0.0, 0.0]}, {}, [6, 0, 8, X, X, X]),
        ({"instance_mask": [True]}, {}, [6, 0, 8, 9, 0, X]),
        ({"instance_mask": [False]}, {}, [X] * 6),
        ({"doc_lens": torch.tensor([[3, 2]], dtype=torch.int32)}, {}, [6, 0, X, 9, X, X]),
        (
            {"label_mask": None, "attention_mask": None, "instance_mask": None},
            {},
            [6, 0, 8, 9, 0, X],
        ),
    ],
)
def test_what_is_a_target(fields: dict[str, Any], options: dict[str, Any], expected: list[int]):
    batch: dict[str, Any] = {"input_ids": IDS, **fields}
    if isinstance(fields.get("label_mask"), list):
        batch["label_mask"] = torch.tensor([fields["label_mask"]], dtype=torch.bool)
    if isinstance(fields.get("attention_mask"), list):
        batch["attention_mask"] = torch.tensor([fields["attention_mask"]])
    if isinstance(fields.get("instance_mask"), list):
        batch["instance_mask"] = torch.tensor(fields["instance_mask"])
    labels = get_labels(batch, **options)
    assert labels.tolist() == [expected]
    assert labels.dtype == torch.int64
    assert IDS.tolist() == [[5, 6, 0, 8, 9, 0]]  # untouched


def test_options_that_need_more():
    with pytest.raises(ConfigurationError, match="needs doc_lens"):
        get_labels({"input_ids": IDS}, loss_across_docs=False)
    with pytest.raises(ConfigurationError, match="needs eos_token_id"):
        get_labels({"input_ids": IDS}, loss_on_eos=False)


def olmo_labels(batch: dict[str, Any]) -> torch.Tensor:
    """OLMo's rule in words: mask ids, drop the first column."""
    labels: torch.Tensor = batch["input_ids"].clone()
    labels[~batch["label_mask"]] = IGNORED
    labels[batch["attention_mask"] == 0] = IGNORED
    labels[~batch["instance_mask"]] = IGNORED
    return labels[:, 1:]


def test_without_document_masking_it_is_olmo_s(tmp_path: Path):
    data = make_small(tmp_path / "dataset")
    data.take_down([(data.records[0]["shard"], 3, 60)])
    data.publish()
    options: dict[str, Any] = {
        "generate_attention_mask": True,
        "instance_filter_config": InstanceFilterConfig(repetition_max_count=3),
    }
    for batch in build_train_dataloader(data.folder, global_batch_size=8, **options):
        assert torch.equal(get_labels(batch)[:, :-1], olmo_labels(batch))


def test_every_document_of_a_data_set_is_learned_but_for_its_first_token(tmp_path: Path):
    data = make_small(tmp_path / "dataset")
    for batch in build_train_dataloader(
        data.folder, global_batch_size=8, generate_doc_lengths=True
    ):
        labels, ids = get_labels(batch), batch["input_ids"]
        ends = ids == EOS
        ends[:, -1] = True
        assert ((labels == IGNORED) == ends).all()
        assert torch.equal(labels[:, :-1][~ends[:, :-1]], ids[:, 1:][~ends[:, :-1]])
