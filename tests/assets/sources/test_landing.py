"""Landing writes down what changed, once, in an order that does not depend on the machine."""

import os
import threading

import pytest

from assets.errors import IntegrityError, LandingError
from assets.root import Root
from assets.settings.schema import Settings
from assets.settings.sources import SourceSettings
from assets.settings.tokens import TokenizerSettings
from assets.sources import landing_log
from assets.sources.landing import inventory_digest, land
from assets.sources.landing_log import group_into_tasks, read_log
from assets.sources.tasks import expected_tasks


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OLMO_DATA_CACHE", str(tmp_path / "cache"))


def make_settings(tmp_path, *names, paths=None):
    sources = tuple(
        SourceSettings(name=name, paths=paths or (f"{name}/**/*.txt",)) for name in names
    )
    return Settings(
        root=str(tmp_path / "root"),
        sources=sources,
        tokenizer=TokenizerSettings(path="t"),
        base_dir=str(tmp_path),
    )


def put(tmp_path, path, text):
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def ops(generation):
    return [(entry.op, entry.path) for entry in generation.entries]


def test_generations_record_add_replace_move_and_remove(tmp_path):
    settings, root = make_settings(tmp_path, "wiki"), Root(str(tmp_path / "root"))
    for name in "abc":
        put(tmp_path, f"wiki/{name}.txt", name)
    assert ops(land(root, settings).generation(1)) == [
        ("add", "a.txt"),
        ("add", "b.txt"),
        ("add", "c.txt"),
    ]
    assert land(root, settings).last_generation == 1
    put(tmp_path, "wiki/a.txt", "a changed")
    (tmp_path / "wiki/deep").mkdir()
    (tmp_path / "wiki/b.txt").rename(tmp_path / "wiki/deep/b.txt")
    (tmp_path / "wiki/c.txt").unlink()
    log = land(root, settings)
    assert ops(log.generation(2)) == [
        ("replace", "a.txt"),
        ("remove", "c.txt"),
        ("move", "deep/b.txt"),
    ]
    version = log.landed[("wiki", "a.txt")]
    assert version.replaces is not None
    assert version.replaces.generation == 1
    assert version.file_id != version.replaces.file_id
    assert log.landed[("wiki", "deep/b.txt")].path == "b.txt"
    assert [item.path for item in log.generation(2).versions] == ["a.txt"]
    assert read_log(root) == log


def test_a_file_changed_and_changed_back_gets_ids_of_its_own(tmp_path):
    settings, root = make_settings(tmp_path, "wiki"), Root(str(tmp_path / "root"))
    ids = []
    for text in ("A", "B", "A"):
        put(tmp_path, "wiki/a.txt", text)
        ids.append(land(root, settings).landed[("wiki", "a.txt")].file_id)
    assert len(set(ids)) == 3


def test_a_removed_file_that_comes_back_makes_no_documents(tmp_path):
    settings, root = make_settings(tmp_path, "wiki"), Root(str(tmp_path / "root"))
    put(tmp_path, "wiki/a.txt", "a")
    put(tmp_path, "wiki/b.txt", "b")
    land(root, settings)
    (tmp_path / "wiki/a.txt").unlink()
    assert ops(land(root, settings).generation(2)) == [("remove", "a.txt")]
    put(tmp_path, "wiki/a.txt", "a")
    log = land(root, settings)
    assert ops(log.generation(3)) == [("move", "a.txt")]
    assert log.generation(3).versions == ()
    (tmp_path / "wiki/a.txt").unlink()
    land(root, settings)
    put(tmp_path, "wiki/a.txt", "other")
    log = land(root, settings)
    assert ops(log.generation(5)) == [("replace", "a.txt")]
    replaced = log.landed[("wiki", "a.txt")].replaces
    assert replaced is not None
    assert replaced.generation == 1


def test_only_named_sources_are_scanned(tmp_path):
    settings, root = make_settings(tmp_path, "wiki", "books"), Root(str(tmp_path / "root"))
    put(tmp_path, "wiki/a.txt", "a")
    put(tmp_path, "books/a.txt", "a")
    log = land(root, settings, only=["books"])
    assert [entry.source for entry in log.generation(1).entries] == ["books"]
    assert [entry.source for entry in land(root, settings).generation(2).entries] == ["wiki"]


def test_two_landings_at_once_write_one_record(tmp_path):
    settings = make_settings(tmp_path, "wiki")
    for number in range(20):
        put(tmp_path, f"wiki/{number}.txt", str(number))
    heads: list[str] = []
    threads = [
        threading.Thread(target=lambda: heads.append(str(land(Root(settings.root), settings).head)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(heads) == 4
    assert len(set(heads)) == 1
    assert read_log(Root(settings.root)).last_generation == 1


def test_the_folder_of_a_corpus_may_move(tmp_path):
    root = Root(str(tmp_path / "root"))
    put(tmp_path, "here/wiki/x/a.txt", "a")
    land(root, make_settings(tmp_path, "wiki", paths=("here/wiki/**/*.txt",)))
    (tmp_path / "here").rename(tmp_path / "there")
    log = land(root, make_settings(tmp_path, "wiki", paths=("there/wiki/**/*.txt",)))
    assert log.last_generation == 1


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (("nowhere/*.txt",), "nowhere of the pattern .* does not exist"),
        (("wiki/*.md",), "no file matches wiki/\\*.md"),
        (("https://example.org/*.txt",), "is not among what may be read"),
        (("/etc/*.conf",), "outside the folders that may be read"),
        (("wiki/*.txt", "wiki/more/*.txt"), "would both land as 'a.txt'"),
        (("wiki/*.txt", "wiki/b.txt"), "there is no file .*wiki/b.txt; put it there"),
        (("wiki/*.txt", "wiki/more"), "there is no file .*wiki/more; .* end it with /"),
    ],
)
def test_what_cannot_land_is_one_clear_error(tmp_path, paths, expected):
    put(tmp_path, "wiki/a.txt", "a")
    put(tmp_path, "wiki/more/a.txt", "b")
    with pytest.raises(LandingError, match=f"source 'wiki': .*{expected}"):
        land(Root(str(tmp_path / "root")), make_settings(tmp_path, "wiki", paths=paths))
    assert not (tmp_path / "root" / "landings").exists()


def test_a_named_file_may_go_after_it_landed(tmp_path):
    put(tmp_path, "wiki/a.txt", "a")
    file = put(tmp_path, "wiki/b.txt", "b")
    root, settings = (
        Root(str(tmp_path / "root")),
        make_settings(tmp_path, "wiki", paths=("wiki/a.txt", "wiki/b.txt")),
    )
    land(root, settings)
    file.unlink()
    assert ops(land(root, settings).generation(2)) == [("remove", "b.txt")]
    assert land(root, settings).last_generation == 2
    file.write_text("b")
    assert ops(land(root, settings).generation(3)) == [("move", "b.txt")]


def test_a_link_out_of_the_allowed_folders_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("OLMO_DATA_ALLOWED_PATHS", str(tmp_path / "wiki"))
    put(tmp_path, "secret.txt", "s")
    put(tmp_path, "wiki/a.txt", "a")
    (tmp_path / "wiki/b.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(LandingError, match="OLMO_DATA_ALLOWED_PATHS"):
        land(Root(str(tmp_path / "root")), make_settings(tmp_path, "wiki"))


def test_an_unreadable_file_is_named(tmp_path):
    file = put(tmp_path, "wiki/a.txt", "a")
    file.chmod(0)
    if os.access(file, os.R_OK):
        pytest.skip("this user may read every file")
    with pytest.raises(LandingError, match="cannot be read"):
        land(Root(str(tmp_path / "root")), make_settings(tmp_path, "wiki"))


def test_a_missing_or_altered_record_is_named(tmp_path):
    settings, root = make_settings(tmp_path, "wiki"), Root(str(tmp_path / "root"))
    for text in ("1", "2", "3"):
        put(tmp_path, "wiki/a.txt", text)
        land(root, settings)
    second = tmp_path / "root/landings/00000002.json"
    data = second.read_bytes()
    second.write_bytes(data.replace(b"replace", b"add"))
    with pytest.raises(IntegrityError, match=r"00000003\.json does not follow"):
        read_log(root)
    second.unlink()
    with pytest.raises(IntegrityError, match=r"00000002\.json is missing"):
        read_log(root)


def test_a_file_moved_before_it_was_decoded_is_found_where_it_is(tmp_path):
    settings, root = make_settings(tmp_path, "wiki"), Root(str(tmp_path / "root"))
    put(tmp_path, "wiki/a.txt", "a")
    land(root, settings)
    (tmp_path / "wiki/a.txt").rename(tmp_path / "wiki/b.txt")
    (version,) = land(root, settings).generation(1).versions
    assert (version.path, version.location) == ("a.txt", str(tmp_path / "wiki/b.txt"))


def test_inventory_digest_sees_new_and_changed_files(tmp_path):
    settings = make_settings(tmp_path, "wiki")
    file = put(tmp_path, "wiki/a.txt", "a")
    seen = [inventory_digest(settings), inventory_digest(settings)]
    put(tmp_path, "wiki/b.txt", "b")
    seen.append(inventory_digest(settings))
    os.utime(file, (1, 1))
    seen.append(inventory_digest(settings))
    assert seen[0] == seen[1]
    assert len(set(seen)) == 3


def test_tasks_take_files_in_path_order_up_to_a_size(tmp_path, monkeypatch):
    monkeypatch.setattr(landing_log, "TASK_BYTES", 10)
    settings, root = make_settings(tmp_path, "wiki"), Root(str(tmp_path / "root"))
    for name, size in (("a", 4), ("b", 6), ("c", 1), ("d", 30), ("e", 2)):
        put(tmp_path, f"wiki/{name}.txt", name * size)
    log = land(root, settings)
    groups = group_into_tasks(log.generation(1).of_source("wiki"))
    assert [[item.path[0] for item in group] for group in groups] == [
        ["a", "b"],
        ["c"],
        ["d"],
        ["e"],
    ]
    assert len(expected_tasks(log)[1]) == 4
