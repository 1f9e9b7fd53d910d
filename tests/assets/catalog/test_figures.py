"""Tables of losses, totals and languages add up, and figures out of the ordinary warn."""

from __future__ import annotations

import pytest

from assets.catalog.build import table_rows
from assets.catalog.quality import CHECKS, quality_checks, quality_rows
from assets.catalog.rows import read_state


@pytest.fixture(scope="module")
def rows(grown):
    root, settings = grown
    return table_rows(read_state(root, settings))


def test_what_rules_took_and_what_stayed_is_what_came_in(rows):
    for total in rows["stage_totals"]:
        taken = [
            row
            for row in rows["losses"]
            if (row["stage"], row["source"]) == (total["stage"], total["source"])
        ]
        stayed = total["documents_in"] - sum(row["documents"] for row in taken)
        if taken:
            assert taken[-1]["documents_left"] == stayed
            assert [row["documents"] for row in taken] == sorted(
                (row["documents"] for row in taken), reverse=True
            )
        if total["stage"] == "shards":
            assert total["documents"] <= total["documents_in"]
        elif total["stage"] != "documents":
            assert total["documents"] >= stayed  # long documents may be several
    assert {row["stage"] for row in rows["losses"]} == {"documents", "unique"}
    for row in rows["losses"]:
        assert 0 < row["share_of_stage"] <= 1
        # What was no document has no text.
        assert (row["bytes"] is not None) == (row["stage"] != "documents")
        assert row["is_loss"] == (row["rule"] != "unchanged")
    for row in rows["stage_totals"]:
        if row["stage"] in ("clean", "unique", "tokens"):
            assert None not in (row["characters"], row["bytes"], row["words"]), row


@pytest.mark.parametrize("stage", ["clean", "tokens"])
def test_languages_add_up_to_their_source(rows, stage):
    for total in rows["stage_totals"]:
        if total["stage"] != stage:
            continue
        own = [
            row
            for row in rows["language_statistics"]
            if (row["stage"], row["source"]) == (stage, total["source"])
        ]
        for name in ("documents", "characters", "bytes", "words", "tokens"):
            if total[name] is not None:
                assert sum(row[name] for row in own) == total[name], name
        for row in own:
            assert sum(row["lengths"].values()) == row["documents"]
            assert 0 < row["p10_length"] <= row["p50_length"] <= row["p99_length"]
            if stage == "tokens":
                assert 0 < row["unique_tokens"] <= row["tokens"]
                assert row["top_tokens"][0]["count"] >= row["tokens"] / row["unique_tokens"]


def test_a_chunked_plan_uses_every_position(rows):
    assert {row["utilization"] for row in rows["plans"]} == {1.0}


def token_row(value, tokens=5_000):
    return {"source": "wiki", "tokens": tokens, "characters_per_token": value}


def language_row(language, value):
    return {"source": "wiki", "language": language, "tokens": 5_000, "tokens_per_word": value}


@pytest.mark.parametrize(
    ("given", "warns"),
    [
        (([token_row(4.2)], [], [], []), None),
        (([token_row(1.4)], [], [], []), "characters_per_token of wiki is 1.4, below 1.5"),
        (([token_row(8.5)], [], [], []), "characters_per_token of wiki is 8.5, above 8"),
        (([token_row(1.4, tokens=999)], [], [], []), None),
        (([token_row(None)], [], [], []), None),
        (([], [language_row("en", 1.6)], [], []), None),
        (([], [language_row("en", 2.8)], [], []), "fertility of wiki, en is 2.8, above 2.7"),
        (([], [language_row("en", 0.5)], [], []), "fertility of wiki, en is 0.5, below 0.675"),
        (([], [language_row("zh", 20.0), language_row(None, 9.0)], [], []), None),
        (
            ([], [], [{"plan_id": "p", "current": True, "utilization": 0.89}], []),
            "utilization of p is 0.89, below 0.9",
        ),
        (([], [], [{"plan_id": "p", "current": False, "utilization": 0.1}], []), None),
        (
            ([], [], [], [loss := {"source": "wiki", "stage": "clean", "rule": "empty",
                                   "stage_documents": 20, "share_of_stage": 0.6, "is_loss": True}]),
            "rule_share of wiki, clean, empty is 0.6, above 0.5",
        ),
        (([], [], [], [{**loss, "stage_documents": 19}]), None),
        (([], [], [], [{**loss, "is_loss": False}]), None),
        (([], [], [], [{**loss, "share_of_stage": 0.5}]), None),
    ],
)  # fmt: skip
def test_a_figure_beyond_its_bounds_warns(given, warns):
    checks = quality_checks(quality_rows(*given))
    assert [check.name for check in checks] == list(CHECKS)
    assert [check.message for check in checks if not check.passed] == ([warns] if warns else [])
