"""Write texts with personal data whose places are known, their values made by Faker.

Runs in an environment of its own (`benchmarks/pii_peers.txt`) and imports nothing of this project:
values, decoys and labels are another's, so what finds them was not made to find them. One JSON
object per line: `text`, `locale`, `form` (prose, bare prose, table, html, code, log) and `spans`
[start, end, kind, proof], half-open in UTF-8 bytes; `proof` of a phone says whether libphonenumber
calls it valid, possible or neither in its locale.

    .venv-bench-pii/bin/python benchmarks/pii_faker.py --seed 1 --texts 4000 > texts.jsonl
"""

# ruff: noqa: E501 - tables of forms
from __future__ import annotations

import argparse
import ipaddress
import json
import string
import sys
from collections.abc import Callable, Sequence
from random import Random  # noqa: TID251 - seeded; its environment has no numpy

import phonenumbers
from faker import Faker

LOCALES = ("en_US", "en_GB", "de_DE", "fr_FR", "it_IT", "es_ES")
OTHERS = ("en_CA", "en_AU", "nl_NL", "pl_PL", "pt_BR", "sv_SE", "ja_JP", "de_CH", "cs_CZ", "en_IN")
ALPHANUMERIC = string.ascii_letters + string.digits
HEXADECIMAL = string.hexdigits[:16]

Value = tuple[str, str, str]
"""(kind, value, proof)"""

# Words around a value: {} is the value. The first list says what it is, the second does not.
TOLD = {
    "phone": {
        "en": ["Call me at {} after six.", "My phone number is {}.", "Tel: {}", "Phone: {}",
               "You can reach our office at {} on weekdays.", "Fax {}", "Mobile: {}", "text me: {}",
               "Customer service ({}) is closed.", "For questions, please call {}."],
        "de": ["Tel.: {}", "Telefon: {}", "Rufen Sie uns an: {}", "Sie erreichen mich unter {}.",
               "Mobil: {}", "Fax: {}", "Meine Handynummer ist {}.", "Telefonnummer {}"],
        "fr": ["Tél. : {}", "Téléphone : {}", "Appelez-nous au {}.", "Mon numéro est le {}.",
               "Portable : {}", "Fax : {}", "Vous pouvez me joindre au {}."],
        "it": ["Tel. {}", "Telefono: {}", "Chiamami al {}.", "Il mio numero di telefono è {}.",
               "Cellulare: {}", "Fax {}", "Per informazioni chiamare il {}."],
        "es": ["Tel. {}", "Teléfono: {}", "Llámame al {}.", "Mi número de teléfono es {}.",
               "Móvil: {}", "Fax: {}", "Para más información, llame al {}."],
    },
    "email": {"en": ["Write to {}.", "Email: {}", "<{}> wrote:", "mailto:{}", "({})"]},
    "ip_address": {"en": ["Connection from {} closed.", "IP address: {}", "ping {}", "host {} is up"]},
    "credit_card": {"en": ["Card number {}.", "Paid with {}, thank you.", "credit card: {}"]},
    "iban": {"en": ["IBAN: {}", "Please transfer it to {}.", "account {}"]},
    "ssn": {"en": ["SSN: {}", "Her social security number is {}.", "SSN {} on file"]},
    "secret": {"en": ['api_key = "{}"', "Authorization: Bearer {}", "TOKEN={}", "secret: '{}'"]},
}  # fmt: skip
UNTOLD = ["The form says {} in the last line.", "{}", "He left {} on a note.", "({})", "- {}"]
ROWS = {
    "table": ["{name}\t{0}\t{city}", "{name},{0},{city}", "| {name} | {0} | {city} |", "{name}; {0}"],
    "html": ["<td>{name}</td><td>{0}</td>", "<p>{city}: <b>{0}</b></p>", "<li>{name} {0}</li>",
             '<span class="v">{0}</span>'],
    "code": ['user = {{"name": "{name}", "{key}": "{0}"}}', "{key} = '{0}'", '  "{key}": "{0}",',
             "// {name}: {0}"],
    "log": ["2024-03-05T10:11:12Z INFO user={name} {key}={0} ok", "[{name}] {key}: {0}"],
}  # fmt: skip
KEYS = {
    "phone": ["phone", "phone_number", "tel", "mobile", "phoneNumber", "contact_phone", "fax"],
    "email": ["email", "mail", "e_mail", "contact"],
    "ip_address": ["ip", "client_ip", "remote_addr", "host"],
    "credit_card": ["card", "credit_card", "cardNumber", "pan"],
    "iban": ["iban", "account", "bank_account"],
    "ssn": ["ssn", "social_security_number"],
    "secret": [
        "api_key",
        "apiKey",
        "token",
        "secret_key",
        "password",
        "access_token",
        "auth_token",
    ],
}
DECOYS = [
    "ISBN {isbn13}", "ISBN-10: {isbn10}", "EAN {ean13}", "Published {date}.", "at {iso}", "ts={unix}",
    "commit {sha1}", "md5 {md5}", "sha256:{sha256}", "id {uuid4}", "located at {lat}, {lon}",
    "MAC {mac}", "gateway {private}", "It costs {price}.", "version {version}", "v{version}",
    "release {version4}", "package-{version}.tar.gz", "doi:10.{doi}/{word}.{year}.{six}",
    "arXiv:{arxiv}", "Order #{ten}", "order number {nine}", "invoice no. {twelve}", "SKU {sku}",
    "tracking {tracking}", "@property", "@app.route('/{word}')", "x = A@B.T", "{word}@{version}",
    "pages {page}-{page2}", "{year}-{year2}", "section {version4}", "in {year} there were {large}",
    "{mozilla}", "case {ten}", "f({small}, {small2}) = {decimal}", "{time} to {time2}", "ID: {nine}",
    "logo@2x.png", "std::vector<{word}> v;", "{decimal} {decimal2} {decimal3}", "ZIP {zip}",
    "git@github.com:{word}/{word2}.git", "{hexcolor}", "PMID {eight}", "room {small}-{small2}",
    "port {port}", "::1 and fe80::1", "2001:db8::{small}", "{large} rows in {decimal} s",
    "password = 'changeme'", "key = None", "primary_key={md5}", "build {year}.{small}.{small2}.{page}",
    "{date} {time}", "IMEI {imei}", "RFC {small}", "CAS 7732-18-5", "patent US {seven}B2", "{spaced}",
]  # fmt: skip


class Maker:
    """Makes values, decoys and texts from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.fakers = {name: Faker(name, use_weighting=False) for name in LOCALES + OTHERS}
        Faker.seed(seed)
        self.kinds: dict[str, Callable[[str], Value]] = {
            "phone": self.phone, "email": self.email, "ip_address": self.ip_address,
            "credit_card": self.card, "iban": self.iban, "ssn": self.ssn, "secret": self.secret,
        }  # fmt: skip

    def text(self, locale: str) -> dict[str, object]:
        """Return one text: a few values of one form among decoys."""
        form = self.random.choice(["prose", "prose", "bare prose", *ROWS])
        pieces: list[str] = []
        spans: list[tuple[int, int, str, str]] = []
        size = 0
        separator = "\n" if form in ROWS else self.random.choice([" ", "\n"])
        for _ in range(self.random.randint(2, 7)):
            if self.random.random() < 0.5:
                piece, found = self.sentence(locale, form)
            else:
                piece, found = self.decoy(), []
            spans += [(size + start, size + end, kind, proof) for start, end, kind, proof in found]
            pieces.append(piece)
            size += len((piece + separator).encode())
        return {"text": separator.join(pieces), "locale": locale, "form": form, "spans": spans}

    def sentence(self, locale: str, form: str) -> tuple[str, list[tuple[int, int, str, str]]]:
        """Return a sentence or row with a value, and where the value is."""
        weights = [6, 1, 1, 1, 1, 1, 1]
        kind = self.random.choices(list(self.kinds), weights)[0]
        _, value, proof = self.kinds[kind](locale)
        faker = self.fakers[locale]
        if form == "bare prose":
            frame = self.random.choice(UNTOLD)
        elif form == "prose":
            told = TOLD[kind]
            frame = self.random.choice(told.get(locale[:2], told["en"]))
        else:
            filled = self.random.choice(ROWS[form])
            key = self.random.choice(KEYS[kind])
            mark = "\0"
            frame = filled.format(mark, name=faker.name(), city=faker.city(), key=key)
            frame = frame.replace(mark, "{}")
        before, after = frame.split("{}")
        start = len(before.encode())
        return before + value + after, [(start, start + len(value.encode()), kind, proof)]

    def phone(self, locale: str) -> Value:
        """Return a number as Faker writes it, or as libphonenumber writes Faker's."""
        region = locale[3:]
        value = self.fakers[locale].phone_number()
        try:
            number = phonenumbers.parse(value, region)
        except phonenumbers.NumberParseException:
            return "phone", value, "neither"
        if phonenumbers.is_valid_number(number):
            if self.random.random() < 0.5:
                styles = phonenumbers.PhoneNumberFormat
                style = self.random.choice([styles.E164, styles.INTERNATIONAL, styles.NATIONAL])
                value = phonenumbers.format_number(number, style)
            return "phone", value, "valid"
        return "phone", value, "possible" if phonenumbers.is_possible_number(number) else "neither"

    def email(self, locale: str) -> Value:
        """Return an address."""
        faker = self.fakers[locale]
        make = self.random.choice(
            [faker.email, faker.free_email, faker.company_email, faker.safe_email]
        )
        return "email", make(), ""

    def ip_address(self, locale: str) -> Value:
        """Return an address that is public by Python's tables."""
        faker = self.fakers[locale]
        while True:
            value = faker.ipv4() if self.random.random() < 0.7 else faker.ipv6()
            address = ipaddress.ip_address(value)
            if address.is_global and not address.is_multicast:
                return "ip_address", value, f"v{address.version}"

    def card(self, locale: str) -> Value:
        """Return the number of a card of any issuer, grouped or not."""
        value = self.fakers[locale].credit_card_number()
        if len(value) == 16 and self.random.random() < 0.5:
            gap = self.random.choice(" -")
            value = gap.join(value[at : at + 4] for at in range(0, 16, 4))
        return "credit_card", value, ""

    def iban(self, locale: str) -> Value:
        """Return an IBAN, grouped or not."""
        name = locale if locale[3:] in ("DE", "FR", "IT", "ES", "GB", "NL", "PL", "CH") else "en_GB"
        value = self.fakers[name].iban()
        if self.random.random() < 0.5:
            value = " ".join(value[at : at + 4] for at in range(0, len(value), 4))
        return "iban", value, ""

    def ssn(self, locale: str) -> Value:
        """Return a US social security number."""
        del locale
        return "ssn", self.fakers["en_US"].ssn(), ""

    def secret(self, locale: str) -> Value:
        """Return a key as its service writes it."""
        del locale
        upper = string.ascii_uppercase + "234567"
        return "secret", self.random.choice([
            "AKIA" + self.letters(16, upper), "ASIA" + self.letters(16, upper),
            "ghp_" + self.letters(36), "gho_" + self.letters(36),
            f"github_pat_{self.letters(22)}_{self.letters(59)}",
            f"xoxb-{self.letters(12, '123456789')}-{self.letters(12, '123456789')}-{self.letters(24)}",
            f"xoxp-{self.letters(11, '123456789')}-{self.letters(11, '123456789')}-{self.letters(32, HEXADECIMAL)}",
            "AIza" + self.letters(35), "sk_live_" + self.letters(24), "rk_live_" + self.letters(24),
            "sk_test_" + self.letters(24), "sk-" + self.letters(48), "sk-proj-" + self.letters(64),
            "sk-ant-api03-" + self.letters(93) + "AA", "hf_" + self.letters(34),
            "glpat-" + self.letters(20), "npm_" + self.letters(36),
            f"SG.{self.letters(22)}.{self.letters(43)}",
            f"eyJhbGciOiJIUzI1NiJ9.eyJ{self.letters(40)}.{self.letters(43)}",
        ]), ""  # fmt: skip

    def letters(self, count: int, alphabet: str = ALPHANUMERIC) -> str:
        """Return random characters."""
        return "".join(self.random.choices(alphabet, k=count))

    def decoy(self) -> str:
        """Return what only looks like personal data."""
        faker, number = self.fakers["en_US"], self.random.randint
        year, page = number(1900, 2025), number(10, 900)
        grouped = f"{number(10**6, 10**9 - 1):,}"
        return self.random.choice(DECOYS).format(
            isbn13=faker.isbn13(), isbn10=faker.isbn10(), ean13=faker.ean13(), date=faker.date(),
            iso=faker.iso8601(), unix=faker.unix_time(), sha1=faker.sha1(), md5=faker.md5(),
            sha256=faker.sha256(), uuid4=faker.uuid4(), lat=faker.latitude(), lon=faker.longitude(),
            mac=faker.mac_address(), private=faker.ipv4_private(), price=faker.pricetag(),
            version=f"{number(0, 20)}.{number(0, 30)}.{number(0, 40)}", zip=faker.zipcode_plus4(),
            version4=f"{number(0, 9)}.{number(0, 30)}.{number(0, 9)}.{number(0, 300)}",
            doi=number(1000, 9999), year=year, year2=year + number(1, 60), page=page, word=faker.word(),
            page2=page + number(1, 40), word2=faker.word(), arxiv=f"{number(7, 23):02d}{number(1, 12):02d}.{number(0, 99999):05d}",
            six=number(10**5, 10**6), seven=number(10**6, 10**7), eight=number(10**7, 10**8),
            nine=number(10**8, 10**9 - 1), ten=number(10**9, 10**10 - 1), twelve=number(10**11, 10**12),
            sku=faker.bothify("??-####-##").upper(), tracking=faker.bothify("1Z###??#########").upper(),
            large=grouped, spaced=grouped.replace(",", " "), small=number(1, 999), small2=number(1, 999),
            decimal=f"{self.random.random() * 1000:.4f}", decimal2=f"{self.random.random():.7f}",
            decimal3=f"{self.random.random() * 90:.6f}", time=faker.time(), time2=faker.time(),
            mozilla=faker.user_agent(), hexcolor=faker.hex_color(), port=faker.port_number(),
            imei=faker.numerify("%##############"),
        )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the texts."""
    parser = argparse.ArgumentParser(description="texts with labelled personal data")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--texts", type=int, default=3000, help="of the six main locales together")
    given = parser.parse_args(arguments)
    maker = Maker(given.seed)
    for number in range(given.texts):
        sys.stdout.write(json.dumps(maker.text(LOCALES[number % len(LOCALES)])) + "\n")
    for number in range(given.texts // 3):
        sys.stdout.write(json.dumps(maker.text(OTHERS[number % len(OTHERS)])) + "\n")


if __name__ == "__main__":
    main()
