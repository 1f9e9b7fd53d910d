"""Texts that an engine must encode like the reference before it may encode documents.

Fixed prose, code, numbers, white space and scripts; every added token of the tokenizer in several
surroundings; and strings of code points drawn with a fixed seed from the ranges where splitting
rules, normalization and merges differ.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

import numpy as np

FIXED = (
    "",
    " ",
    "\n",
    "The quick brown fox jumps over the lazy dog. It's they'll WE'RE I'd you've he's don't DON'T",
    "  two  spaces   three    four\ttab\t\ttabs \t mixed\r\nCRLF\r\r\n\n\n trailing   ",
    "def f(x: int) -> str:\n    return {'a': [x**2, ~x, x//3], \"b\": f\"{x!r:>10}\"}\n\n\n#\t--\n",
    "1 12 123 1234 12345 3.14159 1,000,000 0x7fff 1e-10 2026-11-30T11:07:21Z ½ ² Ⅷ ٣٤٥ ৩৪",
    'https://example.org/a_b/c-d?e=f&g=%20#h <div class="x">&amp;&nbsp;</div> <!-- c --> $x_1^2$',
    "naïve café Ångström Straße ﬁne e\u0301 a\u030a o\u0308 \u1e9b\u0323",
    "\u00a0nbsp\u2009thin\u3000wide\u200bzero\u200cjoin\u200d\u00ad",
    "Ελληνικά Русский български עברית العربية فارسی हिन्दी বাংলা தமிழ் ไทย ភាសាខ្មែរ አማርኛ ქართული",
    "日本語のテキスト、中文文本。한국어 텍스트 ㄱㄴ 조선말 「引用」 \uff46\uff55\uff4c\uff4c ﾊﾝｶｸ",
    "😀👍🏽👩‍👩‍👧‍👦🇧🇬🏳️‍🌈 ☃️ ∑∫√ ≤≠ → ⇒ ♠ █▓ ░ ‽ … — \u2013 \u2018\u2019 “” «» •",
    "\x00\x01\x07\x1b[31m\x7f\x80\x9f\ufeff\ufffd\ufffe\uffff\U0010ffff\u202e\u2028\u2029\x0b\x0c\x85",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft " * 3,
    " " * 300 + "x" + "\n" * 70 + "=" * 130 + "-" * 65 + "." * 33 + "!?" * 20,
    "camelCaseWord snake_case_word SCREAMING_CASE kebab-case-word iPhone15Pro a1b2c3 x86_64 C++ C#",
    "|||EMAIL_ADDRESS||| <|endoftext|> <|im_start|>user<|im_end|> <s></s><unk>[CLS]</w> Ġ Ċ ▁",
)  # fmt: skip

_RANGES = (
    (0x20, 0x7F), (0x20, 0x7F), (0x09, 0x21), (0xA0, 0x250), (0x2B0, 0x370), (0x370, 0x530),
    (0x590, 0x780), (0x900, 0xE80), (0x1100, 0x1200), (0x1E00, 0x2100), (0x2100, 0x2800),
    (0x2E80, 0x3300), (0x4E00, 0x9FFF), (0xAC00, 0xD7A4), (0xF900, 0x10000), (0x1D400, 0x1F700),
)  # fmt: skip
"""Code points [first, last) that random strings are drawn from; none is a surrogate."""

NUM_RANDOM = 96
RANDOM_LENGTH = 120


def conformance_texts(added_tokens: Iterable[str]) -> list[str]:
    """Return the texts for a tokenizer with these added tokens, special ones included."""
    tokens = sorted(added_tokens)
    around = [f"{token} {token}{token}x{token}\n {token}  a{token}." for token in tokens]
    return [*FIXED, *around, "".join(tokens), " ".join(tokens), *_random_texts()]


@functools.cache
def _random_texts() -> tuple[str, ...]:
    # Raw draws of PCG64 never change from one numpy to the next.
    draws = np.random.PCG64(20261130).random_raw(NUM_RANDOM * RANDOM_LENGTH * 2)
    texts = []
    for number, row in enumerate(draws.reshape(NUM_RANDOM, RANDOM_LENGTH, 2)):
        # Every third text mixes all ranges, the others stay within two of them.
        width = len(_RANGES) if number % 3 == 0 else 2
        chosen = [_RANGES[(number + int(draw) % width) % len(_RANGES)] for draw in row[:, 0]]
        points = (
            low + int(draw) % (high - low)
            for (low, high), draw in zip(chosen, row[:, 1], strict=True)
        )
        texts.append("".join(map(chr, points)))
    return tuple(texts)
