"""Tokenizing: kept texts become ids of one frozen tokenizer, one EOS after each document.

::

    tokenizer.py    a tokenizer.json, its special ids checked, its dtype derived
    training.py     a byte-level BPE from a bounded amount of text, the same bytes everywhere
    train.py        the root's tokenizer: trained or copied in once, pinned, then only reported
    membership.py   strata and held-out documents: the group of each kept document
    unbroken.py     runs of one kind of character that no engine should merge
    engine.py       the fastest engine that gives the reference's ids
    conformance.py  texts that it must encode like the reference
    doubtful.py     characters of another version of Unicode, left to the reference
    word_cuts.py    where a text may be cut, so that it gets no more than what stands around one
    assemble.py     EOS and BOS around ids, counted in the same pass
    encode.py       texts to one flat id array, in bounded batches
    token_bytes.py  the bytes each id stands for
    label_masks.py  which tokens touch spans that nobody should learn to write
    vocabulary.py   which ids a part uses and how often
    part_ids.py     the file of a part's ids: written, and read with its checksums compared
    token_parts.py  the columns of `tokens/`, and reading row ranges of parts
    part_writer.py  one part of `tokens/`: rows, ids, ledger, statistics
    tokens.py       the stage
    verify_tokens.py  tokens of a part decoded back to its texts
"""
