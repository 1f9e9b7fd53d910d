"""E-mail addresses, telephone numbers and public IP addresses: is a candidate really one?

All functions take a text's UTF-8 bytes and the range of a candidate, and return ranges in the same
bytes.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from assets.cleaning.pii.tables import top_level_domains

Range = tuple[int, int]

_DOMAIN = re.compile(
    r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.)+(?:xn--[a-zA-Z0-9-]{2,59}|[a-zA-Z]{2,24})"
)
# Accounts of services, not of people: `git@github.com:owner/name.git`.
_SERVICE_ACCOUNTS = (b"git", b"hg", b"svn")

_IPV4 = re.compile(rb"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d]|\.\d)")
_VERSION_BEFORE = re.compile(
    rb"(?:(?:\b|_)(?:v|ver|vers|version|versions|release|released|rev|revision|build|firmware|driver|sdk"
    rb"|update|updated|upgrade|upgraded|patch|section|sections|sec|chapter|table|figure|fig|clause"
    rb"|oid|appendix|item|step|rule|requires|player|python|java|linux|kernel|abschnitt|kapitel"
    rb"|chapitre|secci\xc3\xb3n|sezione|capitolo|cap\xc3\xadtulo)[\s.:=#v\"'(\xc2\xa0]{0,4}"
    rb"(?:to |from |is |of )?"
    rb"|(?:upgrade|update|patch|bump)[a-z]{0,3}(?: [\w.:]{1,12}){0,2} (?:to|from) "
    rb"|[A-Za-z]/|[A-Za-z0-9)][-_]|\xc2\xa7 ?|[=<>~^]=|~> ?|\$)\Z",
    re.IGNORECASE,
)
_ADDRESS_BEFORE = re.compile(
    rb"(?:\bip(?:v4)?\b|\baddr|\bhost|\bserver|\bping|\bdns|\bgateway|\bfrom\b|\bclient|\bpeer"
    rb"|\bremote|\bconnect|\bproxy|\bnode|://|@|\bport\b|\bnameserver|\bssh\b|\bcurl\b|contrib"
    rb"|\btalk\b|\bvisitor|\blogin|\blogged)",
    re.IGNORECASE,
)
# A decimal number next to it: coordinates, as in the paths of drawings.
_NUMBER_BEFORE = re.compile(rb"(?:^|[\s,a-zA-Z-])(?:\d*\.\d+){1,2} \Z")
_NUMBER_AFTER = re.compile(rb" -?\d*\.\d+(?![\d.])")
# The number of a section, before its heading.
_HEADING_BEFORE = re.compile(rb"(?:\A|\n[ \t]{0,8}|</a>)\Z")
_HEADING_AFTER = re.compile(rb"\.?(?:\s|\xc2\xa0)+[^\W\d]|\.(?:\s|\xc2\xa0)")
_LOOK_BACK = 32
_ZERO, _FIRST_MULTICAST = 0x30, 224
_IPV6_CHARACTERS = re.compile(rb"[0-9A-Fa-f:.]+")
_FIRST_GLOBAL, _LAST_GLOBAL, _NUM_GROUPS = 0x2000, 0x3FFF, 8


def find_email(text: bytes, start: int, end: int) -> Iterator[Range]:
    """Yield the address of a candidate, if its domain ends in a top-level domain there is."""
    at = text.index(b"@", start, end)
    # Where a word of another script follows at once, the address ends before it.
    match = _DOMAIN.match(text[at + 1 : end].decode(errors="replace"))
    if match is None:
        return
    top = match[0].rpartition(".")[2].lower()
    is_known = top.startswith("xn--") or top in top_level_domains()
    while text[start : start + 1] in b".+%'&-" and start < at:
        start += 1
    local = text[start:at]
    if not is_known or not local or local.endswith(b".") or b".." in local:
        return
    last = at + 1 + len(match[0].encode())
    if local in _SERVICE_ACCOUNTS and text[last : last + 1] == b":":
        return
    yield start, last


def find_ipv4(text: bytes, start: int, end: int) -> Iterator[Range]:
    """Yield the public IPv4 addresses of a run of digits; versions, sections and networks are none.

    Four numbers of which three are small, or a small one and a zero, are a version unless the words
    before them speak of an address.
    """
    if text.count(b".", start, end) < 3:
        return
    for match in _IPV4.finditer(text, start, end):
        parts = match[0].split(b".")
        octets = [int(part) for part in parts]
        has_leading_zero = any(part[0] == _ZERO and len(part) > 1 for part in parts)
        if has_leading_zero or max(octets) > 255 or octets[0] >= _FIRST_MULTICAST:
            continue
        if not ipaddress.IPv4Address(bytes(octets)).is_global:
            continue
        if not _is_version(text, *match.span(), octets):
            yield match.span()


def _is_version(text: bytes, first: int, last: int, octets: list[int]) -> bool:
    """Tell whether what stands around four numbers makes them something else than an address."""
    after = text[last : last + 16]
    if after[:1].isalpha() or after[:1] == b"_" or (after[:1] in b".-" and after[1:2].isalpha()):
        return True
    if octets[3] == 0 and after[:1] == b"/" and after[1:2].isdigit():
        return True
    before = text[max(0, first - _LOOK_BACK) : first]
    if max(octets) < 32 and _HEADING_BEFORE.search(before) and _HEADING_AFTER.match(after):
        return True
    if before[-1:].isalnum() or before[-1:] in (b".", b"_") or _VERSION_BEFORE.search(before):
        return True
    if _ADDRESS_BEFORE.search(before):
        return False
    num_small = sum(octet < 32 for octet in octets)
    return (
        num_small >= 3
        or (octets[0] < 32 and 0 in octets[1:3])
        or _NUMBER_BEFORE.search(before) is not None
        or _NUMBER_AFTER.match(after) is not None
    )


def find_ipv6(text: bytes, start: int, end: int) -> Iterator[Range]:
    """Yield the public IPv6 address of a candidate.

    Only 2000::/3 has been given out. An address outside of it that no registry reserves counts as
    public if all its eight groups are written; shorter forms are more often something else.
    """
    match = _IPV6_CHARACTERS.match(text, start, end)
    if match is None:
        return
    number = match[0].rstrip(b".:") if not match[0].endswith(b"::") else match[0]
    after = text[start + len(number) : start + len(number) + 1]
    if after.isalnum() or after == b"_" or number.endswith(b"::"):  # a network, not an address
        return
    try:
        address = ipaddress.IPv6Address(number.decode())
    except ValueError:
        return
    is_given_out = _FIRST_GLOBAL <= int(address) >> 112 <= _LAST_GLOBAL
    if address.is_global and not address.is_multicast and (is_given_out or _is_full(number)):
        yield start, start + len(number)


def _is_full(number: bytes) -> bool:
    """Tell whether eight groups are written, and not eight pairs, as in the names of interfaces."""
    groups = number.split(b":")
    return len(groups) == _NUM_GROUPS and all(groups) and max(len(group) for group in groups) > 2
