"""Telephone numbers are told by their plan, their form and the words around them."""

# ruff: noqa: E501 - tables of forms
from __future__ import annotations

import numpy as np
import phonenumbers
import pytest

from assets.cleaning.pii.phone_plans import international_plans, plan_of
from assets.cleaning.pii.phone_words import Said, said_before
from tests.assets.cleaning.test_pii import found_in

REGIONS = ("US", "GB", "DE", "FR", "IT", "ES", "BR", "AR", "RU", "JP", "PL", "MX", "AU")


def phones_in(text: str, **settings) -> list[str]:
    return [value for _, value in found_in(text, kinds=("phone",), **settings)]


@pytest.mark.parametrize("region", REGIONS)
def test_plans_agree_with_libphonenumber(region):
    rng = np.random.default_rng(7)
    plan = plan_of(region)
    assert plan is not None
    for kind in range(5):
        example = phonenumbers.example_number_for_type(region, kind)
        if example is None:
            continue
        start = phonenumbers.national_significant_number(example)
        for _ in range(40):
            keep = int(rng.integers(1, len(start)))
            digits = start[:keep] + "".join(map(str, rng.integers(0, 10, len(start) - keep)))
            digits = ("0" if rng.random() < 0.3 else "") + digits
            number = phonenumbers.parse(digits, region)
            expected = phonenumbers.is_valid_number_for_region(number, region)
            assert plan.is_valid(digits) == expected, digits


def test_codes_of_countries_are_told():
    assert {plan.code for plan, _ in international_plans("4930901820")} == {49}
    assert len(list(international_plans("14155552671"))) > 10
    assert list(international_plans("9991234567")) == []
    assert list(international_plans("")) == []
    assert plan_of("XX") is None


@pytest.mark.parametrize(
    "number",
    [
        "(555) 123-4567 x123", "+1-555-123-4567x12", "001-555-123-4567", "555.123.4567", "555-123-4567",
        "1-800-555-0199", "1 (786) 834-4978", "+1 (555) 123-4567", "+15551234567", "(591)341-7776",
        "206.269.0743x9150", "001-537-640-6812x41586", "02 1234567", "06 12345678", "(02) 1234567",
        "347 1234567", "333-1234567", "+39 02 1234567", "0039 02 1234567", "+39 333 1234567",
        "+44 (0)20 7946 0958", "+44(0)115 4960914", "(0161) 4960066", "020 7946 0958", "0044 20 7946 0958",
        "030 901820", "030/901820", "(030) 901820", "0151 23456789", "+49 (0) 9141 777631",
        "01 42 68 53 00", "01.42.68.53.00", "06-12-34-56-78", "+33 (0)1 41 63 60 83",
        "+34 612 345 678", "612 34 56 78", "+34976 631 706", "(+358) 083778353", "+56 9 9200 7888",
        "+66 (0)89-881 9873", "011 44 20 7946 0958",
    ],
)  # fmt: skip
def test_forms_that_need_no_word(number):
    assert phones_in(number) == [number]
    assert phones_in(f"The form says {number} in the last line.") == [number]
    assert phones_in(f"({number})") == [number]
    assert phones_in(f"<td>{number}</td>") == [number]


@pytest.mark.parametrize(
    ("before", "number", "after"),
    [
        ("Tel: ", "5551234567", ""), ("my number is ", "4155552671", "."), ("phone_number=", "4155552671", ""),
        ('"contactPhone": "', "4155552671", '"'), ("Mobil: ", "012345678", ""), ("Phone ", "555-0123", ""),
        ("Appelez-nous au ", "612345678", ""), ("Ll\u00e1mame al ", "612 345 678", ""),
        ("", "612 345 678", " (mobile)"), ("", "612345678", " is my phone number"),
        ("\u7535\u8bdd\uff1a", "54098577", ""),
        ("Call us any time after noon at ", "5551234567", ""),
        ("PHONE: ", "123-456-7890", ""), ("<b>Phone</b> ", "4155552671", ""),
    ],
)  # fmt: skip
def test_forms_that_need_a_word(before, number, after):
    assert number in phones_in(before + number + after)
    assert number not in phones_in("x=" + number + ";")


@pytest.mark.parametrize("number", ["4155552671", "0612345678", "3471234567", "0201234567"])
def test_digits_alone_must_stand_in_prose_or_a_cell_and_be_given_out(number):
    assert phones_in(f"He left {number} on a note.") == [number]
    assert phones_in(f"name,phone\nBob,{number},Rome") == [number]
    for before in ("id=", "/", "#", "x.", "Order ", "order no. ", "ISBN ", "v", "f(3, "):
        assert phones_in(f"{before}{number}) ") == []


@pytest.mark.parametrize(
    "text",
    [
        "2147483647", "4294967295", "0123456789", "1700000000", "9999999999", "(6194226738).jpg",
        "DFARS 252.227-7013", "Order 555-123-4567", "case #555-123-4567", "ISBN-10: 0-306-40615-2 Tel",
        "ZIP 04497-0132", "arXiv:0709.21395", "arXiv:2308.94106", "f(375, 608) = 894.5554",
        "x+14155552671", "3+14155552671", "1.2345E+12345680", "12 345 678 people", "345 358 254",
        "01/02/2003/04", "2021-01-01 10:10:10", "48.8583701, 2.2944813", "4126 0921 3308 4102",
        "RFC 445 632.6465 0.7147380", "+999 123 456 789", "000-000-0000", "doi:10.7616/call.2003.628319",
        "Tel Aviv 1948-1967", "call 911", "iPhone 6 and 7", "text:2003.01.0004", "ticket 030 901820",
        "upgrade V8 to 4.7.80.32", "pages 76-96 and 120-135", "10 20 30 40 50 60 70 80 90 11 22 33 44",
    ],
)  # fmt: skip
def test_what_is_no_number(text):
    assert phones_in(text) == []
    assert phones_in(f"See {text} there.") == []


def test_a_list_of_numbers():
    assert phones_in("Tel: 12345678 or 12345679, 12345670") == ["12345678", "12345679", "12345670"]


def test_words_of_another_sentence_or_number_say_nothing():
    assert said_before(b"Tel: ", 5) == (Said.PHONE, True)
    assert said_before(b"Tel 030 901820 gateway ", 23) == (Said.NOTHING, False)
    assert said_before(b"Call him. The number ", 21) == (Said.NOTHING, False)
    assert said_before(b"phone\n", 6) == (Said.NOTHING, False)
    assert said_before(b"call about order ", 17) == (Said.OTHER, True)


def test_other_countries_are_a_setting():
    assert phones_in("609 141 777", phone_regions=("PL",)) == ["609 141 777"]
    assert phones_in("609 141 777", phone_regions=("US",)) == []
    assert phones_in("08-170 669 07", phone_regions=("SE",)) == ["08-170 669 07"]
    assert phones_in("11 91234-5678", phone_regions=("BR",)) == ["11 91234-5678"]
