"""Urls as they may be stored: without passwords and without the signatures of signed links."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

_SIGNATURES = frozenset(
    {
        "x-amz-signature",
        "x-amz-credential",
        "x-amz-security-token",
        "x-goog-signature",
        "x-goog-credential",
        "awsaccesskeyid",
        "googleaccessid",
        "signature",
        "key-pair-id",
        "policy",
        "sig",
        "sas",
        "access_token",
    }
)
"""Query parameters, in lower case, that let whoever holds the url act as its owner."""


def clean_url(url: str) -> str:
    """Return `url` without userinfo and without signature parameters; otherwise unchanged."""
    if "@" not in url and not ("?" in url and "=" in url):
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        # Not a url by the rules (an open bracket, say); keep it, but nothing before an @.
        return url.rsplit("@", 1)[-1]
    netloc = parts.netloc.rsplit("@", 1)[-1]
    pairs = parts.query.split("&")
    query = "&".join(pair for pair in pairs if pair.split("=", 1)[0].lower() not in _SIGNATURES)
    if netloc == parts.netloc and query == parts.query:
        return url
    return urlunsplit(parts._replace(netloc=netloc, query=query))
