"""Sources on web servers and in buckets land and decode as files of this machine do."""

from __future__ import annotations

import gzip
from functools import partial
from urllib.parse import quote, urlsplit

import pytest

from assets.errors import LandingError
from assets.root import Root
from assets.settings.schema import Settings
from assets.settings.sources import SourceSettings
from assets.settings.tokens import TokenizerSettings
from assets.sources.allowed_hosts import (
    ALLOWED_HOSTS_VARIABLE,
    PRIVATE_HOSTS_VARIABLE,
    HostGuard,
)
from assets.sources.decode import decode_task
from assets.sources.landing import inventory_digest, land
from assets.sources.path_globs import expand_braces, matches
from assets.sources.patterns import find_files
from assets.sources.tasks import decode_tasks
from tests.olmo_loader.s3_server import s3_server
from tests.olmo_loader.web_server import WebServer, serve

FILES = {
    "crawl/a/one.jsonl.gz": b'{"text": "one", "id": 1}\n{"text": "two"}\n',
    "crawl/b/deep/three.jsonl.gz": b'{"text": "three"}\n',
    "crawl/b/other.txt": b"left out",
    "crawl/.hidden/four.jsonl.gz": b'{"text": "four"}\n',
    "crawl/with a space/f\xc3\xbcnf.jsonl.gz".encode("latin-1").decode("utf-8"): b'{"text": "5"}\n',
}
LANDED = ["a/one.jsonl.gz", "b/deep/three.jsonl.gz", "with a space/fünf.jsonl.gz"]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OLMO_DATA_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "served"
    for name, data in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
    return folder


@pytest.fixture
def web(corpus, monkeypatch):
    """A server with ranges whose folders answer with index pages."""
    with serve(corpus) as server:
        host = urlsplit(server.url).netloc
        monkeypatch.setenv(ALLOWED_HOSTS_VARIABLE, host)
        monkeypatch.setenv(PRIVATE_HOSTS_VARIABLE, host)
        server.index_page = partial(_index_page, corpus)
        yield server


def _index_page(folder, path):
    names = [f"{file.name}/" if file.is_dir() else file.name for file in folder_of(folder, path)]
    links = [f'<a href="{quote(name)}">{name}</a>' for name in names]
    return "\n".join(['<a href="../">up</a>', *links]).encode()


def folder_of(folder, path):
    return sorted((folder / path.strip("/")).iterdir())


def settings_of(tmp_path, *patterns, root="root") -> Settings:
    return Settings(
        root=str(tmp_path / root),
        sources=(SourceSettings(name="crawl", paths=patterns),),
        tokenizer=TokenizerSettings(path="t"),
        base_dir=str(tmp_path),
    )


def texts_of(settings):
    root = Root(settings.root)
    log = land(root, settings)
    found = []
    for task in decode_tasks(settings.root, settings, log, ("crawl",)):
        for part in decode_task(task.payload):
            table = root.read_table(part.objects["data"])
            found += list(
                zip(
                    table["landed_path"].to_pylist(),
                    zip(table["doc_id"].to_pylist(), table["text"].to_pylist(), strict=True),
                    strict=True,
                )
            )
    return found


def test_a_web_server_gives_what_the_folder_gives(tmp_path, corpus, web):
    local = settings_of(tmp_path, f"{corpus}/crawl/**/*.jsonl.gz", root="local")
    remote = settings_of(tmp_path, f"{web.url}/crawl/**/*.jsonl.gz")
    assert [file.landed_path for file in find_files(remote.sources[0], remote)] == LANDED
    assert texts_of(remote) == texts_of(local) != []


def test_a_bucket_gives_what_the_folder_gives(tmp_path, corpus, bucket):
    local = settings_of(tmp_path, f"{corpus}/crawl/**/*.jsonl.gz", root="local")
    remote = settings_of(tmp_path, f"s3://{bucket}/crawl/**/*.jsonl.gz")
    assert [file.landed_path for file in find_files(remote.sources[0], remote)] == LANDED
    assert texts_of(remote) == texts_of(local) != []
    plain = settings_of(tmp_path, f"s3://{bucket}/crawl/{{a,b/deep}}/*.jsonl.gz")
    assert len(find_files(plain.sources[0], plain)) == 2


@pytest.fixture
def bucket(corpus, monkeypatch):
    s3fs = pytest.importorskip("s3fs")
    with s3_server() as environment:
        for name, value in (environment | {ALLOWED_HOSTS_VARIABLE: "s3://corpora"}).items():
            monkeypatch.setenv(name, value)
        system = s3fs.S3FileSystem(skip_instance_cache=True)
        system.mkdir("corpora")
        for name in FILES:
            system.pipe(f"corpora/{name}", (corpus / name).read_bytes())
        yield "corpora"


def test_names_that_no_server_lists_are_written_out(tmp_path, web):
    settings = settings_of(tmp_path, f"{web.url}/crawl/{{a/one,b/deep/three}}.jsonl.gz")
    assert [file.landed_path for file in find_files(settings.sources[0], settings)] == [
        "one.jsonl.gz",
        "three.jsonl.gz",
    ]
    assert web.methods["GET"] == 0


@pytest.mark.parametrize("name", ["with a space/fünf", "with%20a%20space/f%C3%BCnf"])
def test_a_file_named_as_a_url_or_as_a_name_is_there(tmp_path, web, name):
    settings = settings_of(tmp_path, f"{web.url}/crawl/{name}.jsonl.gz")
    (entry,) = land(Root(settings.root), settings).generation(1).entries
    assert entry.path == "fünf.jsonl.gz"


def test_a_file_is_hashed_once_as_long_as_its_server_says_it_is_the_same(tmp_path, web, corpus):
    settings = settings_of(tmp_path, f"{web.url}/crawl/a/one.jsonl.gz")
    root = Root(settings.root)
    web.stamps = True
    land(root, settings)
    before, digest = web.methods["GET"], inventory_digest(settings)
    land(root, settings)
    assert (web.methods["GET"], inventory_digest(settings)) == (before, digest)
    (corpus / "crawl/a/one.jsonl.gz").write_bytes(gzip.compress(b'{"text": "other"}\n', mtime=0))
    assert inventory_digest(settings) != digest
    assert [entry.op for entry in land(root, settings).generation(2).entries] == ["replace"]


@pytest.mark.parametrize("change", ["longer", "same size", "gone"])
def test_what_changes_after_landing_is_told_and_never_half_read(tmp_path, web, corpus, change):
    settings = settings_of(tmp_path, f"{web.url}/crawl/{{a/one,b/deep/three}}.jsonl.gz")
    root = Root(settings.root)
    log = land(root, settings)
    file = corpus / "crawl/a/one.jsonl.gz"
    data = file.read_bytes()
    if change == "gone":
        file.unlink()
    else:
        file.write_bytes(data + b"x" if change == "longer" else data[:-1] + b"x")
    (task,) = decode_tasks(settings.root, settings, log, ("crawl",))
    (part,) = decode_task(task.payload)
    rules = root.read_table(part.objects["ledger"])["rule"].to_pylist()
    assert rules == ["missing_file" if change == "gone" else "changed_since_landing", None]
    assert root.read_table(part.objects["data"])["text"].to_pylist() == ["three"]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("https://other.example/x.jsonl", "is not among what may be read"),
        ("https://user:secret@data.example/x.jsonl", "leave user and password out"),
        ("https://data.example/x.jsonl?X-Amz-Signature=secret", "a signed one is a secret"),
        ("ftp://data.example/x.jsonl", "ftp:// is not one of http, https, s3"),
        ("s3://other/x.jsonl", "is not among what may be read"),
        ("s3://corpora-of-others/x.jsonl", "is not among what may be read"),
        ("https://data.example/{3..1}", "must run upwards"),
        ("https://data.example/{1..9999999}", "must run upwards, over 1,000,000 at most"),
    ],
)
def test_what_may_not_be_read_is_refused_without_repeating_secrets(
    tmp_path, monkeypatch, pattern, message
):
    monkeypatch.setenv(ALLOWED_HOSTS_VARIABLE, "data.example, s3://corpora")
    settings = settings_of(tmp_path, pattern)
    with pytest.raises(LandingError, match=message) as caught:
        find_files(settings.sources[0], settings)
    assert "secret@" not in str(caught.value)
    assert "Signature" not in str(caught.value)


def test_a_name_that_leads_inside_is_refused_before_anything_is_sent(tmp_path, web, monkeypatch):
    monkeypatch.delenv(PRIVATE_HOSTS_VARIABLE)
    settings = settings_of(tmp_path, f"{web.url}/crawl/a/one.jsonl.gz")
    with pytest.raises(LandingError, match=r"leads to 127\.0\.0\.1, which is no public address"):
        find_files(settings.sources[0], settings)
    assert not web.requests


def test_a_redirect_is_asked_about_like_an_address(tmp_path, web: WebServer):
    web.faults = ["redirect http://169.254.169.254/latest/meta-data"]
    settings = settings_of(tmp_path, f"{web.url}/crawl/a/one.jsonl.gz")
    with pytest.raises(LandingError, match=r"169\.254\.169\.254 is not among what may be read"):
        find_files(settings.sources[0], settings)


def test_links_that_lead_elsewhere_are_no_files_of_the_folder(tmp_path, web):
    page = (
        b'<a href="../up.txt"><a href="/crawl/a/x%2f..%2f..%2fetc.txt"><a href="http://[bad">'
        b'<a href="//elsewhere.example/crawl/a/x.txt"><a href="a.txt?C=M"><a href="one.jsonl.gz">'
        b'<a name="x"><a href="deep/er.txt">'
    )
    web.index_page = lambda path: page
    settings = settings_of(tmp_path, f"{web.url}/crawl/a/*")
    with pytest.raises(
        LandingError, match=r"is named 'x/\.\./\.\./etc\.txt', which is no plain path"
    ):
        find_files(settings.sources[0], settings)


def test_a_port_or_a_prefix_allows_no_more_than_itself(monkeypatch):
    monkeypatch.setenv(ALLOWED_HOSTS_VARIABLE, "data.example:8080,s3://corpora/public/")
    guard = HostGuard()
    guard.check_url("http://data.example:8080/x")
    guard.check_url("s3://corpora/public/x")
    for url in ("http://data.example/x", "s3://corpora/private/x", "s3://corpora/publicity"):
        with pytest.raises(LandingError):
            guard.check_url(url)


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("a/b/c.txt", "**/c.txt", True),
        ("c.txt", "**/c.txt", True),
        ("a/b/c.txt", "*/c.txt", False),
        ("a/b/c.txt", "**", True),
        ("a/.b/c.txt", "**/*.txt", False),
        (".c.txt", "*.txt", False),
        (".c.txt", ".*.txt", True),
        ("a/b", "a/[ab]", True),
        ("a/b", "a/?", True),
        ("/".join("a" * 60), "/".join(["**", "a"] * 20 + ["b"]), False),
    ],
)
def test_globs_mean_what_they_mean_for_files(path, pattern, expected):
    assert matches(path.split("/"), pattern.split("/")) is expected


def test_braces_keep_the_width_of_their_numbers():
    assert expand_braces("x{08..11}{a,b}") == [
        f"x{n}{c}" for n in ("08", "09", "10", "11") for c in "ab"
    ]
