"""Personal data: candidates in one pass over the bytes, then a check of each kind."""
