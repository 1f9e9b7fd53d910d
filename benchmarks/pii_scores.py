"""Recall and precision of masking by kind, and of telephone numbers by country, on texts of others.

Two sets of labelled texts: values, decoys and places by Faker (from an environment of its own, see
`pii_faker.py`), and libphonenumber's own example numbers of every country in every format among
decoys. A value counts as found only in its exact bytes; whatever else is found counts as wrong.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import phonenumbers

from assets.cleaning.pii.find import find_pii
from assets.cleaning.text_column import text_array
from assets.settings.pii import PiiSettings

CHECKOUT = Path(__file__).resolve().parents[1]
FAKER = CHECKOUT / ".venv-bench-pii/bin/python"
LEAST = 0.95
MAIN = ("US", "GB", "DE", "FR", "IT", "ES")
_STYLES = {
    "E164": phonenumbers.PhoneNumberFormat.E164,
    "international": phonenumbers.PhoneNumberFormat.INTERNATIONAL,
    "national": phonenumbers.PhoneNumberFormat.NATIONAL,
}
_TYPES = range(5)
"""Fixed line, mobile, either, toll free, premium rate."""
_FRAMES = ("Call {} tomorrow.", "Tel. {}", "It says {} there.", "<td>{}</td>", '"phone": "{}",')
_DECOYS = "Order #{0} of 2021-03-04, version 3.{1}.2, ISBN 978-0-306-40615-7, pages 120-135."


class Text(NamedTuple):
    """A text, what is in it, and which numbers it may be asked for by."""

    text: str
    spans: list[tuple[int, int, str]]
    """(start, end, kind) in UTF-8 bytes."""
    region: str
    group: str


class Score(NamedTuple):
    """How many values there are, were found, and how many finds were none."""

    values: Counter[str]
    found: Counter[str]
    wrong: Counter[str]


def faker_texts(count: int) -> list[Text]:
    """Return texts made by Faker in its own environment."""
    command = [str(FAKER), str(CHECKOUT / "benchmarks/pii_faker.py"), "--texts", str(count)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    items = [json.loads(line) for line in lines]
    return [
        Text(
            item["text"],
            [(start, end, kind) for start, end, kind, _ in item["spans"]],
            item["locale"][3:],
            item["form"],
        )
        for item in items
    ]


def example_texts() -> Iterator[Text]:
    """Yield libphonenumber's example numbers of all countries, a format and a frame at a time."""
    for region in sorted(phonenumbers.SUPPORTED_REGIONS):
        for kind in _TYPES:
            number = phonenumbers.example_number_for_type(region, kind)
            if number is None:
                continue
            for order, (style, form) in enumerate(_STYLES.items()):
                value = phonenumbers.format_number(number, form)
                before, after = _FRAMES[(order + kind) % len(_FRAMES)].split("{}")
                text = before + value + after + "\n" + _DECOYS.format(7_000_000_000 + kind, order)
                start = len(before.encode())
                yield Text(text, [(start, start + len(value.encode()), "phone")], region, style)


def score(texts: Iterable[Text], regions: tuple[str, ...], by: str | None = None) -> Score:
    """Count values, finds and wrong finds by kind, or phones by a field of their text."""
    items = list(texts)
    found = find_pii(text_array([item.text for item in items]), PiiSettings(phone_regions=regions))
    result = Score(Counter(), Counter(), Counter())
    for number, item in enumerate(items):
        given = {(span.start, span.end, span.kind) for span in found.get(number, [])}
        expected = set(item.spans)
        for counts, spans in (
            (result.values, expected),
            (result.found, expected & given),
            (result.wrong, given - expected),
        ):
            kinds = [kind for _, _, kind in spans]
            if by is None:
                counts.update(kinds)
            else:
                counts[getattr(item, by)] += kinds.count("phone")
    return result


def report(title: str, result: Score, *, is_required: bool = True) -> bool:
    """Print one table; return whether each of its rows reaches what is required."""
    print(f"\n{title}\n{'':22s}{'values':>8s}{'recall':>9s}{'precision':>11s}")
    all_pass = True
    for name, count in sorted(result.values.items()):
        if not count:
            continue
        recall = result.found[name] / count
        precision = result.found[name] / max(1, result.found[name] + result.wrong[name])
        passes = min(recall, precision) >= LEAST
        all_pass &= passes
        verdict = ("PASS" if passes else "FAIL") if is_required else ""
        print(f"{name:22s}{count:8,d}{recall:9.3f}{precision:11.3f}  {verdict}")
    return all_pass or not is_required


def print_scores(count: int) -> bool:
    """Print all tables; return whether everything required holds."""
    results = []
    if FAKER.exists():
        texts = faker_texts(count)
        main = [item for item in texts if item.region in MAIN]
        results += [
            report("Faker's values, by kind", score(main, MAIN)),
            report("Faker's telephone numbers, by country", score(main, MAIN, by="region")),
            report("and by where they stand", score(main, MAIN, by="group")),
        ]
        for region in sorted({item.region for item in texts} - set(MAIN)):
            some = [item for item in texts if item.region == region]
            rest = score(some, (*MAIN, region), by="region")
            report(f"phone_regions with {region} (not required)", rest, is_required=False)
    else:
        print(f"Faker's texts are left out: there is no {FAKER}, `make bench-pii` installs it")
    examples = list(example_texts())
    main = [item for item in examples if item.region in MAIN]
    abroad = [item for item in examples if item.group != "national"]
    results += [
        report(
            "libphonenumber's examples of the default countries", score(main, MAIN, by="region")
        ),
        report(f"and of all {len(phonenumbers.SUPPORTED_REGIONS)}, with a +", score(abroad, MAIN)),
    ]
    return all(results)
