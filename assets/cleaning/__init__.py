"""From decoded documents to clean ones, each with the reason why it is kept or not.

::

    documents ──► html ──► text ──► language ──► signals, rules ──► clean + ledger
                  main     repair   fastText     numba over         one row each
                  text              lid.176      UTF-8 bytes        per document

`steps/` has a module for each step, `rule_groups/` one for each group of rules; `pages/` extracts
main text, `models/` holds what is learned or given, `pii/` finds personal data.
`pipeline.clean_table` does it for a table, `clean.clean_task` for the parts of a task. A document's
first failing rule is its reason, with the measured value and the threshold:

>>> from assets.settings.cleaning import CleaningSettings
>>> from assets.settings.sources import SourceSettings
>>> source = SourceSettings(name="wiki", paths=("wiki/*.jsonl",), profile="text")
>>> clean, ledger = clean_table(documents, source=source, cleaning=CleaningSettings())
>>> ledger.to_pylist()[0]
{..., 'decision': 'dropped', 'rule': 'gopher_short_doc', 'value': 31.0, 'threshold': 50.0, ...}
"""
