"""The configuration is read strictly: every error names file, key and what to type instead."""

import pytest

from assets.errors import ConfigurationError
from assets.settings.load import load_settings

MINIMAL = """
root: data
sources:
  - name: wiki
    paths: ["wiki/*.jsonl"]
tokenizer: {train: {vocab_size: 300}}
"""


def write(folder, text, name="config.yaml"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_minimal_configuration_has_the_documented_defaults(tmp_path):
    settings = load_settings(write(tmp_path, MINIMAL))
    assert settings.root == str(tmp_path / "data")
    assert settings.base_dir == str(tmp_path)
    assert settings.cleaning.language_threshold == 0.65
    assert settings.dedup.minhash is not None
    assert (settings.dedup.minhash.num_perm, settings.dedup.minhash.bands) == (112, 14)
    assert (settings.ordering.sequence_length, settings.ordering.seed) == (4096, 6198)
    assert settings.limits.max_quarantined == 0.01


def test_an_instance_filter_is_olmo_s_unless_it_says_more(tmp_path):
    assert load_settings(write(tmp_path, MINIMAL)).ordering.instance_filter is None
    text = MINIMAL + "ordering: {instance_filter: {}}\n"
    rule = load_settings(write(tmp_path, text)).ordering.instance_filter
    assert rule is not None
    assert (rule.repetition_min_period, rule.repetition_max_period) == (1, 13)
    assert rule.repetition_max_count == 32
    text = MINIMAL + "ordering: {instance_filter: {repetition_max_cuont: 9}}\n"
    with pytest.raises(ConfigurationError, match="repetition_max_count"):
        load_settings(write(tmp_path, text))


def test_root_override_is_relative_to_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = load_settings(write(tmp_path / "configs", MINIMAL), root="elsewhere")
    assert settings.root == str(tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MINIMAL + "orderng: {}\n", r"config.yaml: unknown key 'orderng'; did you mean 'ordering'"),
        (MINIMAL.replace("root: data", ""), r"the key 'root' is missing and has no default"),
        (MINIMAL.replace("name: wiki", "nam: wiki"), r"sources\[0\]: unknown key 'nam'; did you"),
        (MINIMAL.replace("name: wiki", "name: ../x"), r"sources\[0\]: name: '../x' must match"),
        (MINIMAL + "ordering: {seed: true}\n", r"ordering.seed: expected int, found bool True"),
        (MINIMAL + "ordering: {seed: x}\n", r"ordering.seed: expected int, found str 'x'"),
        (MINIMAL + "ordering: 3\n", r"config.yaml: ordering: expected a mapping, found int 3"),
        (MINIMAL + "root: twice\n", r"the key 'root' appears twice"),
        ("[1, 2]", r"expected a mapping at the top"),
        ("a: [", r"is not valid YAML"),
        (MINIMAL + "base_dir: /\n", r"unknown key 'base_dir'"),
        (MINIMAL.replace("{train: {vocab_size: 300}}", "{}"), r"exactly one of `path` and `train`"),
        (MINIMAL + "dedup: {minhash: {bands: 15}}\n", r"nearest number that does is 14"),
        (MINIMAL + "dedup: {minhash: {threshold: 0.0}}\n", r"outside \(0, 1\]"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, text, expected):
    with pytest.raises(ConfigurationError, match=expected):
        load_settings(write(tmp_path, text))


@pytest.mark.parametrize(
    "later",
    [
        "engine: {kind: ray}",
    ],
)
def test_a_value_of_a_later_version_is_refused_not_ignored(tmp_path, later):
    with pytest.raises(ConfigurationError, match="not in this version"):
        load_settings(write(tmp_path, MINIMAL + later + "\n"))


def test_variables_are_replaced_and_a_missing_one_is_named(tmp_path, monkeypatch):
    text = MINIMAL.replace("wiki/*", "${CORPUS_DIR}/${KIND:-wiki}/*")
    monkeypatch.delenv("CORPUS_DIR", raising=False)
    with pytest.raises(ConfigurationError, match="CORPUS_DIR is not set; export it"):
        load_settings(write(tmp_path, text))
    monkeypatch.setenv("CORPUS_DIR", "there")
    assert load_settings(write(tmp_path, text)).sources[0].paths == ("there/wiki/*.jsonl",)


def test_sources_in_a_folder_of_their_own_are_added(tmp_path):
    path = write(tmp_path, MINIMAL)
    write(tmp_path, "{name: books, paths: [books/*.txt]}", "sources/config/books.yaml")
    assert [source.name for source in load_settings(path).sources] == ["wiki", "books"]
    write(tmp_path, "{name: wiki, paths: [x]}", "sources/config/more.yaml")
    with pytest.raises(ConfigurationError, match=r"\['wiki'\] appear more than once"):
        load_settings(path)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match="there is no such configuration file"):
        load_settings(tmp_path / "none.yaml")
