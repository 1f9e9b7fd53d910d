"""The platform as Dagster sees it, and as the command line runs it; wiring only.

::

    definitions.py    what workspace.yaml loads: assets, jobs, sensor, schedules
    environment.py    what is read from environment variables
    resources.py      which configuration and root a run works on
    jobs.py           the two runs
    partitions.py     one partition per configured source
    automation.py     when the two runs start by themselves
    run_tags.py       what a run says about itself: its process, its inventory
    command_line/     `olmo-data`

Work is done by two runs: `sources_job` lands and decodes files and cleans documents, one partition
per source; `dataset_job` does everything after, incrementally, and publishes.
"""
