"""The tables of the catalog: their columns as Arrow schemas, and what each table holds."""

from __future__ import annotations

import pyarrow as pa

SCHEMA_VERSION = 3
"""Raised when a table or macro changes; a catalog of another version is built again."""

_TOKEN_COUNT = pa.struct([("id", pa.int64()), ("text", pa.string()), ("count", pa.int64())])

TABLES: dict[str, tuple[str, pa.Schema]] = {
    "catalog_info": (
        "What this file was built from.",
        pa.schema([("key", pa.string()), ("value", pa.string())]),
    ),
    "sources": (
        "One row per source that is configured or has landed.",
        pa.schema(
            [
                ("source", pa.string()),
                ("configured", pa.bool_()),
                ("format", pa.string()),
                ("profile", pa.string()),
                ("licence", pa.string()),
                ("priority", pa.int64()),
                ("files", pa.int64()),
                ("bytes", pa.int64()),
                ("first_generation", pa.int64()),
                ("last_generation", pa.int64()),
                ("documents", pa.int64()),
                ("clean_documents", pa.int64()),
                ("unique_documents", pa.int64()),
                ("tokens", pa.int64()),
            ]
        ),
    ),
    "rules": (
        "Every rule of cleaning as configured for a source; `fails`: on which side of it.",
        pa.schema(
            [
                ("source", pa.string()),
                ("group", pa.string()),
                ("rule", pa.string()),
                ("definition", pa.string()),
                ("value", pa.string()),
                ("fails", pa.string()),
                ("threshold", pa.float64()),
                ("is_on", pa.bool_()),
                ("word_splitter", pa.string()),
                ("counting", pa.string()),
            ]
        ),
    ),
    "landings": (
        "The landing log: one row per file that was added, replaced, moved or removed.",
        pa.schema(
            [
                ("generation", pa.int64()),
                ("op", pa.string()),
                ("source", pa.string()),
                ("path", pa.string()),
                ("previous_path", pa.string()),
                ("size", pa.int64()),
                ("sha256", pa.string()),
                ("location", pa.string()),
            ]
        ),
    ),
    "runs": (
        "One row per asset and run that changed something; history, totals never come from here.",
        pa.schema(
            [
                ("asset", pa.string()),
                ("run_id", pa.string()),
                ("started_at", pa.string()),
                ("wall_seconds", pa.float64()),
                ("cpu_seconds", pa.float64()),
                ("tasks_done", pa.int64()),
                ("tasks_skipped", pa.int64()),
                ("tasks_taken_up", pa.int64()),
                ("digest", pa.string()),
            ]
        ),
    ),
    "parts": (
        "One row per live part of every stage: the lineage from landed files to tokens.",
        pa.schema(
            [
                ("stage", pa.string()),
                ("source", pa.string()),
                ("generation", pa.int64()),
                ("task", pa.string()),
                ("part", pa.string()),
                ("rows", pa.int64()),
                ("data", pa.string()),
                ("ledger", pa.string()),
                ("bytes", pa.int64()),
                ("fingerprint", pa.string()),
            ]
        ),
    ),
    "file_spans": (
        "Which records of which landed file stand in a part of `documents`.",
        pa.schema(
            [
                ("source", pa.string()),
                ("part", pa.string()),
                ("file_id", pa.string()),
                ("landed_path", pa.string()),
                ("first_ordinal", pa.int64()),
                ("records", pa.int64()),
                ("rows", pa.int64()),
            ]
        ),
    ),
    "stage_statistics": (
        "Documents by stage, source, generation, decision and rule; they add up to what came in.",
        pa.schema(
            [
                ("stage", pa.string()),
                ("source", pa.string()),
                ("generation", pa.int64()),
                ("decision", pa.string()),
                ("rule", pa.string()),
                ("documents", pa.int64()),
            ]
        ),
    ),
    "losses": (
        "What every stage and rule took of every source: the table of a corpus's publication.",
        pa.schema(
            [
                ("stage", pa.string()),
                ("source", pa.string()),
                ("rule", pa.string()),
                ("decision", pa.string()),
                ("is_loss", pa.bool_()),
                ("stage_documents", pa.int64()),
                ("documents", pa.int64()),
                ("documents_left", pa.int64()),
                ("share_of_stage", pa.float64()),
                ("share_of_landed", pa.float64()),
                ("bytes", pa.int64()),
                ("words", pa.int64()),
                ("documents_without_words", pa.int64()),
            ]
        ),
    ),
    "stage_totals": (
        "What stayed after every stage, by source; null where the stage does not measure it.",
        pa.schema(
            [
                ("stage", pa.string()),
                ("source", pa.string()),
                ("documents_in", pa.int64()),
                ("documents", pa.int64()),
                ("characters", pa.int64()),
                ("bytes", pa.int64()),
                ("words", pa.int64()),
                ("tokens", pa.int64()),
            ]
        ),
    ),
    "language_statistics": (
        (
            "What stayed by language, after cleaning (lengths in bytes) and as tokens (in tokens); "
            "null: no language was asked. Percentiles are those of a histogram by powers of two."
        ),
        pa.schema(
            [
                ("stage", pa.string()),
                ("source", pa.string()),
                ("language", pa.string()),
                ("documents", pa.int64()),
                ("characters", pa.int64()),
                ("bytes", pa.int64()),
                ("words", pa.int64()),
                ("tokens", pa.int64()),
                ("characters_per_token", pa.float64()),
                ("bytes_per_token", pa.float64()),
                ("tokens_per_word", pa.float64()),
                ("mean_length", pa.float64()),
                ("p10_length", pa.int64()),
                ("p50_length", pa.int64()),
                ("p90_length", pa.int64()),
                ("p99_length", pa.int64()),
                ("unique_tokens", pa.int64()),
                ("vocabulary_use", pa.float64()),
                ("top_tokens", pa.list_(_TOKEN_COUNT)),
            ]
        ),
    ),
    "source_token_statistics": (
        "Token figures of every source, over all kept documents.",
        pa.schema(
            [
                ("source", pa.string()),
                ("documents", pa.int64()),
                ("tokens", pa.int64()),
                ("characters", pa.int64()),
                ("bytes", pa.int64()),
                ("words", pa.int64()),
                ("bytes_per_token", pa.float64()),
                ("characters_per_token", pa.float64()),
                ("tokens_per_word", pa.float64()),
                ("unique_tokens", pa.int64()),
                ("vocabulary_use", pa.float64()),
                ("mean_length", pa.float64()),
                ("min_length", pa.int64()),
                ("p10_length", pa.int64()),
                ("p50_length", pa.int64()),
                ("p90_length", pa.int64()),
                ("p99_length", pa.int64()),
                ("max_length", pa.int64()),
                ("lengths_are_exact", pa.bool_()),
                ("top_tokens", pa.list_(_TOKEN_COUNT)),
            ]
        ),
    ),
    "shards": (
        "The shard index; `published` says whether dataset.json's snapshot holds the shard.",
        pa.schema(
            [
                ("seq", pa.int64()),
                ("shard", pa.string()),
                ("source", pa.string()),
                ("generation", pa.int64()),
                ("stratum", pa.string()),
                ("split", pa.string()),
                ("first_document", pa.int64()),
                ("end_document", pa.int64()),
                ("documents", pa.int64()),
                ("tokens", pa.int64()),
                ("size", pa.int64()),
                ("dtype", pa.string()),
                ("max_id", pa.int64()),
                ("sha256", pa.string()),
                ("published", pa.bool_()),
            ]
        ),
    ),
    "plans": (
        "Every plan that can be opened, in the order they were made.",
        pa.schema(
            [
                ("number", pa.int64()),
                ("plan_id", pa.string()),
                ("current", pa.bool_()),
                ("generation", pa.int64()),
                ("snapshot_seq", pa.int64()),
                ("sequence_length", pa.int64()),
                ("instances", pa.int64()),
                ("tokens", pa.int64()),
                ("utilization", pa.float64()),
                ("seed", pa.int64()),
                ("packing", pa.string()),
                ("plan_order", pa.string()),
                ("dtype", pa.string()),
                ("tokenizer_sha256", pa.string()),
                ("parent", pa.string()),
            ]
        ),
    ),
    "plan_sources": (
        "What every plan takes of every source. Without a mixture, no share is a target.",
        pa.schema(
            [
                ("plan_id", pa.string()),
                ("source", pa.string()),
                ("shards", pa.int64()),
                ("documents", pa.int64()),
                ("shard_tokens", pa.int64()),
                ("instances", pa.int64()),
                ("tokens", pa.int64()),
                ("target_share", pa.float64()),
                ("planned_share", pa.float64()),
                ("realised_share", pa.float64()),
                ("epochs", pa.float64()),
            ]
        ),
    ),
    "takedowns": (
        "Documents withdrawn or taken down, one row per masked span; none for one not in a shard.",
        pa.schema(
            [
                ("seq", pa.int64()),
                ("op", pa.string()),
                ("generation", pa.int64()),
                ("reason", pa.string()),
                ("doc_id", pa.string()),
                ("shard", pa.string()),
                ("start_token", pa.int64()),
                ("end_token", pa.int64()),
                ("published", pa.bool_()),
            ]
        ),
    ),
    "quality_checks": (
        "Figures that should make somebody look where `warns`; they stop nothing.",
        pa.schema(
            [
                ("check", pa.string()),
                ("what", pa.string()),
                ("value", pa.float64()),
                ("least", pa.float64()),
                ("most", pa.float64()),
                ("warns", pa.bool_()),
            ]
        ),
    ),
}
