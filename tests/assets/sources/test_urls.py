from __future__ import annotations

import pytest

from assets.sources.formats.urls import clean_url


@pytest.mark.parametrize(
    ("url", "clean"),
    [
        ("https://a.example/x?b=1&c", "https://a.example/x?b=1&c"),
        ("https://me:secret@a.example/x", "https://a.example/x"),
        ("https://me@a.example:80/x@y?e=a@b", "https://a.example:80/x@y?e=a@b"),
        ("https://s3/x?X-Amz-Signature=s&v=1&AWSAccessKeyId=k", "https://s3/x?v=1"),
        ("https://s3/x?Signature=s#top", "https://s3/x#top"),
        ("mailto:a@b.example", "mailto:a@b.example"),
        ("http://[broken@x", "x"),
        ("", ""),
    ],
)
def test_passwords_and_signatures_go(url: str, clean: str) -> None:
    assert clean_url(url) == clean
