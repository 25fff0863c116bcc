# make demo       a paper-size SwiGLU layer from Python to RTL, simulated bit-exactly and predicted by the model
# make test       linter, type checker and all default tests
# make test-deep  the long suites on top
# Each starts from a bare Debian or Ubuntu machine with Python 3.11 or newer.

PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.installed
JOBS ?= 2

.PHONY: demo test test-deep lint setup browser clean

setup: $(STAMP)

$(STAMP): pyproject.toml .ci/setup
	PYTHON=$(PYTHON) .ci/setup $(VENV)
	touch $@

demo: $(STAMP)
	$(VENV)/bin/step-hw demo -o build/demo

lint: $(STAMP)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

browser:
	.ci/browser

test: lint browser
	$(VENV)/bin/python -m pytest -q -n $(JOBS) -m "not deep"

test-deep: lint browser
	$(VENV)/bin/python -m pytest -q -n $(JOBS)

clean:
	rm -rf build
