"""With `after_dedup`, values that cleaning noted are cut out of what is kept, and nothing else."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest
from typing_extensions import override

from assets.cleaning.pii.find import find_pii
from assets.cleaning.text_column import text_array
from assets.dedup.masking import marks_after_dedup
from assets.dedup.unique import materialize_unique, read_unique
from assets.settings.cleaning import CleaningSettings
from assets.settings.dedup import RepeatedLinesSettings
from assets.settings.pii import PiiSettings
from assets.sources.landing_log import read_log
from tests.assets.dedup.small_corpus import SmallCorpus, article

PII = PiiSettings(after_dedup=True, replacements={"email": "<mail \u2709>", "phone": ""})


def noted(text: str) -> dict[str, object]:
    spans = find_pii(text_array([text]), PII).get(0, [])
    return {"text": text, "spans": [span._asdict() for span in spans]}


class MaskedCorpus(SmallCorpus):
    pii = PII

    @override
    def run(self):
        cleaning = CleaningSettings(pii=self.pii)
        settings = dataclasses.replace(self.settings, cleaning=cleaning)
        return materialize_unique(self.root, settings, read_log(self.root))

    def spans(self):
        return [
            (batch["text"][row].as_py(), batch["spans"][row].as_py())
            for clean, unique in self.parts()
            for batch in read_unique(self.root, clean, unique, ["text", "spans"])
            for row in range(batch.num_rows)
        ]


def test_kept_texts_are_read_with_marks_and_moved_spans(tmp_path):
    corpus = MaskedCorpus(str(tmp_path))
    first = f"\u00e9 bob@example.org {article(1)} (212) 555-0147 end"
    corpus.land({"wiki/a": [noted(first), noted(first), None, noted(article(2))]})
    report = corpus.run()
    masked = f"\u00e9 <mail \u2709> {article(1)}  end"
    assert corpus.kept() == [masked, article(2)]
    (text, spans), (_, none) = corpus.spans()
    assert none == []
    data = text.encode()
    assert [data[span["start"] : span["end"]].decode() for span in spans] == ["<mail \u2709>"]
    ledger = corpus.ledger().to_pylist()
    assert [(row["decision"], row["rule"], row["value"]) for row in ledger] == [
        ("modified", "pii_masked", 2.0),
        ("dropped", "exact_duplicate", 1.0),
        ("kept", None, None),
    ]
    assert report.by_source()["wiki"]["pii_replaced"] == 2
    assert report.by_source()["wiki"]["modified"] == 1
    assert "bob" not in str(ledger)


def test_a_value_in_a_cut_line_is_gone_with_it(tmp_path):
    footer = "Write to bob@example.org or call (212) 555-0147 for more of it"
    texts = [f"{article(number)}\n{footer}\nsee ann{number}@example.org" for number in range(4)]
    lines = RepeatedLinesSettings(max_count=1, bucket_documents=100)
    corpus = MaskedCorpus(str(tmp_path), dedup={"lines": lines}, minhash=None)
    corpus.land({"wiki/a": [noted(text) for text in texts]})
    corpus.run()
    for number, text in enumerate(corpus.kept()):
        assert "@" not in text
        assert article(number) in text
        assert text.count("<mail \u2709>") == 1
    assert Counter(corpus.ledger()["decision"].to_pylist()) == {"modified": 4}


@pytest.mark.parametrize("pii", [None, PiiSettings()])
def test_nothing_is_masked_twice(tmp_path, pii):
    assert marks_after_dedup(CleaningSettings(pii=pii)) is None
    corpus = MaskedCorpus(str(tmp_path))
    corpus.pii = pii
    text = f"|||EMAIL_ADDRESS||| {article(1)}"
    corpus.land({"wiki/a": [{"text": text, "spans": [{"start": 0, "end": 19, "kind": "email"}]}]})
    corpus.run()
    assert corpus.kept() == [text]
