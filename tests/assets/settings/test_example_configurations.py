"""The example configurations are ones: nothing in them is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from assets.cleaning.rule_groups.order import GROUPS
from assets.settings.load import load_settings

CONFIGS = Path(__file__).parents[3] / "configs"


def test_the_example_of_all_rules_enables_them():
    settings = load_settings(CONFIGS / "web_rules.yaml")
    rules = settings.cleaning.rules
    on = {group.name for group in GROUPS if getattr(rules, group.name).enabled}
    assert {"gopher_quality", "gopher_repetition", "fineweb", "shares", "characters"} <= on
    assert rules.urls.domains is not None
    assert Path(rules.urls.domains).is_file()


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.name)
def test_examples_can_be_loaded(path, monkeypatch):
    monkeypatch.setenv("OLMO_CORPUS", "corpora")
    assert load_settings(path).sources
