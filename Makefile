# Needs Python 3.11 or later and make. All else is installed into .venv, from requirements.lock and nothing else.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup demo test lint serve bench lock clean

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

help:  ## List these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP)  ## Make .venv with everything at its locked version

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "$(PYTHON) is $$($(PYTHON) --version 2>&1); Python 3.11 or later is needed: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null \
		|| { echo "$(PYTHON) lacks venv; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@echo "Installing the locked packages into .venv (once, some minutes) …"
	@$(PYTHON) -m venv .venv
	@$(PIP) install --require-hashes --requirement requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $(STAMP)
	@echo "Ready."

demo: setup  ## Build a ledger from the example data and show its statement
	@$(BIN)/gpuledger demo

test: setup  ## Run all tests; those that need an absent server or browser say so and skip
	@$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

lint: setup  ## Check style, format and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

serve: setup  ## Open the dashboards on the ledger in GPULEDGER_HOME
	@$(BIN)/gpuledger serve

bench: setup  ## Measure speed and memory on generated data
	@for one in metering chargeback append procurement; do echo "== $$one"; $(BIN)/python bench/$$one.py; done

lock:  ## Resolve the newest allowed versions into requirements.lock; needs uv
	@command -v uv >/dev/null || { echo "uv is needed to lock: python3 -m pip install uv" >&2; exit 1; }
	@uv pip compile pyproject.toml --group dev --generate-hashes --no-emit-index-url --no-header --no-strip-extras \
		--python-version 3.11 --upgrade --quiet --output-file requirements.lock

clean:  ## Remove .venv and all caches; a ledger's home is never touched
	@rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
