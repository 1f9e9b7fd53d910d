"""`olmo-data sources` counts the current version of every file once."""

from __future__ import annotations

import argparse

from assets.catalog.rows import live_parts
from assets.data_platform import OpenPlatform
from assets.sources.landing_log import read_log
from dagster_project.command_line import sources
from dagster_project.command_line.summary import statistics_by_source


def test_a_changed_file_is_counted_in_its_last_version(grown, monkeypatch, capsys):
    root, settings = grown
    platform = OpenPlatform(root=root, settings=settings)
    monkeypatch.setattr(sources, "open_platform", lambda config, **options: platform)
    assert sources.execute(argparse.Namespace(config="", root=None)) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    rows = {
        line.split()[0]: dict(zip(head.split()[-3:], line.split()[-3:], strict=True))
        for line in lines
    }
    log = read_log(root)
    versions = {
        version.file_id.hex() for (name, _), version in log.landed.items() if name == "stories"
    }
    spans = [
        span
        for entry in live_parts(root, "documents")
        if entry.source == "stories"
        for span in entry.files
    ]
    assert {span.file_id for span in spans} > versions
    current = sum(span.rows for span in spans if span.file_id in versions)
    both = sum(span.rows for span in spans)
    assert current < both
    assert rows["stories"]["landed_documents"] == f"{current:,d}"
    tokens = statistics_by_source(root, "tokens")
    stories = rows["stories"]
    assert int(stories["kept_tokens"].replace(",", "")) < tokens["stories"]["tokens"]
    assert int(stories["kept_documents"]) == tokens["stories"]["documents"] - 1  # one withdrawn
    assert rows["books"]["kept_tokens"] == f"{tokens['books']['tokens']:,d}"
    assert rows["books"]["kept_documents"] == f"{tokens['books']['documents']:,d}"
