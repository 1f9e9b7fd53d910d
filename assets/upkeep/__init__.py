"""Looking after a root: prove everything in it, delete what nothing refers to.

::

    references.py     what manifests, index, plans and dataset.json name, and what they do not
    gc.py             `gc`: list what nothing names, delete it, drop an old plan
    verify.py         `verify`: every fault in a root, named
    verify_parts.py   manifests, objects, ledgers row by row
    verify_texts.py   ids of shards against token parts, these against texts
    verify_data_set.py  shards and their documents, plans, provenance, takedowns
"""
