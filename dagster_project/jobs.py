"""The two runs that make a data set."""

from __future__ import annotations

import dagster as dg

SOURCES_JOB = "sources_job"
DATASET_JOB = "dataset_job"
SOURCES_ASSETS = ["source_documents", "clean_documents"]

sources_job = dg.define_asset_job(
    SOURCES_JOB,
    selection=dg.AssetSelection.assets(*SOURCES_ASSETS),
    description="Land and decode the files of the chosen sources, and clean their documents.",
)
dataset_job = dg.define_asset_job(
    DATASET_JOB,
    selection=dg.AssetSelection.all() - dg.AssetSelection.assets(*SOURCES_ASSETS),
    description="Deduplicate, tokenize, cut, order, verify and publish what is clean.",
)
