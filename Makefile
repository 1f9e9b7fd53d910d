# Everything a newcomer types. `make run` needs python3.11 with venv, make and git; nothing else.
SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
export DAGSTER_DISABLE_TELEMETRY := yes

.PHONY: run ui test test-deep check format lint types contracts spelling clean bench interop bench-loader bench-dedup bench-plan bench-clean bench-tokens bench-pii

## run: install what is needed (no torch) and make the demo data set, end to end
run: $(VENV)/.platform
	$(BIN)/olmo-data demo

## ui: open the Dagster web UI on this machine (http://127.0.0.1:3000)
ui: $(VENV)/.platform
	$(BIN)/olmo-data ui

# A worker that dies ends the run and is named: a restarted one waits for ever (pytest-xdist 3.8,
# `--dist loadgroup`). A test that hangs for `faulthandler_timeout` dies so, with its stack printed.
## test: install with torch and the test tools, check and test everything
test: $(VENV)/.test
	$(MAKE) --no-print-directory check
	$(BIN)/python -m pytest -n 2 --dist loadgroup --max-worker-restart=0

## test-deep: the tests that take minutes each
test-deep: $(VENV)/.test
	$(BIN)/python -m pytest -m deep

## check: format, lint, types, import contracts, spelling, pins
check: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell assets dagster_project olmo_loader tests docs examples benchmarks README.md CONTRIBUTING.md CHANGELOG.md
	$(BIN)/pip check

## format: rewrite the code in its format
format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

## bench: print what each stage and the loader cost, as ratios
bench: $(VENV)/.test
	$(BIN)/python benchmarks/stages.py
	$(BIN)/python -m benchmarks.loader --peers ""

## interop: OLMo's and OLMo-core's own code read our shards and orders; any difference fails
INTEROP := tmp/interop
interop: $(VENV)/.test .venv-interop/.installed .venv-interop-core/.installed
	rm -rf $(INTEROP)
	$(BIN)/python -m interop.make_cases $(INTEROP)
	.venv-interop/bin/python interop/check_olmo.py $(INTEROP)
	.venv-interop-core/bin/python interop/check_olmo_core.py $(INTEROP)
	rm -rf $(INTEROP)

## bench-loader: CPU per token of our loader beside OLMo's, OLMo-core's, LitData's and datasets'
BENCH_LOADER ?=
bench-loader: $(VENV)/.test
	-$(MAKE) --no-print-directory --keep-going .venv-interop/.installed .venv-interop-core/.installed .venv-bench-peers/.installed
	$(BIN)/python -m benchmarks.loader $(BENCH_LOADER)

## bench-dedup: CPU of signatures, LSH join and the whole of dedup beside datasketch and datatrove
BENCH_DEDUP ?=
bench-dedup: $(VENV)/.test
	-$(MAKE) --no-print-directory .venv-bench-dedup/.installed
	$(BIN)/python -m benchmarks.dedup $(BENCH_DEDUP)

## bench-plan: CPU and peak memory of plans beside the bare shuffles they need; packing; appending
BENCH_PLAN ?=
bench-plan: $(VENV)/.test
	$(BIN)/python -m benchmarks.plan $(BENCH_PLAN)

## bench-tokens: CPU from texts to finished shards beside datatrove, Dolma and datasets, equal ids
BENCH_TOKENS ?= ../shared/data/tokenizers/allenai_gpt-neox-olmo-dolma-v1_5.json
bench-tokens: $(VENV)/.test
	-$(MAKE) --no-print-directory --keep-going .venv-bench-tokens/.installed .venv-bench-tokens-dolma/.installed
	$(BIN)/python -m benchmarks.tokens $(BENCH_TOKENS)

.venv-bench-tokens/.installed: benchmarks/tokens_peers.txt
.venv-bench-tokens-dolma/.installed: benchmarks/tokens_dolma.txt
.venv-bench-tokens/.installed .venv-bench-tokens-dolma/.installed:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

.venv-bench-dedup/.installed: benchmarks/dedup_peers.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

## bench-clean: CPU of the signals and of the whole of cleaning beside Dolma and datatrove; memory
BENCH_CLEAN ?=
bench-clean: $(VENV)/.test
	-$(MAKE) --no-print-directory --keep-going .venv-clean-dolma/.installed .venv-clean-datatrove/.installed
	$(BIN)/python -m benchmarks.clean $(BENCH_CLEAN)
	$(BIN)/python -m benchmarks.clean_memory

.venv-clean-%/.installed: benchmarks/clean_%.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

# Each peer in an environment of its own: their pins contradict one another's and ours. torch comes
# first, because left to itself pip takes a build for GPUs.
.venv-interop/.installed: interop/olmo.txt
.venv-interop-core/.installed: interop/olmo_core.txt
.venv-bench-peers/.installed: benchmarks/loader_peers.txt
.venv-interop/.installed .venv-interop-core/.installed .venv-bench-peers/.installed:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check torch==2.13.0
	$(@D)/bin/pip install --quiet --disable-pip-version-check -r $<
	$(@D)/bin/pip check
	touch $@

## bench-pii: recall and precision of masking on values by Faker and libphonenumber, and its cost
bench-pii: $(VENV)/.test
	-$(MAKE) --no-print-directory .venv-bench-pii/.installed
	$(BIN)/python -m benchmarks.pii

.venv-bench-pii/.installed: benchmarks/pii_peers.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

## clean: remove the environment and the demo's data
clean:
	rm -rf $(VENV) .dagster data

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# The command line belongs to the checkout, not to the wheel: the wheel carries the loader alone.
$(VENV)/bin/olmo-data: $(VENV)/bin/python Makefile
	printf '#!/bin/sh\nexec "%s/python" -m dagster_project.command_line "$$@"\n' "$(abspath $(BIN))" > $@
	chmod +x $@

$(VENV)/.platform: pyproject.toml constraints.txt $(VENV)/bin/olmo-data
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[platform]'
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt $(VENV)/bin/olmo-data
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[platform,names,torch,s3,test]'
	touch $@ $(VENV)/.platform
