# Everything a person needs, one line of help each.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
BIN := .venv/bin
# Where tests run in parallel, each worker needs one thread of DuckDB and Arrow, not all of them.
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast goldens bench lint format lock clean

help: ## Show this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | column -t -s "$$(printf '\t')"

setup: .venv/ready ## Create .venv with the pinned dependencies and this package

.venv/ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Panewise needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv .venv \
		|| { echo "Python has no venv module: run 'apt-get install python3-venv' as root, then make again"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: setup ## Answer a script of standing queries over a generated stream, live
	$(BIN)/panewise demo

test: export CI = true # the same cases each time; test-fast draws new ones
test: setup lint ## Run everything CI runs
	$(BIN)/python -m pytest -n $(WORKERS)

test-fast: setup ## Run the tests for daily work
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow"

goldens: setup ## Compare with other systems over their whole files, which takes about an hour
	WHOLE_GOLDENS=1 $(BIN)/python -m pytest -n $(WORKERS) tests/goldens

bench: setup ## Measure every figure of the papers; SIZE=seconds (default) or full
	$(BIN)/python -m benchmarks --all --size $(or $(SIZE),seconds)

lint: setup ## Check style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: setup ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: setup ## Pin the newest versions that pyproject.toml allows
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes \
		--no-annotate --no-header --no-emit-index-url --upgrade --quiet --output-file requirements.lock

clean: ## Remove what was built
	rm -rf .venv build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
