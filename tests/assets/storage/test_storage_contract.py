"""What every store promises, run against each kind of store."""

import threading

import pytest

from assets.errors import RootError
from assets.storage.connect import connect
from assets.storage.interface import digest


@pytest.fixture(params=["local"])
def storage(request, tmp_path):
    assert request.param == "local"
    return connect(str(tmp_path / "root"))


def test_create_is_exclusive(storage):
    assert storage.create("a/b.json", b"first")
    assert not storage.create("a/b.json", b"second")
    assert storage.read("a/b.json") == b"first"


def test_replace_only_if_unchanged(storage):
    assert storage.replace("m.json", b"1", expected=None)
    assert not storage.replace("m.json", b"2", expected=None)
    assert not storage.replace("m.json", b"2", expected=digest(b"0"))
    assert storage.replace("m.json", b"2", expected=digest(b"1"))
    assert storage.read("m.json") == b"2"


def test_replace_by_many_loses_no_update(storage):
    storage.replace("count", b"0", expected=None)

    def add():
        for _ in range(20):
            while True:
                old = storage.read("count")
                if storage.replace("count", str(int(old) + 1).encode(), expected=digest(old)):
                    break

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert storage.read("count") == b"80"


def test_ranges_sizes_and_absence(storage):
    storage.create("x", b"0123456789")
    assert storage.read("x", 2, 5) == b"234"
    assert storage.read("x", 8) == b"89"
    with pytest.raises(RootError, match="expected 5"):
        storage.read("x", 8, 13)
    assert storage.size("x") == 10
    assert storage.size("y") is None
    with pytest.raises(FileNotFoundError):
        storage.read("y")
    storage.remove("y")
    storage.remove("x")
    assert storage.size("x") is None


def test_put_file_and_list_are_sorted_and_hide_staging(storage):
    for name in ("b/2", "b/1", "a/3"):
        path = storage.staging_dir() / "made"
        path.write_bytes(name.encode())
        storage.put_file(name, path)
    (storage.staging_dir() / "half").write_bytes(b"half")
    assert list(storage.list("")) == [("a/3", 3), ("b/1", 3), ("b/2", 3)]
    assert list(storage.list("b/")) == [("b/1", 3), ("b/2", 3)]
    with storage.open("a/3") as file:
        file.seek(1)
        assert file.read() == b"/3"


@pytest.mark.parametrize("name", ["../x", "/x", "a//b", "a/./b", "", "a\\b", "a/\0"])
def test_names_stay_inside_the_root(storage, name):
    with pytest.raises(RootError, match="plain name"):
        storage.create(name, b"x")


def test_a_scheme_of_a_later_version_is_refused():
    with pytest.raises(RootError, match="not in this version"):
        connect("gs://bucket/root")
