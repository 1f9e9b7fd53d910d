"""Which letters languages are written with: scripts, and letters beyond the basic ones.

Only what tells languages apart is listed. A script of one language in common use names it; within
Latin, Cyrillic, Arabic, Devanagari and Han, letters decide. Languages of Latin script that use no
letters beyond a to z (Indonesian, Swahili, mostly Dutch) cannot be told from English this way.
"""

from __future__ import annotations

import numpy as np

ONE_LANGUAGE_SCRIPTS = {
    "el": (0x0370, 0x03FF), "hy": (0x0530, 0x058F), "he": (0x0590, 0x05FF), "bn": (0x0980, 0x09FF),
    "pa": (0x0A00, 0x0A7F), "gu": (0x0A80, 0x0AFF), "or": (0x0B00, 0x0B7F), "ta": (0x0B80, 0x0BFF),
    "te": (0x0C00, 0x0C7F), "kn": (0x0C80, 0x0CFF), "ml": (0x0D00, 0x0D7F), "si": (0x0D80, 0x0DFF),
    "th": (0x0E00, 0x0E7F), "lo": (0x0E80, 0x0EFF), "bo": (0x0F00, 0x0FFF), "my": (0x1000, 0x109F),
    "ka": (0x10A0, 0x10FF), "am": (0x1200, 0x137F), "km": (0x1780, 0x17FF), "ko": (0xAC00, 0xD7AF),
}  # fmt: skip
"""Label -> code points [first, last] of its script."""

SHARED_SCRIPTS = {
    "latin": (0x0041, 0x024F), "latin_more": (0x1E00, 0x1EFF), "cyrillic": (0x0400, 0x052F),
    "arabic": (0x0600, 0x06FF), "devanagari": (0x0900, 0x097F), "kana": (0x3040, 0x30FF),
    "han": (0x4E00, 0x9FFF),
}  # fmt: skip

_LATIN = {
    "en": "", "de": "äöüß", "fr": "àâçéèêëîïôùûœ",
    "es": "áéíñóúü", "pt": "áàâãçéêíóôõú",
    "it": "àèéìòù", "pl": "ąćęłńóśźż",
    "cs": "áčďéěíňóřšťúůýž",
    "sk": "áäčďéíĺľňóôŕšťúýž",
    "hu": "áéíóöőúüű", "ro": "ăâîșțşţ",
    "tr": "çğıöşü", "az": "çəğıöşü",
    "sv": "åäöé", "fi": "äö", "da": "æøå", "no": "æøå",
    "is": "áðéíóúýþæö", "et": "äõöüšž",
    "lv": "āčēģīķļņšūž", "lt": "ąčęėįšųūž",
    "hr": "čćđšž", "sl": "čšž", "sq": "çë", "ca": "àçèéíïòóúü·",
    "eo": "ĉĝĥĵŝŭ", "cy": "âêîôûŵŷ",
    "vi": "àáâãèéêìíòóôõùúýăđĩũơư",
}  # fmt: skip
_CYRILLIC_BASE = "абвгдежзклмнопрстуфхцчш"
_CYRILLIC = {
    "ru": "ёийщъыьэюя", "uk": "ийщьюяєіїґ",
    "be": "ёйыьэюяіў", "bg": "ийщъьюя",
    "sr": "иђјљњћџ", "mk": "иѓѕјљњќџ",
    "kk": "ёийщъыьэюяіғқңүұһәө",
    "mn": "ёийщъыьэюяүө",
}  # fmt: skip
_ARABIC = {
    "ar": "ةيكىأإؤئ", "fa": "یکپچژگئ",
    "ur": "یکپچژگٹڈڑںھہےئ",
}  # fmt: skip
_DEVANAGARI = {"hi": "", "mr": "ळ"}
_LATIN_BASE = "abcdefghijklmnopqrstuvwxyz"

LANGUAGES = (
    *_LATIN, *_CYRILLIC, *_ARABIC, *_DEVANAGARI, "ja", "zh", *ONE_LANGUAGE_SCRIPTS,
)  # fmt: skip
"""Every label the letters can give; a tie goes to the one named first."""


def _classes() -> tuple[np.ndarray, list[str]]:
    """Return a class per code point below 0x10000 (0: no letter), and the name of each class."""
    names = ["", *SHARED_SCRIPTS, *ONE_LANGUAGE_SCRIPTS]
    table = np.zeros(0x10000, np.uint8)
    for number, (first, last) in enumerate(
        [*SHARED_SCRIPTS.values(), *ONE_LANGUAGE_SCRIPTS.values()], start=1
    ):
        for code in range(first, last + 1):
            table[code] = number if chr(code).isalpha() else 0
    table[0x4E00:0xA000] = names.index("han")
    groups = (_LATIN, _CYRILLIC, _ARABIC, _DEVANAGARI)
    special = sorted({letter for group in groups for letter in "".join(group.values())})
    for letter in special:
        table[ord(letter)] = len(names)
        upper = letter.upper()
        if len(upper) == 1:
            table[ord(upper)] = len(names)
        names.append(letter)
    for code in range(0x1EA0, 0x1EFA):  # Vietnamese has these to itself
        table[code] = names.index("latin_more")
    for letter in _LATIN_BASE + _CYRILLIC_BASE:
        script = "latin" if letter in _LATIN_BASE else "cyrillic"
        table[ord(letter)] = table[ord(letter.upper())] = names.index(script)
    return table, names


def _alphabets(names: list[str]) -> np.ndarray:
    """Return which classes each language is written with; bool (languages, classes)."""
    written = np.zeros((len(LANGUAGES), len(names)), np.bool_)
    groups = {"latin": _LATIN, "cyrillic": _CYRILLIC, "arabic": _ARABIC, "devanagari": _DEVANAGARI}
    for script, group in groups.items():
        for label, letters in group.items():
            row = written[LANGUAGES.index(label)]
            row[[names.index(script), *(names.index(letter) for letter in letters)]] = True
    for label in ONE_LANGUAGE_SCRIPTS:
        written[LANGUAGES.index(label), names.index(label)] = True
    written[LANGUAGES.index("vi"), names.index("latin_more")] = True
    written[LANGUAGES.index("ja"), [names.index("kana"), names.index("han")]] = True
    written[LANGUAGES.index("zh"), names.index("han")] = True
    return written


LETTER_CLASSES, CLASS_NAMES = _classes()
"""uint8 per code point of the basic plane; and what each class is."""
ALPHABETS = _alphabets(CLASS_NAMES)
