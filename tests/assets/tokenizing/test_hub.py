"""A tokenizer by name comes only when asked for, and the reason is said when it cannot."""

from __future__ import annotations

import hashlib
import http.server
import threading

import pytest
from typing_extensions import override

from assets.errors import ConfigurationError
from assets.settings.tokens import TokenizerSettings
from assets.tokenizing import hub
from assets.tokenizing.hub import download_tokenizer
from assets.tokenizing.train import materialize_tokenizer
from tests.assets.tokenizing.kept_root import EOS, KeptRoot, word_tokenizer


@pytest.fixture
def server(tmp_path):
    """Serve files of a folder laid out like the hub, and return (url, folder)."""
    folder = tmp_path / "hub"

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(folder))

        @override
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}", folder
        running.shutdown()
        thread.join()


def test_a_file_is_brought_whole_and_never_replaced(server, tmp_path):
    url, folder = server
    place = folder / "owner" / "words" / "resolve" / "v1"
    place.mkdir(parents=True)
    data = word_tokenizer(tmp_path).read_bytes()
    (place / "tokenizer.json").write_bytes(data)
    target = tmp_path / "new" / "words.json"
    sha256 = download_tokenizer("owner/words", target, revision="v1", endpoint=url)
    assert target.read_bytes() == data
    assert sha256 == hashlib.sha256(data).hexdigest()
    with pytest.raises(ConfigurationError, match="is there already"):
        download_tokenizer("owner/words", target, revision="v1", endpoint=url)


def test_what_is_no_tokenizer_leaves_no_file(server, tmp_path, monkeypatch):
    url, folder = server
    place = folder / "owner" / "page" / "resolve" / "main"
    place.mkdir(parents=True)
    (place / "tokenizer.json").write_bytes(b"<html>sign in</html>")
    target = tmp_path / "page.json"
    with pytest.raises(ConfigurationError, match=r"is no tokenizer\.json"):
        download_tokenizer("owner/page", target, endpoint=url)
    monkeypatch.setattr(hub, "MAX_BYTES", 4)
    with pytest.raises(ConfigurationError, match="larger than 4 bytes"):
        download_tokenizer("owner/page", target, endpoint=url)
    with pytest.raises(ConfigurationError, match=r"404 .* set tokenizer\.path"):
        download_tokenizer("owner/none", target, endpoint=url)
    assert not target.exists()


def test_without_a_network_the_way_out_is_said(tmp_path):
    with pytest.raises(ConfigurationError, match=r"cannot be reached .* copy it here"):
        download_tokenizer("owner/name", tmp_path / "t.json", endpoint="http://127.0.0.1:9")


@pytest.mark.parametrize(
    ("name", "revision"), [("gpt2", "main"), ("a/b/c", "main"), ("../x", "main"), ("a/b", "../c")]
)
def test_only_names_are_asked_for(tmp_path, name, revision):
    with pytest.raises(ConfigurationError, match="owner/name"):
        download_tokenizer(name, tmp_path / "t.json", revision=revision, endpoint="http://x")


def test_a_name_in_the_configuration_downloads_nothing_and_names_the_command(tmp_path):
    kept = KeptRoot(tmp_path)
    kept.land({("s", "a"): ["a"]})
    settings = kept.settings(tokenizer=TokenizerSettings(path="allenai/dolma2", eos_token=EOS))
    with pytest.raises(ConfigurationError, match=r"olmo-data tokenizer allenai/dolma2 --output"):
        materialize_tokenizer(kept.root, settings, kept.log)
