"""What Dagster loads: the assets, their order, and how thin they are."""

import ast
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._core.storage.defs_state.base import set_defs_state_storage

from assets.catalog.quality import CHECKS as QUALITY_CHECKS
from assets.ordering.checks import CHECKS
from dagster_project.definitions import defs
from dagster_project.environment import CHECKOUT
from dagster_project.jobs import DATASET_JOB, SOURCES_JOB

# asset: (group, upstream assets, partitioned)
ASSETS = {
    "source_documents": ("sources", set(), True),
    "clean_documents": ("cleaning", {"source_documents"}, True),
    "unique_documents": ("dedup", {"clean_documents"}, False),
    "tokenizer": ("tokenizing", {"unique_documents"}, False),
    "token_documents": ("tokenizing", {"unique_documents", "tokenizer"}, False),
    "token_shards": ("sharding", {"token_documents"}, False),
    "training_dataset": ("ordering", {"token_shards"}, False),
    "catalog": ("catalog", {"training_dataset"}, False),
}
MAX_BODY_LINES = 20
ASSET_FILES = sorted((CHECKOUT / "assets").glob("*/asset.py"))


@pytest.fixture(scope="module")
def definitions():
    # An instance that an earlier test of this process opened may still be named as where the state
    # of definitions is, though it is gone; ours have no state.
    with set_defs_state_storage(None):
        yield defs()


def test_assets_groups_and_dependencies_are_these(definitions):
    graph = definitions.resolve_asset_graph()
    found = {}
    for key in graph.executable_asset_keys:
        node = graph.get(key)
        upstream = {parent.to_user_string() for parent in node.parent_keys}
        found[key.to_user_string()] = (node.group_name, upstream, node.is_partitioned)
    assert found == ASSETS
    # Every dependency is made here: a misspelt one would be an asset of nobody.
    assert {key.to_user_string() for key in graph.get_all_asset_keys()} == set(ASSETS)


def test_every_asset_says_who_owns_it_what_it_is_and_which_code_made_it(definitions):
    for spec in definitions.resolve_all_asset_specs():
        assert spec.owners, spec.key
        assert spec.kinds, spec.key
        assert spec.code_version, spec.key
        assert spec.description, spec.key


def test_assets_report_the_checks_of_a_publication_and_of_its_figures(definitions):
    keys = definitions.resolve_asset_graph().asset_check_keys
    assert {(key.asset_key.to_user_string(), key.name) for key in keys} == {
        *(("training_dataset", name) for name in CHECKS),
        *(("catalog", name) for name in QUALITY_CHECKS),
    }


def test_the_two_jobs_share_out_the_assets(definitions):
    chosen = {
        name: {
            key.to_user_string()
            for key in definitions.resolve_job_def(name).asset_layer.executable_asset_keys
        }
        for name in (SOURCES_JOB, DATASET_JOB)
    }
    assert chosen[SOURCES_JOB] == {"source_documents", "clean_documents"}
    assert chosen[DATASET_JOB] == set(ASSETS) - chosen[SOURCES_JOB]


def test_sensor_and_schedules_are_there(definitions):
    assert [sensor.name for sensor in definitions.sensors] == ["new_data"]
    assert {item.name for item in definitions.schedules} == {"hourly_sources", "hourly_dataset"}


def test_workspace_and_instance_files_load(definitions, tmp_path):
    workspace = yaml.safe_load((CHECKOUT / "workspace.yaml").read_text())
    target = workspace["load_from"][0]["python_file"]
    assert (CHECKOUT / target["relative_path"]).is_file()
    (tmp_path / "dagster.yaml").write_bytes((CHECKOUT / "dagster.yaml").read_bytes())
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert not instance.telemetry_enabled
        assert instance.managed_python_loggers == ["assets"]
        assert instance.global_op_concurrency_default_limit == 1


@pytest.mark.parametrize("path", ASSET_FILES, ids=lambda path: path.parent.name)
def test_asset_bodies_are_thin(path: Path):
    tree = ast.parse(path.read_text())
    assets = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert assets
    for function in assets:
        body = function.body[1:] if ast.get_docstring(function) else function.body
        lines = (body[-1].end_lineno or 0) - body[0].lineno + 1
        assert lines <= MAX_BODY_LINES, function.name
        assert not any(isinstance(node, ast.For | ast.While) for node in ast.walk(function))
    # Dagster reads the annotations of assets at run time: they must not be strings.
    assert "from __future__" not in path.read_text()


def test_definitions_stay_short():
    assert len((CHECKOUT / "dagster_project/definitions.py").read_text().splitlines()) <= 60
