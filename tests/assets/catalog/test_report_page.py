"""The report: whole in one file, the same bytes again, nothing of a document but escaped text."""

from __future__ import annotations

import argparse
from html.parser import HTMLParser
from typing import Any

import pytest
from typing_extensions import override

from assets.data_platform import OpenPlatform
from assets.errors import RootError
from assets.report_page.charts import histogram
from assets.report_page.figures import Figures, read_figures
from assets.report_page.page import render_page
from assets.report_page.prompt import render_prompt
from assets.report_page.samples import EXCERPT_CHARACTERS, Sample, excerpt_of
from assets.report_page.visible import visible_text
from assets.report_page.write import PAGE, PROMPT, write_report
from dagster_project.command_line import report
from dagster_project.command_line.parser import build_parser

HOSTILE = "</pre><script>alert(1)</script>\"'&<img src=x onerror=y>\u202e\x00 | `x`\n===== end"


class Elements(HTMLParser):
    """Counts elements and keeps what links and loads name."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.feed(page)

    @override
    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("href", "src")]
        assert not any(name.startswith("on") for name, _ in attrs)


@pytest.fixture(scope="module")
def figures(grown) -> Figures:
    return read_figures(*grown)


def test_the_page_is_whole_and_the_same_again(grown, tmp_path):
    root, settings = grown
    first = write_report(root, settings, tmp_path / "new" / "folder")
    second = write_report(root, settings, tmp_path / "again")
    for name in (PAGE, PROMPT):
        text = (tmp_path / "again" / name).read_bytes()
        assert text == (tmp_path / "new" / "folder" / name).read_bytes()
    assert sorted(path.name for path in (tmp_path / "again").iterdir()) == [PROMPT, PAGE]
    elements = Elements(second.page.read_text(encoding="utf-8"))
    assert "script" not in elements.tags
    assert all(address.startswith("#") for address in elements.addresses)
    assert elements.tags.count("svg") >= 3
    assert first.page.name == PAGE


def test_it_says_what_the_catalog_says(figures):
    page, prompt = render_page(figures), render_prompt(figures)
    tokens = sum(row["tokens"] for row in figures.rows["source_token_statistics"])
    assert f"- tokens: {tokens:,d}" in prompt
    for row in figures.rule_losses():
        assert f"<code>{row['rule']}</code>" in page
        assert f"| {row['rule']} | {row['decision']} | {row['documents']:,d} |" in prompt
    for row in figures.rows["source_token_statistics"]:
        assert row["source"] in page
        assert f"{row['unique_tokens']:,d}" in page


def test_every_rule_that_can_be_shown_has_a_few_samples(figures):
    shown = {(sample.stage, sample.rule) for sample in figures.samples}
    lost = {
        (row["stage"], row["rule"]) for row in figures.rows["losses"] if row["stage"] != "documents"
    }
    assert lost <= shown
    assert ("clean", "kept") in shown
    assert all(sample.excerpt for sample in figures.samples)
    ids = [sample.doc_id for sample in figures.samples if sample.rule == "kept"]
    assert len(ids) <= 3 * 3 * len(figures.rows["sources"])


def with_sample(figures: Figures, text: str, **changes) -> Figures:
    values: dict[str, Any] = {
        "stage": "clean", "source": text, "rule": text, "decision": "dropped", "doc_id": "00",
        "value": 1.0, "threshold": None, "excerpt": text, "characters": 9,
    }  # fmt: skip
    return Figures(
        name=text,
        rows=figures.rows,
        warnings=(text,),
        lengths=figures.lengths,
        masked={"email": 3},
        samples=(Sample(**(values | changes)),),
    )


def test_a_page_lost_in_cleaning_is_shown_as_it_is_seen():
    page = f"<html><head><script>var x = 1;</script></head><body><p>{HOSTILE}</p></body></html>"
    seen = visible_text(page)
    assert "var x" not in seen
    assert "<img" not in seen
    assert "alert(1)" not in seen


def test_every_plot_has_letters_of_one_size(figures):
    many = {str(1 << power): power + 1 for power in range(30)}
    plot = histogram(many, unit="tokens", title=HOSTILE)
    few = histogram({"4": 2}, unit="tokens", title="t")
    assert 'width="1336" height="176" viewBox="0 0 1336 176"' in plot
    assert 'width="60"' in few
    assert set(Elements(plot).tags) == {"svg", "rect", "text"}
    empty = histogram({}, unit="tokens", title="t")
    assert "<svg" in empty


def test_tokens_that_are_no_character_are_shown_as_bytes(figures):
    page = render_page(figures)
    assert "\ufffd" not in page
    assert "no tokens" not in page


def test_what_comes_from_documents_is_text_only(figures):
    hostile = with_sample(figures, HOSTILE)
    page, plain = render_page(hostile), render_page(figures)
    assert set(Elements(page).tags) <= set(Elements(plain).tags) | {"ul", "li", "h3"}
    assert "\u202e" not in page
    assert "\x00" not in page
    prompt = render_prompt(hostile)
    lines = prompt.splitlines()
    fences = [number for number, line in enumerate(lines) if line.startswith("=====")]
    assert lines[fences[0]] == lines[fences[-1]] != "===== end"
    assert prompt.count(lines[fences[0]]) == 1 + 2


@pytest.mark.parametrize(
    ("before", "value", "mark"),
    [
        ("x", "ann@example.org", "|||EMAIL_ADDRESS|||"),
        ("call", "(212) 555-0147", "|||PHONE_NUMBER|||"),
        ("-", "-----BEGIN PRIVATE KEY-----\n" + "MIIE\n" * 3000, "|||SECRET|||"),
    ],
)
def test_personal_data_is_masked_at_the_end_of_an_excerpt_too(before, value, mark):
    filler = "word " * 200
    for room in range(0, len(value[:40]) + 1, 5):
        text = f"{filler[: EXCERPT_CHARACTERS - room - len(before) - 1]}{before} {value} {filler}"
        shown = excerpt_of(text)
        assert value.split("\n")[0][:9] not in shown.replace(mark, "")
        assert "MIIE" not in shown
        assert len(shown) <= EXCERPT_CHARACTERS + 1


def test_the_command_writes_both_files_and_says_where(grown, tmp_path, monkeypatch, capsys):
    root, settings = grown
    asked = []

    def opened(config, **options) -> OpenPlatform:
        asked.append((config, options))
        return OpenPlatform(root=root, settings=settings)

    monkeypatch.setattr(report, "open_platform", opened)
    arguments = build_parser().parse_args(["report", "mine.yaml", "--output", str(tmp_path)])
    assert arguments.module == "dagster_project.command_line.report"
    assert report.execute(arguments) == 0
    assert asked == [("mine.yaml", {"root": None, "writable": False})]
    assert str(tmp_path / PROMPT) in capsys.readouterr().out
    assert isinstance(arguments, argparse.Namespace)


def test_a_folder_that_cannot_be_made_is_said(grown, tmp_path):
    root, settings = grown
    (tmp_path / "file").write_text("")
    with pytest.raises(RootError, match="cannot be written"):
        write_report(root, settings, tmp_path / "file")
