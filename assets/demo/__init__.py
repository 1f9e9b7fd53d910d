"""The embedded demo: four real corpora made from what every machine with this checkout has.

`build.build_demo_corpora(folder)` writes, byte for byte the same for one interpreter and one set of
installed packages,

- `code/`: the modules of the standard library, as text files;
- `readmes/`: the descriptions of the installed packages, as gzipped jsonl;
- `licences/`: their licence files, full of near-duplicates, as text files;
- `docs/`: the standard library's documentation as `pydoc` renders it, as gzipped WARC.

Nothing is downloaded, and nothing of the environment of the user (paths, variables) gets in.
"""
