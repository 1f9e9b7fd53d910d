"""Keys, tokens and passwords: is a long word really a secret?

Most services mark what they give out with a beginning of their own; those are listed here. Anything
else is a secret only if a name such as `api_key` or `password` is given its value, and the value
looks drawn at random. Hashes, identifiers and placeholders stay.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

Range = tuple[int, int]

# Beginning and shape of what services give out, most of them from their own documentation.
_KNOWN = re.compile(
    rb"(?:"
    rb"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}"  # Amazon Web Services
    rb"|gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{60,255}"  # GitHub
    rb"|gl(?:pat|ptt|dt|rt|soat|ft|imt|agent|cbt)-[A-Za-z0-9_-]{20,64}"  # GitLab
    rb"|xox[abeoprs]-[A-Za-z0-9-]{10,250}|xapp-\d-[A-Za-z0-9-]{20,250}"  # Slack
    rb"|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,250}|whsec_[A-Za-z0-9]{24,64}"  # Stripe
    rb"|sk-ant-[A-Za-z0-9_-]{24,250}"  # Anthropic
    rb"|sk-(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{32,250}"  # OpenAI and its like
    rb"|AIza[A-Za-z0-9_-]{35}|GOCSPX-[A-Za-z0-9_-]{28}|ya29\.[A-Za-z0-9_-]{20,500}"  # Google
    rb"|hf_[A-Za-z0-9]{30,40}"  # Hugging Face
    rb"|npm_[A-Za-z0-9]{36}|pypi-AgE[A-Za-z0-9_-]{50,250}|rubygems_[a-f0-9]{48}"  # registries
    rb"|SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,64}|key-[a-f0-9]{32}"  # SendGrid, Mailgun
    rb"|(?:SK|AC)[a-f0-9]{32}"  # Twilio
    rb"|eyJ[A-Za-z0-9_-]{8,2000}\.eyJ[A-Za-z0-9_-]{8,4000}(?:\.[A-Za-z0-9_-]{8,2000})?"  # JSON Web
    rb"|do[opr]_v1_[a-f0-9]{64}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"  # DigitalOcean, Shopify
    rb"|gsk_[A-Za-z0-9]{40,64}|xai-[A-Za-z0-9]{60,100}|r8_[A-Za-z0-9]{36,40}"  # model providers
    rb"|nvapi-[A-Za-z0-9_-]{50,80}|glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}|dapi[a-f0-9]{32}"
    rb"|PMAK-[a-f0-9]{24}-[a-f0-9]{34}|lin_api_[A-Za-z0-9]{32,48}|figd_[A-Za-z0-9_-]{36,48}"
    rb"|hvs\.[A-Za-z0-9_-]{24,250}|ATATT3[A-Za-z0-9_=-]{40,250}|tskey-[a-z]+-[A-Za-z0-9-]{20,80}"
    rb"|sntrys_[A-Za-z0-9+/=_-]{40,400}|AGE-SECRET-KEY-1[A-Z0-9]{58}"
    rb"|[MNO][A-Za-z0-9]{23,26}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}"  # Discord
    rb"|sq0[a-z]{3}-[A-Za-z0-9_-]{22,43}|EAA[A-Za-z0-9]{40,250}|EAACEdEose0cBA[A-Za-z0-9]{20,250}"
    rb")(?![A-Za-z0-9])"
)
_SECRET_NAMES = tuple(
    b"key secret token password passwd passphrase pass pwd credential credentials".split()
)
_BEARER = re.compile(rb"\b(?:bearer|basic) \Z", re.IGNORECASE)
_SEPARATORS = b" \"'`:=>"
# Names whose values are no secrets although they end in one of the words above.
_PUBLIC_NAME = re.compile(
    rb"(?:public|primary|foreign|sort|partition|cache|lookup|next|page|continuation|csrf|object|s3"
    rb"|map|dict|hot|translation|idempotency|ssh)[_\-. ]?(?:page[_\-. ]?)?(?:key|token)\Z"
)
_VALUE = re.compile(rb"[A-Za-z0-9_\-/+=.~]{16,512}")
_QUOTED = re.compile(rb"[^\s\"'`]{16,512}")
_PLACEHOLDER = re.compile(
    rb"your|placeholder|changeme|x{5}|\.{3}|\*{3}|<|dummy|insert|replace|0{6}", re.IGNORECASE
)
_INVENTED = re.compile(rb"example|sample|123456789|abcdef|\$\{", re.IGNORECASE)
"""What a value holds that somebody made up; the keys of services are masked even so."""
_LOOK_BACK = 64
_MIN_ENTROPY = 3.0
_BLOCK_END = b"-----END"
_MAX_BLOCK = 16_384
_END_LINE = re.compile(rb"-----END [A-Z0-9 ]{1,64}-----")
_BASE64_LINES = re.compile(rb"(?:\r?\n[A-Za-z0-9+/=]{1,76}(?=[\r\n]|\Z))+")
_BLOCK_BEGIN = re.compile(rb"-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----")


def find_secrets(text: bytes, start: int, end: int) -> Iterator[Range]:
    """Yield the secret that a long word is: of a known service, or given to a telling name."""
    match = _KNOWN.match(text, start)
    if match is not None:
        if not _PLACEHOLDER.search(match[0]) and _varies(match[0]):
            yield match.span()
        return
    before = text[max(0, start - _LOOK_BACK) : start]
    if not (_is_secret_name(before) or _BEARER.search(before)):
        return
    is_quoted = before.endswith((b'"', b"'", b"`")) and text[end : end + 1] == before[-1:]
    value = (_QUOTED if is_quoted else _VALUE).match(text, start, max(end, start + 16))
    if value is None:
        return
    secret = value[0].rstrip(b".")
    after = text[start + len(secret) : start + len(secret) + 1]
    if _is_random(secret) and after not in (b"(", b"["):
        yield start, start + len(secret)


def _is_secret_name(before: bytes) -> bool:
    """Tell whether what stands before a value gives it to a name such as `api_key`."""
    name = before.rstrip(_SEPARATORS)
    if not (b"=" in before[len(name) :] or b":" in before[len(name) :]):
        return False
    name = name.lower()
    return name.endswith(_SECRET_NAMES) and not _PUBLIC_NAME.search(name)


def find_key_blocks(text: bytes, start: int) -> Iterator[Range]:
    """Yield the private key in PEM armour that begins at `start`, to the end of its last line.

    A block without an end is one as far as its lines look like base64.
    """
    match = _BLOCK_BEGIN.match(text, start)
    if match is None:
        return
    end = text.find(_BLOCK_END, match.end(), match.end() + _MAX_BLOCK)
    if end < 0:
        lines = _BASE64_LINES.match(text, match.end())
        yield start, (lines.end() if lines is not None else match.end())
        return
    line = _END_LINE.match(text, end)
    yield start, (line.end() if line is not None else end)


def _is_random(value: bytes) -> bool:
    """Tell whether a value has letters and digits, many different ones, and is no path or name."""
    if len(value) < 16 or _PLACEHOLDER.search(value) or _INVENTED.search(value):
        return False
    if value.count(b"/") > len(value) // 12:
        return False
    has_digit = any(48 <= byte <= 57 for byte in value)
    has_letter = any(chr(byte).isalpha() for byte in value)
    if not (has_digit and has_letter and _varies(value)):
        return False
    words = re.split(rb"[_\-./+=~&?;:,]", value)
    return max(len(word) for word in words) >= 12


def _varies(value: bytes) -> bool:
    counts = Counter(value).values()
    total = len(value)
    entropy = -sum(count / total * math.log2(count / total) for count in counts)
    return entropy >= _MIN_ENTROPY
