"""Settings: one strict YAML file becomes frozen dataclasses; nothing unknown, nothing guessed.

::

    reader.py    any dataclass from a mapping: file, key and nearest valid key in every error
    schema.py    what can be set, one dataclass per stage
    load.py      `load_settings`: files, sources folder, environment variables in paths
"""
