"""Masked tokens: exactly those that touch a span, from the part to the loader's batches."""

from __future__ import annotations

import dataclasses
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from assets.document import SPANS
from assets.errors import IntegrityError
from assets.manifest import Manifest
from assets.settings.tokens import ShardingSettings, TokenizerSettings
from assets.sharding.index import ShardIndex
from assets.sharding.shards import materialize_shards
from assets.tokenizing.encode import EncodingRules, encode_texts
from assets.tokenizing.engine import Sample, load_engine
from assets.tokenizing.label_masks import SpanMasker
from assets.tokenizing.token_bytes import token_bytes
from assets.tokenizing.tokenizer import load_tokenizer
from assets.tokenizing.tokens import materialize_tokens
from assets.tokenizing.train import materialize_tokenizer
from olmo_loader.verify_shard import verify_shard
from tests.assets.tokenizing.kept_root import EOS, KeptRoot
from tests.shared_data import shared_folder

TEXT = "Write to |||EMAIL||| or call |||PHONE|||, naïve 中文 e\u0301 <|endoftext|> end."
NAMES = ("allenai_dolma2.json", "allenai_gpt-neox-olmo-dolma-v1_5.json")


def loaded(name):
    data = shared_folder("tokenizers", name).read_bytes()
    return load_tokenizer(data, eos_token="<|endoftext|>", pad_token=None, where=name)


@pytest.fixture(scope="module", params=NAMES)
def real(request):
    tokenizer = loaded(request.param)
    return tokenizer, load_engine(tokenizer.data, tokenizer.reference, wanted="fastokens")


def spans_of(*items):
    return pa.array(
        [rows and [dict(zip(("start", "end", "kind"), row, strict=True)) for row in rows]
         for rows in items],
        SPANS,
    )  # fmt: skip


def masked(real, text, spans, kinds=("*",), **rules):
    tokenizer, engine = real
    (found,) = encode_texts(
        tokenizer,
        engine,
        pa.array([text], pa.large_string()),
        rules=EncodingRules(**rules),
        sample=Sample("x"),
    )
    masker = SpanMasker(kinds, token_bytes(tokenizer), tokenizer.reference)
    return found[1], masker.find(found[0], spans_of(spans), found[1])


def span_of(text, words, kind="pii"):
    start = len(text[: text.index(words)].encode())
    return (start, start + len(words.encode()), kind)


def test_the_bytes_of_ids_are_those_of_the_reference(real):
    tokenizer, _ = real
    table = token_bytes(tokenizer)
    assert table is not None
    ids = np.array(tokenizer.reference.encode(TEXT, add_special_tokens=False).ids)
    expected = tokenizer.reference.normalizer
    normal = TEXT if expected is None else expected.normalize_str(TEXT)
    assert table.decode(ids) == normal.encode()
    assert table.decode(ids[:0]) == b""
    with pytest.raises(IntegrityError, match="is not in a vocabulary of"):
        table.decode(np.array([tokenizer.vocab_size]))


@hypothesis_settings(max_examples=40, deadline=None)
@given(
    text=st.text(alphabet="ab \né中e\u0301😀|.1", min_size=1, max_size=30),
    first=st.integers(0, 29),
    count=st.integers(1, 10),
)
def test_a_token_is_masked_if_it_holds_a_byte_of_the_span(real, text, first, count):
    wanted = text[first : first + count]
    if not wanted or unicodedata.normalize("NFC", text) != text:
        return  # what a normalizer joins has a test of its own
    start = len(text[:first].encode())
    end = start + len(wanted.encode())
    encoded, found = masked(real, text, [(start, end, "pii")])
    table = token_bytes(real[0])
    assert table is not None
    expected, position = [], 0
    for number, token in enumerate(encoded.flat.ids.tolist()):
        size = len(table.decode(np.array([token])))
        if position < end and position + size > start:
            expected.append(number)
        position += size
    assert position == len(text.encode())
    tokens = [n for item in found.ranges[0].as_py() for n in range(item["start"], item["end"])]
    assert tokens == expected
    assert found.total == len(expected) == found.by_kind["pii"]


def test_a_text_that_the_normalizer_changes_is_masked_by_the_reference_offsets(real):
    text = "before e\u0301e\u0301 secret after"
    encoded, found = masked(real, text, [span_of(text, "secret")])
    (item,) = found.ranges[0].as_py()
    ids = encoded.flat.ids[item["start"] : item["end"]].tolist()
    assert real[0].reference.decode(ids).strip() == "secret"


def test_kinds_are_named_or_begin_alike(real):
    spans = [span_of(TEXT, "|||EMAIL|||", "pii_email"), span_of(TEXT, "naïve", "word")]
    for kinds, expected in (
        (("pii_*",), {"pii_email"}),
        (("word", "other"), {"word"}),
        (("*",), {"pii_email", "word"}),
        (("pii",), set()),
    ):
        _, found = masked(real, TEXT, spans, kinds)
        assert set(found.by_kind) == expected
        assert (found.total > 0) == bool(expected)


def test_boilerplate_lines_are_masked_where_they_are_named(real):
    text = "A line of prose to learn.\n1.2k likes\nMenu\n\nMore prose é, in full.\nread more..."
    found, result = masked(real, text, None, kinds=("boilerplate",))
    table = token_bytes(real[0])
    assert table is not None
    (ranges,) = result.ranges.to_pylist()
    pieces = [table.decode(found.ids[item["start"] : item["end"]]) for item in ranges]
    joined = b"|".join(pieces)
    for line in (b"1.2k likes", b"Menu", b"read more..."):
        assert line in joined
    assert b"prose" not in joined
    assert result.by_kind == {"boilerplate": result.total}
    assert masked(real, text, None, kinds=("*",))[1].total == 0


def test_blank_lines_are_no_boilerplate_whatever_ends_lines(real):
    lines = [
        "A line of prose.",
        "",
        "More of it, in full.",
        "  ",
        "Menu",
        "read more...",
        "",
        "End it.",
    ]
    table = token_bytes(real[0])
    assert table is not None
    for end in ("\n", "\r\n"):
        found, result = masked(real, end.join(lines), None, kinds=("boilerplate",))
        (ranges,) = result.ranges.to_pylist()
        pieces = [table.decode(found.ids[item["start"] : item["end"]]) for item in ranges]
        assert [piece.split() for piece in pieces] in (
            [[b"Menu"], [b"read", b"more..."]],
            [[b"Menu", b"read", b"more..."]],
        )


def test_boilerplate_and_spans_of_cleaning_are_masked_together(real):
    text = "Write to |||EMAIL||| if you like.\nMENU"
    _, both = masked(
        real, text, [span_of(text, "|||EMAIL|||", "email")], kinds=("email", "boilerplate")
    )
    assert set(both.by_kind) == {"email", "boilerplate"}
    assert both.total == sum(both.by_kind.values())


def test_pieces_of_a_split_document_have_their_own_ranges(real):
    spans = [span_of(TEXT, "|||EMAIL|||"), span_of(TEXT, "call |||PHONE|||, naïve")]
    _, whole = masked(real, TEXT, spans)
    plain = {n for item in whole.ranges[0].as_py() for n in range(item["start"], item["end"])}
    encoded, split = masked(real, TEXT, spans, max_document_tokens=6, long_documents="split")
    found = {
        first + n
        for first, ranges in zip(encoded.firsts.tolist(), split.ranges.to_pylist(), strict=True)
        for item in ranges
        for n in range(item["start"], item["end"])
    }
    assert found == plain
    assert split.total == whole.total


def test_an_empty_span_masks_nothing_and_a_span_outside_the_text_is_an_error(real):
    _, found = masked(real, "a text", [(2, 2, "pii")])
    assert found.ranges.to_pylist() == [[]]
    with pytest.raises(IntegrityError, match="bytes 2 to 99 of a text of 6 bytes"):
        masked(real, "a text", [(2, 99, "pii")])


def land_masked(folder: Path, order: Any) -> tuple[KeptRoot, Any]:
    kept = KeptRoot(folder)
    columns: dict[str | None, Any] = {
        "a b c d": {"spans": [{"start": 2, "end": 5, "kind": "email"}]},
        "e f": {"spans": [{"start": 0, "end": 1, "kind": "phone"}]},
    }
    kept.land({("s", "x"): ["a b", "a b c d", "g", "e f"]}, columns=columns)
    settings = kept.settings(
        sharding=ShardingSettings(max_tokens=7, min_tokens=0, document_order=order)
    )
    wanted = dataclasses.replace(settings.tokenizer, mask_spans=("email",))
    settings = dataclasses.replace(settings, tokenizer=wanted)
    materialize_tokenizer(kept.root, settings, kept.log)
    materialize_tokens(kept.root, settings, kept.log)
    materialize_shards(kept.root, settings, kept.log)
    return kept, settings


@pytest.mark.parametrize("order", ["landing", "seeded"])
def test_a_shard_with_masked_tokens_has_a_mask_and_others_have_none(tmp_path, order):
    kept, _ = land_masked(tmp_path, order)
    (entry,) = Manifest.load(kept.root, "tokens").entries()
    assert entry.statistics["masked"] == {"email": 2}
    assert entry.statistics["masked_tokens"] == 2
    dataset, found = Path(kept.root.url) / "dataset", []
    for record in ShardIndex(kept.root).records:
        assert list(verify_shard(dataset, record)) == []
        ids = np.fromfile(dataset / record["shard"], "<u2")
        path = (dataset / record["shard"]).with_suffix(".mask")
        assert path.exists() == (".mask" in record["sidecars"]) == (1 in ids and 3 in ids)
        mask = np.fromfile(path, bool) if path.exists() else np.ones(len(ids), bool)
        assert mask.shape == ids.shape
        found += list(zip(ids.tolist(), mask.tolist(), strict=True))
    counted = [(0, 1), (1, 1), (7, 1), (0, 1), (1, 0), (2, 0), (3, 1), (7, 1), (6, 1), (7, 1)]
    assert sorted(found) == sorted([*counted, (4, 1), (5, 1), (7, 1)])


def test_a_damaged_mask_is_found(tmp_path):
    kept, _ = land_masked(tmp_path, "landing")
    dataset = Path(kept.root.url) / "dataset"
    (record,) = [r for r in ShardIndex(kept.root).records if ".mask" in r["sidecars"]]
    path = (dataset / record["shard"]).with_suffix(".mask")
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)
    assert any("sha256" in fault for fault in verify_shard(dataset, record))


def test_without_kinds_to_mask_no_byte_changes(tmp_path):
    kept = KeptRoot(tmp_path)
    kept.land({("s", "x"): ["a b"]})
    settings = kept.settings()
    materialize_tokenizer(kept.root, settings, kept.log)
    (entry,) = materialize_tokens(kept.root, settings, kept.log).entries
    assert "masked_tokens" not in entry.statistics
    assert "masked" not in kept.root.read_table(entry.objects["data"]).column_names
    assert TokenizerSettings(path="x", eos_token=EOS).mask_spans == ()
