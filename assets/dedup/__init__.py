"""Dedup: which clean texts are kept, by exact hash and by verified near-duplicate search.

::

    utf8.py            texts as Arrow bytes, code points inside kernels
    exact.py           SHA-256 of the normalised text
    shingles.py        word n-gram sets of 32-bit hashes; the published `shingle_hash`
    minhash.py         signatures equal to datasketch's, LSH band keys
    signatures.py      the stage that makes all three, part by part in the pool
    arrivals.py        one generation in survivor order
    buckets.py         LSH join: who shares a band bucket with whom
    overlap.py         exact Jaccard, and a cheap proof that a pair is below the threshold
    decide.py, slices.py                     the greedy decision, slice by slice if it is large
    kept.py, runs.py   what earlier generations kept, as sorted runs on disk
    earlier.py, compaction.py, merging.py    few runs in place of many, with the same answers
    run_search.py, checked_arrays.py, stored_arrays.py   search in them, checked where it reads
    external.py        documents of another set, which count as kept before everything else
    sets_beside.py     evaluation items and external documents: made, and frozen once published
    ngrams.py, decontaminate.py              which texts hold evaluation items
    common_ngrams.py, contamination_report.py   the list of what says nothing; what items cost
    replace.py         changed files: unchanged and withdrawn documents
    cuts.py            what is cut out of kept texts: repeated lines, paragraphs, spans
    kept_texts.py, left_over.py              the texts it looks at, and whether anything is left
    units.py, repeated_units.py              lines and paragraphs
    sorted_places.py   hashes sorted through a file
    word_windows.py, repeated_spans.py, span_report.py   runs of words
    hash_runs.py       hashes of what earlier generations kept, with their owners
    edits.py           cut edits out of texts, move spans
    decided.py, part_ledger.py, generation.py   one decided generation: ledger, check, publish
    kept_rows.py       leave rows out of a batch of texts
    held.py            which kept documents an external set holds: asked, not dropped
    unique.py          the stage: `materialize_unique`, `read_unique`, `withdrawn_documents`
"""
