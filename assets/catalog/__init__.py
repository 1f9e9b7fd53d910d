"""`catalog.duckdb`: what is known about a data set, as tables and questions.

::

    place.py      where the file lies: beside a local root, or in the cache folder
    schema.py     the tables: columns, types, what they mean
    rows.py       their rows, from the landing log, manifests, shard index, plans, takedowns
    tokens.py     the rows of source_token_statistics
    macros.py     ledger(), explain(): SQL over the Parquet parts that the manifests name
    build.py      the one writer: builds under a temporary name, swaps the file in
    steps.py      which documents a training step reads, and which steps read a document
    query.py      read-only questions of people, under limits
    explain.py    one document's life, reading a few rows whatever the corpus

The catalog is a cache: everything in it follows from the root, and deleting it loses nothing.
"""
