from __future__ import annotations

from pathlib import Path

import numpy as np

from olmo_loader import MemMapDataset
from olmo_loader.__main__ import main
from olmo_loader.data_place import ReadingOptions
from olmo_loader.published import open_published
from olmo_loader.tools.boundaries import count_differences
from tests.olmo_loader.small_data import EOS, SmallDataset


def test_without_a_difference_there_is_none(tmp_path: Path, capsys):
    data = SmallDataset(tmp_path / "dataset")
    data.add_shard("books", 1, 60)
    data.publish()
    (row,) = count_differences(open_published(data.folder))
    assert (row.without_eos, row.eos_inside, row.differing) == (0, 0, 0)
    assert row.documents > 0
    assert main(["stats", str(data.folder), "--boundaries"]) == 0
    assert "without_eos" in capsys.readouterr().out


def test_differences_are_counted_per_source_as_doc_lens_tell(tmp_path: Path):
    data = SmallDataset(tmp_path / "dataset")
    for source, seed in (("books", 1), ("wiki", 2)):
        data.add_shard(source, seed, 60)
        path = data.folder / data.records[-1]["shard"]
        ids = np.fromfile(path, np.uint16)
        ends = np.flatnonzero(ids == EOS)
        if source == "wiki":  # one end lost, two found where no document ends
            ids[ends[4]] = 7
            ids[[ends[8] - 2, ends[20] - 1]] = EOS
            ids.tofile(path)
    data.publish()
    opened = open_published(data.folder, reading=ReadingOptions(checksums="off"))
    books, wiki = count_differences(opened)
    assert (books.source, books.differing) == ("books", 0)
    lengths = {}
    for boundaries in ("eos", "stored"):
        dataset = MemMapDataset(
            *opened.paths,
            chunk_size=16,
            memmap_dtype=np.uint16,
            generate_doc_lengths=True,
            eos_token_id=EOS,
            doc_boundaries=boundaries,
            reader=opened.reader,
        )
        lengths[boundaries] = [dataset[n]["doc_lens"].tolist() for n in range(len(dataset))]
    pairs = list(zip(lengths["eos"], lengths["stored"], strict=True))
    assert wiki.differing == sum(eos != stored for eos, stored in pairs)
    assert wiki.documents + books.documents == sum(len(stored) - 1 for _, stored in pairs)
    assert 0 < wiki.without_eos + wiki.eos_inside <= 3
