"""Texts with personal data whose places are known: generated from a seed, and written by hand.

Values are made from the issuers' own rules (numbering plans, checksums), not with the code under
test. `[[kind:value]]` in a written text marks a value; everything else must stay as it is.
"""

# ruff: noqa: E501 - tables of forms
from __future__ import annotations

import itertools
import re
import string
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FILE = Path(__file__).with_name("written_pii.txt")
ALPHANUMERIC = string.ascii_letters + string.digits
_MARK = re.compile(r"\[\[(\w+):(.*?)\]\]", re.DOTALL)


class Labelled(NamedTuple):
    """A text and the values in it."""

    text: str
    spans: list[tuple[int, int, str]]
    """(start, end, kind) in UTF-8 bytes, in order."""


def labelled(marked: str) -> Labelled:
    """Return a text without its marks, and what they say."""
    pieces, spans, at, size = [], [], 0, 0
    for match in _MARK.finditer(marked):
        pieces += [marked[at : match.start()], match[2]]
        size += len(marked[at : match.start()].encode())
        spans.append((size, size + len(match[2].encode()), match[1]))
        size += len(match[2].encode())
        at = match.end()
    return Labelled("".join([*pieces, marked[at:]]), spans)


def written() -> list[Labelled]:
    """Return the texts written by hand: logs, mails, tables, code and prose in several languages."""
    return [labelled(text) for text in FILE.read_text(encoding="utf-8").split("%%%%\n")]


def generated(seed: int, count: int) -> list[Labelled]:
    """Return texts of sentences with values of every kind, and with what only looks like them."""
    make = _Maker(np.random.default_rng(seed))
    return [labelled(make.text()) for _ in range(count)]


class _Maker:
    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.kinds: dict[str, Callable[[], Any]] = {
            "email": self.email,
            "phone": self.phone,
            "ip_address": self.ip_address,
            "credit_card": self.card,
            "iban": self.iban,
            "ssn": self.ssn,
            "secret": self.secret,
        }

    def text(self) -> Any:
        sentences = []
        for _ in range(int(self.rng.integers(3, 9))):
            if self.rng.random() < 0.6:
                kind = self.pick(list(self.kinds))
                value = f"[[{kind}:{self.kinds[kind]()}]]"
                sentences.append(self.pick(SENTENCES[kind] + SENTENCES["any"]).format(value))
            else:
                sentences.append(self.pick(HARMLESS).format(*self.harmless_numbers()))
        return self.pick([" ", "\n", "\n\n"]).join(sentences)

    def pick(self, items: Sequence[Any]) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def digits(self, count: int, first: str = string.digits) -> Any:
        return self.pick(first) + "".join(self.pick(string.digits) for _ in range(count - 1))

    def letters(self, count: int, alphabet: str = ALPHANUMERIC) -> str:
        return "".join(self.pick(alphabet) for _ in range(count))

    def harmless_numbers(self) -> list[str]:
        day = f"{self.rng.integers(1, 29):02d}"
        return [
            f"20{self.digits(2)}-0{self.digits(1, '123456789')}-{day}",
            f"{self.digits(1, '123456789')}.{self.digits(1)}.{self.digits(2, '123456789')}",
            self.letters(40, string.hexdigits[:16]),
            f"978-0-{self.digits(3)}-{self.digits(5)}-{self.digits(1)}",
            f"10.{self.digits(4, '12345')}/{self.letters(8, string.ascii_lowercase)}",
            self.digits(10, "1"),
        ]

    def email(self) -> Any:
        def word() -> str:
            return self.letters(int(self.rng.integers(3, 9)), string.ascii_lowercase)

        local = self.pick(
            [word(), f"{word()}.{word()}", f"{word()}_{self.digits(2)}", f"{word()}+{word()}",
             f"{word().title()}-{word()}", f"{word()}{self.digits(4)}"]
        )  # fmt: skip
        host = self.pick([word(), f"{word()}-{word()}", f"mail.{word()}", f"cs.{word()}"])
        top = self.pick(["com", "org", "net", "edu", "de", "co.uk", "io", "com.au", "fr", "info"])
        return f"{local}@{host}.{top}"

    def phone(self) -> Any:
        area = self.pick(["212", "310", "415", "512", "617", "702", "808", "919"])
        middle, last = self.digits(3, "23456789"), self.digits(4)
        if middle[1:] == "11":
            middle = "234"
        return self.pick(
            [
                f"({area}) {middle}-{last}", f"{area}-{middle}-{last}", f"{area}.{middle}.{last}",
                f"+1 {area} {middle} {last}", f"1-{area}-{middle}-{last}",
                f"+44 20 7{self.digits(3)} {self.digits(4)}",
                f"020 7{self.digits(3)} {self.digits(4)}", f"+49 30 {self.digits(7, '23456789')}",
                f"+33 6 {self.digits(2)} {self.digits(2)} {self.digits(2)} {self.digits(2)}",
                f"+91 9{self.digits(4)} {self.digits(5)}", f"+81 90-{self.digits(4)}-{self.digits(4)}",
                f"+61 4{self.digits(2)} {self.digits(3)} {self.digits(3)}",
                f"+55 11 9{self.digits(4, '6789')}-{self.digits(4)}",
                f"+8613{self.digits(9)}", f"+34 6{self.digits(2)} {self.digits(3)} {self.digits(3)}",
            ]
        )  # fmt: skip

    def ip_address(self) -> Any:
        if self.rng.random() < 0.3:
            groups = ":".join(self.letters(4, string.hexdigits[:16]) for _ in range(4))
            return f"2a0{self.digits(1)}:{self.digits(4, '1234')}:{groups}:{groups[:9]}"
        first = self.pick(
            [str(n) for n in (8, 23, 45, 62, 77, 81, 93, 104, 130, 151, 185, 203, 212)]
        )
        return f"{first}.{self.rng.integers(1, 113)}.{self.rng.integers(256)}.{self.rng.integers(1, 255)}"

    def card(self) -> Any:
        prefix, size, groups = self.pick(
            [("4", 16, (4, 4, 4, 4)), ("52", 16, (4, 4, 4, 4)), ("2300", 16, (4, 4, 4, 4)),
             ("34", 15, (4, 6, 5)), ("37", 15, (4, 6, 5)), ("6011", 16, (4, 4, 4, 4)),
             ("3530", 16, (4, 4, 4, 4)), ("36", 14, (4, 6, 4))]
        )  # fmt: skip
        body = prefix + self.digits(size - len(prefix) - 1)
        total = sum(
            digit if index % 2 else digit * 2 // 10 + digit * 2 % 10
            for index, digit in enumerate(int(char) for char in reversed(body))
        )
        number, separator = body + str(-total % 10), self.pick(["", " ", "-"])
        cuts = np.cumsum((0, *groups)).tolist()
        return separator.join(number[a:b] for a, b in itertools.pairwise(cuts))

    def iban(self) -> str:
        country, letters, count = self.pick(
            [("DE", 0, 18), ("GB", 4, 14), ("FR", 0, 23), ("ES", 0, 20), ("NL", 4, 10),
             ("CH", 0, 17), ("PL", 0, 24), ("NO", 0, 11)]
        )  # fmt: skip
        account = self.letters(letters, string.ascii_uppercase) + self.digits(count)
        moved = "".join(str(int(char, 36)) for char in f"{account}{country}00")
        number = f"{country}{98 - int(moved) % 97:02d}{account}"
        if self.rng.random() < 0.5:
            return number
        return " ".join(number[at : at + 4] for at in range(0, len(number), 4))

    def ssn(self) -> str:
        area = self.digits(3, "12345")
        group, serial = self.digits(2, "123456789"), self.digits(4, "123456789")
        return f"{area}-{group}-{serial}"

    def secret(self) -> Any:
        return self.pick(
            [
                "AKIA" + self.letters(16, string.ascii_uppercase + "234567"),
                "ghp_" + self.letters(36), "glpat-" + self.letters(20),
                "xoxb-" + self.digits(12) + "-" + self.letters(24),
                "sk_live_" + self.letters(24), "AIza" + self.letters(35),
                "hf_" + self.letters(34, string.ascii_letters), "npm_" + self.letters(36),
                f"SG.{self.letters(22)}.{self.letters(43)}",
                f"eyJ{self.letters(20)}.eyJ{self.letters(60)}.{self.letters(43)}",
                "sk-proj-" + self.letters(48),
            ]
        )  # fmt: skip


SENTENCES = {
    "any": ["He wrote {} on the back of the form.", "The record shows {}.", "* {}", '"{}",'],
    "email": ["Write to {}.", "Contact: {}", "<{}> wrote:", "mailto:{}?subject=x", "({})"],
    "phone": [
        "Call {} after six.",
        "Tel.: {}",
        "Phone {} or come by.",
        "Fax: {}",
        "our number is {}",
    ],
    "ip_address": ["The host {} answered.", "from {} port 22", "http://{}/index.html", "IP: {}"],
    "credit_card": [
        "Card number {}, expires 12/29.",
        "Paid with {}.",
        "card: {}",
    ],
    "iban": ["IBAN: {}", "Please transfer it to {}.", "Konto {} bei der Bank"],
    "ssn": ["SSN: {}", "Her social security number is {}.", "ssn {}"],
    "secret": ['api_key = "{}"', "Authorization: Bearer {}", "export TOKEN={}", "key: {}"],
}
HARMLESS = [
    "Published on {0} in the usual place.", "Version {1} fixes it.", "commit {2}",
    "ISBN {3}, second edition.", "doi:{4} has the details.", "It was {5} seconds since the epoch.",
    "Use @property or @dataclass here.", "Set logo@2x.png as the icon.", "See sections 3.2.1.4 and 12.",
    "In 1914-1918 and 1939-1945 it was closed.", "The router 192.168.1.1 and 127.0.0.1 stay.",
    "npm install lodash@4.17.21 works.", "It costs $1,234,567.89 in total.", "pi is 3.14159265358979.",
    "std::vector<int> v; a::b::c();", "At 12:34:56 it stopped.", "Room 555-1234 is upstairs? No.",
    "version 1.2.3.4 of the driver", "sha256:{2}{2}", "uuid 123e4567-e89b-12d3-a456-426614174000",
    "Order 4111-1111 was split.", "x = A@B.T + y@z.mean()", "12 345 678 people live there.",
    "EAN 4006381333931", "git clone git@github.com:owner/name.git", "e@mail is not one",
]  # fmt: skip
