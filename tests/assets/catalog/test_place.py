"""Where the catalog lies: beside a local root, or in the cache folder if one is named."""

from assets.catalog.place import catalog_path
from assets.root import Root


def test_beside_a_local_root(tmp_path, monkeypatch):
    monkeypatch.delenv("OLMO_DATA_CACHE", raising=False)
    assert catalog_path(Root(str(tmp_path / "data/demo"))) == (
        tmp_path / "data/demo.catalog.duckdb"
    )


def test_in_the_cache_folder_one_per_root(tmp_path, monkeypatch):
    monkeypatch.setenv("OLMO_DATA_CACHE", str(tmp_path / "cache"))
    one, two = (catalog_path(Root(str(tmp_path / name))) for name in ("one", "two"))
    assert one != two
    assert one.parent == two.parent == tmp_path / "cache"
    assert one.name.endswith("catalog.duckdb")
