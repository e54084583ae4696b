# Every command of this repository. Each one makes the environment it needs.
#
#   make demo         learn a tree from a table that ships with the package, read it, draw it
#   make test         the test suite but for its slow part, at most 4 minutes on 2 cores
#   make test-slow    the slow part (.ci/run calls lint, test and test-slow)
#   make lint         ruff, mypy, import layers, clang-format, spelling, wording
#   make sanitize     native code under the address and undefined-behavior sanitizers
#   make test-oldest  the test suite on the oldest supported scikit-learn
#   make test-wheel   `pip install .` as a user does it: isolated build, installed copy, its commands
#   make fuzz         malformed model files against the loader, FUZZ_SECONDS per target
#   make bench        the speed and quality tables (BENCH=--quick: a smoke run)
#   make clean        remove everything the commands above made
#
# A fresh machine needs Python >= 3.10, a C++20 compiler and make; the rest comes through pip, in the
# versions of constraints.txt.

PYTHON ?= python3
FUZZ_SECONDS ?= 60

SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help demo test test-slow browser lint sanitize test-oldest test-wheel fuzz bench clean

export PIP_DISABLE_PIP_VERSION_CHECK := 1

# What the extension module is built from; a change rebuilds it before the next command.
NATIVE := CMakeLists.txt $(shell find native tests/probes -type f)
CPP := $(shell find native tests/probes -name '*.[ch]pp')
# And what pages are made of.
PYTHON_FILES := $(shell find src -name '*.py' -o -path '*/page/source/*')
PACKAGING := pyproject.toml constraints.txt

BUILD_TOOLS := scikit-build-core nanobind cmake ninja
# What tests and benchmarks call of the engine's parts; users have no use for it.
PROBES := -C cmake.define.HARDWOOD_PROBES=ON
# Warnings of the compiler are errors here, not for users, whose compiler may be newer than ours.
DEVELOPMENT := -C cmake.define.HARDWOOD_WERROR=ON $(PROBES)

help:
	@sed -n 's/^#   //p' Makefile

# --- environments -----------------------------------------------------------------------------
# The package is installed in editable mode, so that a changed Python file needs no installation, and
# without build isolation: an isolated build starts from nothing every time, this one recompiles only
# the changed C++ files, with pinned tools. What users install (an isolated build, copied files) is what
# `make test-wheel` tests. Stamp files make the second call of any command immediate.

define make_venv
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
  echo "hardwood needs Python >= 3.10; '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Try: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; \
  exit 2; }
$(PYTHON) -m venv $(1)
endef

ENVIRONMENTS := .venv .venv-oldest .venv-sanitize .venv-fuzz .venv-wheel .venv-bench

$(ENVIRONMENTS:%=%/bin/python):
	$(call make_venv,$(@D:/bin=))

.venv/.built: $(PACKAGING) $(NATIVE) | .venv/bin/python
	@echo "1/3 Build tools into .venv: $(BUILD_TOOLS)"
	@.venv/bin/python -m pip install -q -c constraints.txt $(BUILD_TOOLS)
	@echo "2/3 Compiling the engine, about a minute, and fetching numpy, scikit-learn, matplotlib, ..."
	@.venv/bin/python -m pip install -q -c constraints.txt --no-build-isolation $(DEVELOPMENT) -e '.[cli,plot]'
	@echo "3/3 Done: the command is .venv/bin/hardwood"
	@touch $@

.venv/.ready: $(PACKAGING) | .venv/.built
	@echo "Fetching what the tests need: pytest, polars, pandas, optuna, torch, ..."
	@.venv/bin/python -m pip install -q -c constraints.txt --no-build-isolation $(DEVELOPMENT) -e '.[cli,data,plot,tune,explain,onnx,torch,dev]'
	@touch $@

# --- commands ---------------------------------------------------------------------------------

demo: .venv/.built
	.venv/bin/hardwood demo

# Tests share nothing, so any worker may take any of them; more than eight gain little.
IN_PARALLEL := -n logical --maxprocesses 8 --dist worksteal

test: .venv/.built .venv/.ready browser
	.venv/bin/python -m pytest $(IN_PARALLEL) -m 'not slow'

test-slow: .venv/.built .venv/.ready browser
	.venv/bin/python -m pytest $(IN_PARALLEL) -m slow

# Pages are tested in a real browser. Where none is found it is installed, if that takes nobody's
# permission (root, Debian's apt); otherwise the tests in tests/browser say why they are skipped.
browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do \
	  command -v $$name > /dev/null && exit 0; \
	done; \
	if [ "$$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then \
	  echo "No Chromium here, and no way to install it: the tests in a browser will be skipped."; exit 0; \
	fi; \
	echo "Installing Chromium, for the tests in a browser"; \
	log=$$(mktemp); \
	{ apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } \
	  > $$log 2>&1 || echo "That failed, and these tests will be skipped: $$(tail -n 1 $$log)"; \
	rm -f $$log

lint: .venv/.built .venv/.ready
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/clang-format --dry-run --Werror $(CPP)
	.venv/bin/typos
	.venv/bin/python tools/check_phrases.py

# Peers have an environment of their own, so that the tests do not wait for all of them.
.venv-bench/.ready: $(PACKAGING) $(NATIVE) $(PYTHON_FILES) | .venv-bench/bin/python
	.venv-bench/bin/python -m pip install -q -c constraints.txt $(BUILD_TOOLS)
	@# Comes as source only, and needs build tools of its own.
	.venv-bench/bin/python -m pip install -q -c constraints.txt contextualbandits
	.venv-bench/bin/python -m pip install -q -c constraints.txt --no-build-isolation \
	  -C build-dir=build/bench $(PROBES) '.[bench]'
	@touch $@

bench: .venv-bench/.ready
	.venv-bench/bin/python -m benchmarks $(BENCH)

# Python itself is not built with the sanitizers, so their run-time libraries must be loaded first
# (libstdc++ too, or exceptions thrown by the module are not recognized). Leaks are not looked for:
# the interpreter frees little when it ends. The sanitizers abort on the first finding.
SANITIZERS := $$($(CXX) -print-file-name=libasan.so):$$($(CXX) -print-file-name=libubsan.so):$$($(CXX) -print-file-name=libstdc++.so)

.venv-sanitize/.ready: $(PACKAGING) $(NATIVE) $(PYTHON_FILES) | .venv-sanitize/bin/python
	.venv-sanitize/bin/python -m pip install -q -c constraints.txt $(BUILD_TOOLS)
	.venv-sanitize/bin/python -m pip install -q -c constraints.txt --no-build-isolation \
	  -C build-dir=build/sanitize -C cmake.define.HARDWOOD_SANITIZE=ON $(PROBES) '.[cli,data,plot,dev]'
	@touch $@

sanitize: .venv-sanitize/.ready
	LD_PRELOAD=$(SANITIZERS) ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 \
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	.venv-sanitize/bin/python -m pytest -p no:cacheprovider tests/native tests/fuzz

# The oldest scikit-learn that pyproject.toml admits, with the NumPy and SciPy of its time.
.venv-oldest/.ready: $(PACKAGING) $(NATIVE) | .venv-oldest/bin/python
	grep -vE '^(scikit-learn|numpy|scipy)==' constraints.txt > .venv-oldest/constraints.txt
	printf '%s\n' scikit-learn==1.6.1 numpy==2.1.3 scipy==1.14.1 >> .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install -q -c .venv-oldest/constraints.txt $(BUILD_TOOLS)
	.venv-oldest/bin/python -m pip install -q -c .venv-oldest/constraints.txt --no-build-isolation \
	  -C build-dir=build/oldest $(PROBES) -e '.[cli,data,plot,tune,explain,onnx,torch,dev]'
	@touch $@

test-oldest: .venv-oldest/.ready
	.venv-oldest/bin/python -m pytest $(IN_PARALLEL)

# A copy, not an editable installation: atheris cannot instrument what that one's import hook loads, and
# fuzzing without instrumentation finds nothing.
.venv-fuzz/.ready: $(PACKAGING) $(NATIVE) $(PYTHON_FILES) | .venv-fuzz/bin/python
	.venv-fuzz/bin/python -m pip install -q -c constraints.txt $(BUILD_TOOLS)
	.venv-fuzz/bin/python -m pip install -q -c constraints.txt --no-build-isolation \
	  -C build-dir=build/fuzz '.[fuzz]'
	@touch $@

fuzz: .venv-fuzz/.ready
	set -e; for target in tests/fuzz/fuzz_*.py; do \
	  .venv-fuzz/bin/python $$target --seconds $(FUZZ_SECONDS); \
	done

# No constraints and no build tools here: a user has neither. The environment is emptied first and gets
# what README.md installs, so that its Python example cannot lean on anything else.
README_INSTALLS = $(shell sed -n "s/^pip install '\(.*\)'$$/\1/p" README.md)

.venv-wheel/.ready: $(PACKAGING) $(NATIVE) $(PYTHON_FILES) README.md | .venv-wheel/bin/python
	$(PYTHON) -m venv --clear .venv-wheel
	@echo "Installing as README.md says: pip install '$(README_INSTALLS)', a few minutes"
	.venv-wheel/bin/python -m pip install -q -C build-dir=build/wheel '$(README_INSTALLS)'
	@touch $@

test-wheel: .venv-wheel/.ready
	cd .venv-wheel && bin/hardwood demo --output tree.png && bin/hardwood --version
	cd .venv-wheel && bin/python -c 'from hardwood import ObliqueTree; ObliqueTree.of([[1.0]], thresholds=[0.0], values=[0, 1]).show("tree.html")'
	cd .venv-wheel && sed -n '/^```python$$/,/^```$$/{/^```/d;p}' ../README.md > readme.py && bin/python readme.py
	cd .venv-wheel && ! bin/python -c 'import hardwood._probes' 2> /dev/null

clean:
	rm -rf $(ENVIRONMENTS) build dist demo_tree.png
	rm -rf .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
