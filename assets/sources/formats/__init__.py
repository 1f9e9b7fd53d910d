"""From the bytes of a landed file to the records in it, whatever its container.

::

    stored bytes -> compression -> sniff (format: auto) -> jsonl | warc | html | text
                                                              |
                                            Found(text, ...) | Lost(rule, ...)

`read.read_records` is the way in. Every record takes one ordinal, readable or not, so a reader
yields a `Lost` where other tools log a warning; `record.RULES` lists what can happen to a record.
A reader never raises for bad content and never holds more than a few records of at most
`record.MAX_RECORD_BYTES` each, whatever the size of the file.
"""
