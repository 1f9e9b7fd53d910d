"""Personal data is found by kind, what only looks like it stays, and nothing else changes."""

# ruff: noqa: E501 - tables of forms
from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from assets.cleaning.pii.candidates import find_candidates
from assets.cleaning.pii.find import Span, disjoint, find_pii, mask_text, mask_texts
from assets.cleaning.text_column import text_array
from assets.settings.pii import KINDS, PiiSettings
from tests.assets.cleaning.hostile_texts import texts
from tests.assets.cleaning.labelled_pii import generated, written

EVERYTHING = PiiSettings()


def found_in(text: str, **settings) -> list[tuple[str, str]]:
    spans = find_pii(text_array([text]), PiiSettings(**settings)).get(0, [])
    data = text.encode()
    return [(span.kind, data[span.start : span.end].decode()) for span in spans]


def compare(labelled_texts):
    """Return (found, missed, wrong) by kind; a value counts as found only in its exact bytes."""
    found = find_pii(text_array([item.text for item in labelled_texts]), EVERYTHING)
    hits: Counter[str] = Counter()
    missed, wrong = [], []
    for number, item in enumerate(labelled_texts):
        data = item.text.encode()
        expected, given = set(item.spans), {tuple(span) for span in found.get(number, [])}
        hits.update(kind for _, _, kind in expected & given)
        missed += [(kind, data[a:b].decode()) for a, b, kind in expected - given]
        wrong += [(kind, data[a:b].decode()) for a, b, kind in given - expected]
    return hits, missed, wrong


def check_rates(labelled_texts, least_found):
    hits, missed, wrong = compare(labelled_texts)
    lost, extra = Counter(kind for kind, _ in missed), Counter(kind for kind, _ in wrong)
    for kind in KINDS:
        assert hits[kind] >= least_found, kind
        assert hits[kind] / (hits[kind] + lost[kind]) >= 0.95, (kind, missed)
        assert hits[kind] / (hits[kind] + extra[kind]) >= 0.95, (kind, wrong)


def test_recall_and_precision_by_kind_on_generated_texts():
    check_rates(generated(seed=20, count=1500), least_found=300)


def test_recall_and_precision_by_kind_on_texts_unlike_them():
    check_rates(written(), least_found=1)


@pytest.mark.parametrize(
    "text",
    [
        "@property", "def f(self): ...", "user@localhost", "a@b", "foo@2x.png", "x@y.mean()",
        "v1.2.3.4", "version 8.8.4.4", 'VERSION = "1.2.3.4"', "HOST, APP_VERSION='8.8.4.4'", "Chrome/91.0.44.124", "libfoo-1.2.3.4.tar.gz", "==1.2.3.4",
        "192.168.0.1", "10.0.0.1", "127.0.0.1", "224.0.0.1", "255.255.255.255", "256.1.1.1",
        "1.2.3.4.5", "08.08.08.08", "\n8.3.1.1. Of servers", "50:01:43:80:11:22:33:44", "deps: upgrade V8 to 5.9.211.32", "fe80::1", "::1", "2001:db8::1", "12:34:56", "std::pair",
        "ISBN 978-3-16-148410-0", "ISBN 0-306-40615-2", "2024-01-31", "31.12.2024", "1914-1918",
        "d41d8cd98f00b204e9800998ecf8427e", "doi:10.1000/182", "4111 1111 1111 1112",
        "1234567812345670", "DE89 3704 0044 0532 0130 01", "XX89370400440532013000",
        "000-12-3456", "666-12-3456", "900-12-3456", "123-00-4567", "123-45-0000", "123-456-7890",
        "api_key = YOUR_API_KEY_HERE_123", "password: hunter2",
        "primary_key=abcdef0123456789abcd", "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "", "@", "@@@@", "+", "1", "-----BEGIN", ":" * 20, "=" * 20,
    ],
)  # fmt: skip
def test_what_only_looks_like_it_stays(text):
    assert found_in(text) == []
    assert found_in(f"See {text} there.") == []


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("o'brien@x.com", "email", "o'brien@x.com"),
        ("'bob@x.com'", "email", "bob@x.com"),
        ("\u90ae\u7bb1abc@qq.com\u8c22\u8c22", "email", "abc@qq.com"),
        ("jos\u00e9@m\u00fcnchen.de", "email", "jos\u00e9@m\u00fcnchen.de"),
        ("a@b.com.", "email", "a@b.com"),
        ("Tel 4155552671", "phone", "4155552671"),
        ("call +1\u00a0415\u00a0555\u00a02671", "phone", "+1\u00a0415\u00a0555\u00a02671"),
        ("0049 30 901820", "phone", "0049 30 901820"),
        ("ping 8.8.8.8", "ip_address", "8.8.8.8"),
        ("[2606:4700:4700::1111]:53", "ip_address", "2606:4700:4700::1111"),
        ("SSN 536 22 1234", "ssn", "536 22 1234"),
        ("GB82WEST12345698765432", "iban", "GB82WEST12345698765432"),
        ("GB82-WEST-1234-5698-7654-32", "iban", "GB82-WEST-1234-5698-7654-32"),
        ("Visa 4012 8888 8888 1881", "credit_card", "4012 8888 8888 1881"),
        ("6011000990139424", "credit_card", "6011000990139424"),
        ("pan=6011000990139424", "credit_card", "6011000990139424"),
        (
            "is 76d5:94c4:83ea:5391:da67:8733:a52c:8f41.",
            "ip_address",
            "76d5:94c4:83ea:5391:da67:8733:a52c:8f41",
        ),
        ("AKIAIOSFODNN7EXAMPLE", "secret", "AKIAIOSFODNN7EXAMPLE"),
        (
            "client_secret=7MEufqW1wWWRPVwRrEVQs6OKaHpPCYOX",
            "secret",
            "7MEufqW1wWWRPVwRrEVQs6OKaHpPCYOX",
        ),
        ("Authorization: Bearer 7MEufqW1wWWRPVwRrEVQs6", "secret", "7MEufqW1wWWRPVwRrEVQs6"),
    ],
)
def test_forms_of_a_value(text, kind, value):
    assert found_in(text) == [(kind, value)]


def test_kinds_regions_and_marks_are_settings():
    text = "a@b.com, +33 1 42 68 53 00, 01 42 68 53 00"
    assert found_in(text, kinds=("email",)) == [("email", "a@b.com")]
    assert len(found_in(text, kinds=("phone",), phone_regions=("US", "GB"))) == 1
    assert len(found_in(text, kinds=("phone",), phone_regions=("FR",))) == 2
    settings = PiiSettings(
        kinds=("email", "phone"),
        phone_regions=("US",),
        replacements={"email": "", "phone": "<\u260e>"},
    )
    texts_of = text_array([text, "nothing", None, text])
    masked = mask_texts(texts_of, find_pii(texts_of, settings), settings)
    wanted = ", <\u260e>, 01 42 68 53 00"
    assert masked.texts.to_pylist() == [wanted, "nothing", None, wanted]
    assert masked.spans == {number: [Span(0, 0, "email"), Span(2, 7, "phone")] for number in (0, 3)}


def test_masked_texts_hold_nothing_more_to_mask_and_only_spans_differ():
    items = generated(seed=21, count=200)
    before = text_array([item.text for item in items])
    found = find_pii(before, EVERYTHING)
    masked = mask_texts(before, found, EVERYTHING)
    assert find_pii(masked.texts, EVERYTHING) == {}
    for number, item in enumerate(items):
        old, new = item.text.encode(), masked.texts[number].as_py().encode()
        assert outside(old, found.get(number, [])) == outside(new, masked.spans.get(number, []))
        for span in masked.spans.get(number, []):
            assert new[span.start : span.end].decode() == EVERYTHING.replacement(span.kind)


def outside(data, spans):
    borders = [0, *(at for span in spans for at in span[:2]), len(data)]
    return [data[a:b] for a, b in zip(borders[::2], borders[1::2], strict=True)]


@given(texts, st.sampled_from([item.text for item in generated(seed=22, count=20)]))
@hypothesis_settings(max_examples=60, deadline=None)
def test_any_text_is_masked_without_touching_the_rest(strange, known):
    text = strange + known + strange
    spans = find_pii(text_array([text]), EVERYTHING).get(0, [])
    assert spans == sorted(spans)
    data = text.encode()
    ends = [*(span.start for span in spans[1:]), len(data)]
    for span, end in zip(spans, ends, strict=False):
        assert 0 <= span.start < span.end <= end
        data[span.start : span.end].decode()
    mask_text(text)


def test_a_slice_of_a_column_and_nulls_are_read_where_they_stand():
    column = text_array(["a@b.com", None, "x", "c@d.com"]).slice(1)
    found = find_pii(column, EVERYTHING)
    assert found == {2: [Span(0, 7, "email")]}


@pytest.mark.parametrize(
    "unit",
    [
        "@", "a@", "a@b.", "1", "1 ", "1.", "12 ", "+1 ", "(1) ", "DE89 ", "DE89", ":", "2001:", "=a1",
        "-----BEGIN RSA PRIVATE KEY-----", "key=", "eyJa.", "a.", "-", "_", "\u00e9@", "SG.", "555-",
        "password=aaaaaaaaaaaaaaaa1 ", "01.", "0123-", "4111 ",
    ],
)  # fmt: skip
def test_work_grows_with_the_size_of_the_text(unit):
    """Candidates are bounded by the size, and what each may look at has a fixed greatest length."""
    small = len(find_candidates(text_array([unit * 500])))
    large = len(find_candidates(text_array([unit * 5000])))
    assert large <= 11 * small + 10
    mask_text(unit * 5000)


def test_more_candidates_than_expected():
    text = "a@b.co " * 20_000
    assert len(find_pii(text_array([text]), EVERYTHING)[0]) == 20_000


def test_of_overlapping_ranges_the_more_certain_stays():
    spans = [Span(0, 10, "phone"), Span(5, 20, "email"), Span(20, 25, "phone"), Span(2, 4, "iban")]
    assert disjoint(spans) == [Span(2, 4, "iban"), Span(5, 20, "email"), Span(20, 25, "phone")]
