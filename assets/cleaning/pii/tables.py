"""Tables for the search of personal data: classes of bytes, lengths of IBANs, top-level domains."""

from __future__ import annotations

import string
from functools import cache

import numpy as np

DIGIT, UPPER, LOWER, HYPHEN, UNDERSCORE, GAP, HEX, VALUE = (1 << bit for bit in range(8))
"""Classes of a byte: `GAP` may stand inside a number, `VALUE` inside a secret."""
LETTER = UPPER | LOWER
WORD = DIGIT | LETTER | HYPHEN | UNDERSCORE

# ISO 13616, the registry of SWIFT: characters of an IBAN by country.
_IBAN_LENGTHS = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18"
    " DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22"
    " IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19"
    " MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31"
    " SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30"
)

# First two bytes of what `pii_secrets` knows to begin a secret.
_KNOWN_BEGINNINGS = (
    "AK AS AB AC A3 gh gi gl xo xa sk rk pk AI GO hf np py ke SK ey do sh gs da PM li nt se fi wh"
    " sn hv AT ru nv ts r8 sq EA dc AG"
)

# Country codes that are delegated as top-level domains (ISO 3166-1, and EU, UK, SU, AC).
_COUNTRIES = (
    "ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo"
    " br bs bt bw by bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm"
    " do dz ec ee eg er es et eu fi fj fk fm fo fr ga gd ge gf gg gh gi gl gm gn gp gq gr gs"
    " gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg kh ki km"
    " kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mg mh mk ml mm mn mo mp"
    " mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk"
    " pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg sh si sk sl sm sn so sr ss"
    " st su sv sx sy sz tc td tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug uk us uy uz va"
    " vc ve vg vi vn vu wf ws ye yt za zm zw"
)

# Generic top-level domains in use for addresses.
_DOMAINS = (
    "com org net edu gov mil int info biz name pro aero coop museum jobs mobi travel tel cat asia"
    " post arpa app dev page blog shop store online site website tech technology cloud email mail"
    " agency academy art bank bar bike business cafe capital care careers center chat church city"
    " clinic club coach codes coffee community company computer consulting contact cool dental"
    " design digital direct directory doctor domains earth education energy engineer engineering"
    " events exchange expert express family farm fashion finance financial fit fitness foundation"
    " fund fun gallery games global gmbh gold golf graphics group guide guru health help holdings"
    " host hosting hotel house immo inc industries ink institute insure international investments"
    " kitchen land law lawyer legal life limited link live llc loan ltd management market marketing"
    " media memorial money movie nature network news ngo ninja one ong partners parts photo photos"
    " pictures pizza plus press productions properties pub realty red rent repair report rest"
    " restaurant reviews rocks run sale school schule science security services social software"
    " solar solutions space sport stream studio study style support systems tax team theater tips"
    " today tools top tours town toys trade training university vacations ventures vet video villas"
    " vip vision wang watch wedding wiki win wine work works world wtf xyz yoga zone amsterdam"
    " berlin brussels hamburg koeln london madrid moscow nyc paris quebec ruhr scot swiss tirol"
    " tokyo vegas vlaanderen wales wien bayern eus gal bzh corsica google microsoft apple"
)


@cache
def byte_classes() -> np.ndarray:
    """Return the classes of every byte, shape (256,), dtype uint8."""
    classes = np.zeros(256, np.uint8)
    for members, flags in (
        ("0123456789", DIGIT | HEX | VALUE),
        ("ABCDEFGHIJKLMNOPQRSTUVWXYZ", UPPER | VALUE),
        ("abcdefghijklmnopqrstuvwxyz", LOWER | VALUE),
        ("ABCDEFabcdef", HEX),
        ("-", HYPHEN | VALUE),
        ("_", UNDERSCORE | VALUE),
        ("/+=.~", VALUE),
        (" .()/-", GAP),
    ):
        classes[[ord(member) for member in members]] |= np.uint8(flags)
    # Spaces and hyphens beyond ASCII: U+00A0, U+202F, U+2010 to U+2013.
    classes[[0xC2, 0xA0, 0xE2, 0x80, 0xAF, 0x90, 0x91, 0x92, 0x93]] |= np.uint8(GAP)
    return classes


@cache
def iban_lengths() -> np.ndarray:
    """Return the characters of an IBAN by country, 0 where there are none; shape (676,), int64."""
    lengths = np.zeros(26 * 26, np.int64)
    for item in _IBAN_LENGTHS.split():
        lengths[(ord(item[0]) - 65) * 26 + ord(item[1]) - 65] = int(item[2:])
    return lengths


@cache
def known_beginnings() -> np.ndarray:
    """Return which pairs of bytes begin a secret, shape (65536,), dtype bool."""
    pairs = np.zeros(1 << 16, np.bool_)
    for pair in _KNOWN_BEGINNINGS.split():
        pairs[ord(pair[0]) << 8 | ord(pair[1])] = True
    for first in "MNO":  # the identity of a Discord account in base64, before two dots
        pairs[
            [ord(first) << 8 | ord(second) for second in string.ascii_letters + string.digits]
        ] = True
    return pairs


@cache
def top_level_domains() -> frozenset[str]:
    """Return the top-level domains that an address may end in, lower case."""
    return frozenset([*_DOMAINS.split(), *_COUNTRIES.split()])
