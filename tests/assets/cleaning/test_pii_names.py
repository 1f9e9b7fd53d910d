"""Names of people are masked by an installed model of the list, and by nothing else."""

from __future__ import annotations

import pytest

from assets.cleaning.pii import names as pii_names
from assets.cleaning.pii.find import find_pii, mask_texts
from assets.cleaning.text_column import text_array
from assets.errors import ConfigurationError
from assets.settings.pii import NameSettings, PiiSettings

NAMES = PiiSettings(kinds=("email",), names=NameSettings(max_characters=1_000))
FILLER = "The council of the town met on the first day of the month to talk about the roads. "


def test_names_are_found_in_bytes_of_the_text_and_of_long_ones_in_pieces():
    text = (
        "Gr\u00fc\u00dfe! "
        + FILLER
        + "Barack Obama wrote to Angela Merkel (angela.merkel@example.org). "
        + FILLER * 30
        + "Then John Smith left."
    )
    texts = text_array(["", text, None])
    found = find_pii(texts, NAMES)
    data = text.encode()
    said = [(span.kind, data[span.start : span.end].decode()) for span in found[1]]
    assert set(found) == {1}
    assert {("name", "Barack Obama"), ("name", "Angela Merkel"), ("name", "John Smith")} <= set(
        said
    )
    assert ("email", "angela.merkel@example.org") in said
    masked = mask_texts(texts, found, NAMES).texts.to_pylist()
    assert "Obama" not in masked[1]
    assert "|||NAME||| wrote to |||NAME||| (|||EMAIL_ADDRESS|||)" in masked[1]
    assert found == find_pii(texts, NAMES)


def test_what_enters_the_fingerprint_names_library_and_model():
    said = pii_names.name_model_version(NameSettings())
    assert said.startswith("spacy 3.")
    assert "en_core_web_sm 3." in said


def test_only_modules_of_the_list_are_imported(monkeypatch):
    imported: list[str] = []
    monkeypatch.setattr("importlib.import_module", imported.append)
    monkeypatch.setattr(pii_names, "_PACKAGES", {"en_core_web_sm": (("gone", "gone-package"),)})
    pii_names._load.cache_clear()
    with pytest.raises(ConfigurationError, match=r"pip install '\.\[names\]'"):
        find_pii(text_array(["x"]), NAMES)
    assert imported == []
