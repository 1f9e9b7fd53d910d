"""What the words around a run of digits say: it is called, or it is an order, an id, an ISBN.

The nearest word that says anything decides. Words are read from a window of fixed length before the
digits, so what is asked costs the same for any text.
"""

from __future__ import annotations

import re
from enum import IntEnum


class Said(IntEnum):
    """What the words before a number say about it."""

    OTHER = 0
    """It is something else: an order, an ISBN, an amount."""
    NOTHING = 1
    REACHED = 2
    """Somebody is reached by it: "call", "contact", "my number"."""
    PHONE = 3
    """It is a telephone's: "tel", "mobile", "fax"."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WINDOW, _MAX_WORDS, _MAX_WORDS_OTHER = 72, 9, 4
_WORD = re.compile(
    r"\d+|[^\W\dA-Z_]+|[A-Z]+(?![^\W\dA-Z_])|[A-Z][^\W\dA-Z_]*|#|\n|[.!?;](?= +[A-Z])"
)
_AFTER = re.compile(
    rb"[ ,)\]]{0,3}(?:[-(]|\xe2\x80\x93)? ?(?:mobile|cell|fax|phone|tel|landline|whatsapp|voicemail"
    rb"|mobil|handy|portable|cellulare|m\xc3\xb3vil|office|direct)\b(?! ?[:.]|[\w' -]*\d)"
    rb"| (?:is|was) (?:my|our|his|her|their|the|your)(?: \w{1,12}){0,2}?"
    rb" (?:phone|number|cell|mobile|fax)",
    re.IGNORECASE,
)

_PHONE = _words(
    "tel tels tél tlf telf tfno tfn ph phone phones telephone telephones téléphone téléphones"
    " telefon telefone telefono telefoni teléfono teléfonos telefoon telefonu telefonnummer"
    " telefonnummern phonenumber phoneno phonenum fax faxes faxnummer telefax mobile mobil"
    " mobilnummer mobiltelefon móvil movil cell cellphone cellular celular cellulare portable"
    " handy handynummer rufnummer rufnummern hotline helpline landline whatsapp sms voicemail"
    " tollfree freephone switchboard komórka puhelin telefón тел телефон телефона факс моб τηλ"
    " τηλέφωνο"
)
_PHONE_PARTS = ("电话", "電話", "手机", "手機", "传真", "전화", "휴대", "携帯")
_REACHED = _words(
    "call calls called calling dial dialing ring reach reached contact contacts callback appelez"
    " appeler appelle joindre contactez contacter anrufen rufen ruf erreichen erreichbar kontakt"
    " chiama chiamare chiamami chiamate contatta contattare contatti llame llamar llama llámame"
    " contacto contactar ligue ligar contato service support helpdesk reception enquiries"
    " inquiries office bel bellen zadzwoń"
)
_NUMBER = _words("number numbers num no nr numéro numero número nummer номер")
_MINE = _words(
    "my our his her their your mon notre son votre mein meine unsere ihre mio nostro suo mi"
    " nuestro su tu nuestra minha meu"
)
_OTHER = _words(
    "order orders invoice invoices id ids ident account accounts acct ticket tickets case ref"
    " reference serial sku part item items product model tracking isbn issn ismn ean upc gtin asin"
    " doi pmid pmcid oclc lccn arxiv xiv imei iccid patent zip zipcode postcode postal plz"
    " timestamp ts epoch unix version ver build revision rev commit port row rows page pages usd"
    " eur gbp price bytes size offset hash md5 sha vat tax ein siret siren routing iban konto"
    " kontonummer bic nif cuit uid gid pid tweet status post posts article document record file"
    " slot pub widget video image photo bug issue cve rfc iso catalog license licence claim"
    " passport booking confirmation flight batch lot sample vin gene chr coordinates lat lon"
    " latitude longitude seed nonce block tx transaction payment amount total sum population"
    " bestellung bestellnummer rechnung rechnungsnummer kundennummer auftrag auftragsnummer"
    " artikel artikelnummer aktenzeichen vorgang commande facture référence dossier ordine fattura"
    " codice pratica pedido factura referencia expediente código cas pin otp code codes section"
    " table figure vol volume key index count value width height radius duration user users userid"
    " card ssn undid package merge merged sha hash cherry backport"
)
_BREAKS = frozenset("\n.!?;")
_HASH = "#"
_ONLY_LAST = _words("portable handy cell cellular mobile mobil service support office")
"""Words that mean something else as well: they count only right before a number."""
_FORMS_OF_ISBN = ("10", "13")
_BETWEEN = _words(
    "or and oder und ou et o y e us me at on is are under unter al au no nr num number numbers to"
    " the our or + extension ext x"
)
"""Words between numbers of one list, and before its first."""


def said_before(text: bytes, start: int) -> tuple[Said, bool]:
    """Return what the words before text[start:] say, and whether the very last of them says it.

    Words of an earlier line or sentence say nothing, nor do those before another number unless both
    stand in a list ("Tel: 030 90180 or 030 90181").
    """
    window = text[max(0, start - _WINDOW) : start].decode(errors="replace")
    words = [word.lower() for word in _WORD.findall(window)][-_MAX_WORDS:]
    is_list = False
    for back, word in enumerate(reversed(words)):
        if word in _FORMS_OF_ISBN:
            continue
        before = words[: len(words) - back - 1]
        said = _said(word, before, back, is_list=is_list)
        if said is not Said.NOTHING:
            return said, back == 0
        is_number = word.isdigit()
        if word in _BREAKS or (is_list and not is_number and word not in _BETWEEN):
            break
        if is_number and not is_list:
            if not _BETWEEN.issuperset(words[len(words) - back :]):
                break
            is_list = True
    return Said.NOTHING, False


def says_phone_after(text: bytes, end: int) -> bool:
    """Tell whether the words behind a number say that it is a telephone's."""
    return _AFTER.match(text, end, end + 48) is not None


def _said(word: str, before: list[str], back: int, *, is_list: bool) -> Said:
    if word in _PHONE or (not word.isascii() and any(part in word for part in _PHONE_PARTS)):
        is_other = before[-1:] == ["i"] or (word in _ONLY_LAST and back > 1)
        return Said.NOTHING if is_other else Said.PHONE
    if word in _REACHED and (word not in _ONLY_LAST or back < 2):
        return Said.REACHED
    if word in _NUMBER and not _MINE.isdisjoint(before[-1:]):
        return Said.REACHED
    is_near = back < _MAX_WORDS_OTHER and not is_list
    if is_near and (word in _OTHER or (word == _HASH and back == 0)):
        return Said.OTHER
    return Said.NOTHING
