"""Wiki pages that only lead to another, told by their text: `#REDIRECT [[Other page]]`.

Old exports, those of other tools and rows of tables have no `<redirect>` element, and no export
says what its wiki writes instead of REDIRECT. MediaWiki understands the English word and those of
the wiki's language, without regard to case; here they are those of all languages, for an article
does not start with one of them as an item of a list, followed by a link.
"""

from __future__ import annotations

import re

_WORDS = """
    aanstuur adkas ail-cyfeirio ailgyfeirio alidirekti alidirektu alih athsheoladh
    beralîkirin birzuzendu daskedyans doorverwijzing hetenayiş
    i̇sti̇qamətləndi̇r i̇sti̇qamətləndi̇rmə kiahou lencong leidt_öm_op
    ohjaus omdiriger omdirigering peradresavimas przekieruj patrz tam
    presmeruj preusmeri preusmeritev preusmjeri přesměruj pusapuna pāradresācija
    redirecteaza redirección redireccion redirecionamento redirect redirection redirèccion
    reendrecera endrecera renviament ridrejto rimando rindirizza rinvia rinvio
    stivren suuna tilvísun uudelleenohjaus varda viruleedung weiterleitung wiederleiden
    yonaltirish yo\u02bbnaltirish yönlendi̇r yönlendi̇rme átirányítás ömleide ömleide_op ömleidung đổi
    ανακατευθυνση
    айдау виж види перанакіраванне перенапр перенаправление перенаправлення пренасочване
    пренасочување пренасочување преусмери преусмјери редирект чиглүүлэг юнәлтү
    վերահղում გადამისამართება הפניה ווייטערפירן
    تحويل تغییرمسیر تغییر_مسیر رجوع_مکرر چوريو بور
    अनुप्रेषित पुनर्निर्देशन पुनर्प्रेषित पुर्ननिर्देशन পুনর্নির্দেশ ਰੀਡਿਰੈਕਟ ଲେଉଟାଣି
    வழிமாற்று దారిమార్పు തിരിച്ചുവിടുക തിരിച്ചുവിടൽ යළියොමුව เปลี่ยนทาง
    넘겨주기 転送 リダイレクト 重定向 重新導向
"""
_REDIRECT = re.compile(
    r"\s{0,1000}[#\uff03](?P<word>[^\s:\[#\uff03]{1,30})\s{0,100}:?\s{0,100}\[\[(?P<target>[^\[\]|\n]{1,300})"
)
_DOT_ABOVE, _DOTLESS = "\u0307", "\u0131"


def redirect_target(source: str) -> str | None:
    """Return the title that a page's wikitext leads to, None if it is a page of its own."""
    match = _REDIRECT.match(source)
    if match is None or _fold(match["word"]) not in _FOLDED:
        return None
    return match["target"].strip()


def _fold(word: str) -> str:
    """Return a word without case; that of the Turkish I, written with and without dot, too."""
    return word.casefold().replace(_DOT_ABOVE, "").replace(_DOTLESS, "i")


_FOLDED = frozenset(map(_fold, _WORDS.split()))
