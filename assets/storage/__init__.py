"""Where a root's bytes live: one narrow interface, one file per kind of store.

::

    interface.py   read a range, create exclusively, replace if unchanged, list
    local.py       a folder
    s3.py          an s3:// prefix (s3fs, conditional writes)
    connect.py     url -> Storage
"""
