"""From landed files to documents: what came, when, and every record in it.

::

    configuration's globs -> patterns -> landing -> landing_log        landings/<generation>.json
                                                        |
                                                      tasks            files of one source
                                                        |
                          formats (one file -> records) decode         documents/, ledger/documents/

The landing log is the input of everything downstream; a file is read again only if it decodes to
something else. Every record found has one ledger row, and a document if it had text.
"""
