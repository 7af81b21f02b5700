# Every developer command.  `make` alone lists them; `make setup` runs by itself when it is needed.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest
# So many files at a time, each in one process and in the order in which they stand; `make test WORKERS=0` runs them in
# turn.  Of interop three, because clients and the original's servers mostly wait.
WORKERS = 2
BESIDE = -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# Where other people's programs take part, what failed runs once more, alone, and what fails again has failed (docs/decisions/0029).
# `SECOND_LOOK=no` is strict.
SECOND_LOOK = yes
again = || { status=$$?; [ $$status -eq 1 ] && [ $(SECOND_LOOK) = yes ] || exit $$status; \
             echo "== FAILED ONCE, see above: these run again, alone, and each is to be looked into"; \
             $(PYTEST) --last-failed --last-failed-no-failures none $(1); }
CYTHON_SOURCES := $(shell find src -name '*.pyx' -o -name '*.pxd' -o -name '*.pxi')

# The fast folders run twice, compiled and as pure Python; interop, and every other folder with tests, once.
FAST := $(wildcard tests/unit tests/property)
ONCE := $(filter-out $(FAST) tests/interop tests/bench,$(shell find tests -mindepth 2 -name 'test_*.py' | cut -d/ -f1,2 | sort -u))

# In this checkout a compiled module that fails to compile is an error, never a silent fall-back.
export BOLIDE_REQUIRE_COMPILED := 1

.DEFAULT_GOAL := help
.PHONY: help setup build debug demo up test unit pure interop pipeline crash simulate fuzz check fix bench wheel lock clean distclean

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.built  ## create .venv from the locks and build everything into it
build: $(VENV)/.built  ## compile the extensions if their sources changed

debug: $(VENV)/.built  ## compile the extensions with line tracing; `make clean build` goes back
	BOLIDE_DEBUG_BUILD=1 $(BIN)/python setup.py --quiet build_ext --inplace --force

demo: setup  ## produce, consume and query with Spark, all in a temporary directory
	$(BIN)/python examples/demo.py

up: setup  ## run a name server and a broker in the foreground
	$(BIN)/bolide up

test: unit pure interop  ## run the whole suite
	$(PYTEST) $(BESIDE) $(ONCE) $(call again,$(ONCE))

unit: setup  ## unit and property tests and the docstrings' examples, on the compiled modules
	$(PYTEST) $(BESIDE) --doctest-modules src/bolide $(FAST)

pure: setup  ## the same tests on the readable twins
	BOLIDE_PURE=1 $(PYTEST) $(BESIDE) $(FAST)

interop: WORKERS = 3
interop: setup  ## real clients of other languages against our broker
	$(PYTEST) $(BESIDE) tests/interop $(call again,tests/interop)

pipeline: setup  ## Spark reading our topics
	$(PYTEST) tests/pipeline

crash: setup  ## half a million crash states of the store, and 20,000 of brokers with messages that wait; STATES=n of the store, SEED=n to repeat a run
	$(BIN)/python -m tests.crash --workers 2 --states $(or $(STATES),500000) $(if $(SEED),--seed $(SEED))
	$(BIN)/python -m tests.crash --kind waiting --workers 2 --states $(or $(WAITING),20000) $(if $(SEED),--seed $(SEED))

simulate: setup  ## a cluster in virtual time, in many worlds; SEEDS=n, SEED=first, SCENARIO=name, REPLAY=name:seed
	$(BIN)/python -m tests.simulation --workers 2 --seeds $(or $(SEEDS),250) $(if $(SEED),--seed $(SEED)) \
	  $(if $(SCENARIO),--scenario $(SCENARIO)) $(if $(REPLAY),--replay $(REPLAY))

fuzz: setup build/sanitized/.built  ## ten million bad inputs for every parser, compiled with sanitizers; INPUTS=n, SEED=n, TARGET=name
	LD_PRELOAD=$$($${CC:-cc} -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0:hard_rss_limit_mb=4096 \
	  PYTHONMALLOC=malloc PYTHONPATH=build/sanitized \
	  $(BIN)/python -m tests.fuzz --workers 2 --inputs $(or $(INPUTS),10000000) $(if $(SEED),--seed $(SEED)) \
	  $(if $(TARGET),--target $(TARGET))

check: setup  ## format, lint, types, import contracts, house rules
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) --quiet tests/arch

fix: setup  ## format, repair what the linter can, write docs/limits.md, settings.md and compatibility.md again
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/python -m tests.docs.limits_page
	$(BIN)/python -m tests.docs.settings_page
	$(BIN)/python -m tests.docs.compatibility_page

bench: setup  ## measure against the real peers in one run
	$(BIN)/python -m tests.bench

wheel: setup  ## dist/bolide-….whl, for other environments on this kind of machine
	@$(PIP) wheel --no-deps --no-build-isolation --wheel-dir dist .
	@ls -t dist/bolide-*.whl | head -n 1 | sed "s|^|$(CURDIR)/|"

lock: setup  ## write the locks again; UPGRADE=--upgrade moves to the newest versions allowed
	$(BIN)/uv pip compile $(LOCK_OPTIONS) --extra dev pyproject.toml -o requirements/dev.txt
	$(BIN)/uv pip compile $(LOCK_OPTIONS) -c requirements/dev.txt requirements/build.in -o requirements/build.txt
	$(BIN)/uv pip compile $(LOCK_OPTIONS) -c requirements/dev.txt pyproject.toml -o requirements/run.txt

LOCK_OPTIONS = --quiet --universal --python-version 3.11 --generate-hashes \
               --no-header --no-annotate --no-emit-index-url $(UPGRADE)

clean:  ## remove what was built, keep .venv
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache $(VENV)/.built
	find src -name '*.so' -delete
	find src tests examples -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean  ## remove .venv and .cache (the fetched peers) too
	rm -rf $(VENV) .cache src/*.egg-info

# ---- the environment, step by step; each stamp says what it was made from

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) not found; install Python 3.11 or newer, or set PYTHON=" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "error: $$($(PYTHON) --version) is too old; bolide needs 3.11 or newer (set PYTHON=)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	  || { echo "error: $(PYTHON) has no venv module; on Debian: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.locked: requirements/build.txt requirements/dev.txt | $(BIN)/python
	@echo "Installing the locked dependencies into $(VENV) (Spark is large: a few minutes the first time)"
	@$(PIP) install --require-hashes -r requirements/build.txt
	@$(PIP) install --require-hashes --no-build-isolation -r requirements/dev.txt
	@touch $@

$(VENV)/.built: $(VENV)/.locked pyproject.toml setup.py $(CYTHON_SOURCES)
	@command -v $${CC:-cc} >/dev/null \
	  || { echo "error: no C compiler; on Debian: apt-get install gcc python3-dev" >&2; exit 1; }
	@$(BIN)/python -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' \
	  || { echo "error: Python's C headers are missing; on Debian: apt-get install python3-dev" >&2; exit 1; }
	@echo "Building bolide"
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

# A copy of the package, so that what is installed stays as it is.
build/sanitized/.built: $(VENV)/.built $(shell find src -name '*.py')
	@echo "Building bolide with sanitizers"
	@BOLIDE_SANITIZE=1 $(BIN)/python setup.py --quiet build --build-base build/sanitizing --build-lib build/sanitized >/dev/null
	@touch $@
