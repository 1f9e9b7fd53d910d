from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from olmo_loader import build_eval_dataloader, build_train_dataloader
from olmo_loader.errors import ConfigurationError
from olmo_loader.label_mask_file import LabelMaskFile
from olmo_loader.verify import verify_dataset
from tests.olmo_loader.small_data import SmallDataset, make_documents, writer


def test_the_file_begins_with_the_first_token_that_does_not_count(tmp_path):
    mask = LabelMaskFile(tmp_path / "mask")
    mask.append(None, 3)
    mask.append(np.ones(2, bool), 2)
    assert not (tmp_path / "mask").exists()
    mask.append(np.array([1, 0]), 2)
    mask.append(None, 2)
    assert mask.file is not None
    mask.file.close()
    assert (tmp_path / "mask").read_bytes() == bytes([1, 1, 1, 1, 1, 1, 0, 1, 1])


@pytest.mark.parametrize("mask", [np.ones(3, bool), np.array([0, 2]), np.array([-1, 1])])
def test_what_is_no_mask_is_refused(tmp_path, mask):
    with pytest.raises(ConfigurationError, match="a label mask has 0 or 1 for each of 2 tokens"):
        LabelMaskFile(tmp_path / "mask").append(mask, 2)


def test_a_shard_that_is_given_up_leaves_no_mask(tmp_path):
    (document,) = make_documents(1, 1, longest=2)
    out = writer(tmp_path, "s")
    ids = np.zeros((1, 16), np.uint8)
    out.append(document, np.zeros(1, int), ids, ["p"], [0], np.zeros(len(document), bool))
    out.abort()
    assert list(tmp_path.iterdir()) == []


def test_loaders_read_the_masks_of_shards_that_have_them(tmp_path: Path):
    data = SmallDataset(tmp_path / "dataset")
    masked = data.add_shard("books", 1, 40, mask_every=5)
    plain = data.add_shard("wiki", 2, 40)
    data.add_shard("books", 3, 20, split="validation", mask_every=3)
    data.publish()
    assert set(masked["sidecars"]) - set(plain["sidecars"]) == {".mask"}
    assert list(verify_dataset(data.folder)) == []
    loader = build_train_dataloader(data.folder, global_batch_size=4, num_threads=0)
    whole = masked["n_tokens"] // 16
    count = 0
    for batch in loader:
        for index, mask in zip(batch["index"].tolist(), batch["label_mask"].numpy(), strict=True):
            places = np.arange(index * 16, index * 16 + 16)
            expected = places % 5 != 0 if index < whole else np.ones(16, bool)
            assert np.array_equal(mask, expected)
            count += index < whole
    assert count >= whole
    evaluated = next(iter(build_eval_dataloader(data.folder, batch_size=1, shuffle=False)))
    assert np.array_equal(evaluated["label_mask"].numpy()[0], np.arange(16) % 3 != 0)
