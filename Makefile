# `make reproduce` and `make test` are for a bare machine; all else is plain snakemake.
PYTHON ?= python3
CORES ?= all
BIN = .venv/bin

.PHONY: reproduce check progress bench test test-slow coverage lint

reproduce: .venv/installed
	$(BIN)/snakemake --cores $(CORES)

check: .venv/installed
	$(BIN)/python -m ultrbench.stages.expected

progress: .venv/installed
	$(BIN)/python -m ultrbench.reporting.progress

bench: .venv/installed
	$(BIN)/pip install --quiet -r benchmarks/requirements.txt
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/run.py

# The longest files come first, so that no core is idle in the end, nor while a Snakemake waits.
PARALLEL = -n 3 --dist loadfile --no-loadscope-reorder

test: .venv/installed lint
	$(BIN)/pytest -q $(PARALLEL) -m "not slow"

test-slow: .venv/installed
	$(BIN)/pytest -q -m slow

coverage: .venv/installed
	$(BIN)/pytest -q $(PARALLEL) -m "not slow" --cov --cov-report=term:skip-covered

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/snakemake --lint --quiet

.venv/installed: requirements.lock pyproject.toml
	$(PYTHON) -c "import sys; sys.exit(0 if sys.version_info >= (3, 11) else 'ultrbench needs Python 3.11 or newer; name one with make PYTHON=...')"
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	touch $@
