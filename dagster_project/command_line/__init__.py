"""`olmo-data`: the platform from a terminal.

::

    olmo-data demo                 build the embedded corpora and make a data set of them
    olmo-data run [--config C]     land, clean, deduplicate, tokenize, cut, order, publish
    olmo-data sources              what is configured, landed and waiting
    olmo-data explain DOC_ID       one document's life
    olmo-data query "SQL"          read-only questions to the catalog
    olmo-data verify | gc          check everything | delete what nothing refers to
    olmo-data ui                   the Dagster web UI on this machine

`main.py` parses and reports errors; every command is a module of its own with one function
`execute(arguments)`, imported only when it is asked for: Dagster takes longer to import than
`explain` takes to answer. Whatever came from landed files is printed through `terminal.py`.
"""
