# make setup   set up: everything goes into .venv
# make atlas   set up, write the site from the shipped results, run the quick atlas here, say whether this machine agrees, write the site again
# make test    set up, pass all tests
# make check   format, lint, types, who may import whom
# make docs    build the documentation, strictly and offline
# make bench   benchmarks, as ratios to something measured in the same run
# make lock    pin the dependencies anew
# make clean   remove the environment and everything that was made (never the store)

PYTHON ?= python3
BIN := .venv/bin
LOCKED := .venv/locked
READY := .venv/ready
PYTEST_WORKERS ?= 2

.PHONY: setup atlas test check docs bench lock clean
.DELETE_ON_ERROR:

setup: $(READY)

atlas: $(READY)
	$(BIN)/attlas report --out site
	$(BIN)/attlas run --quick
	$(BIN)/attlas report --out site

test: check
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist worksteal

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY)
	@$(BIN)/python -m sphinx -q -E -W --keep-going -d docs/_build/doctrees docs docs/_build/html
	@echo "file://$(CURDIR)/docs/_build/html/index.html"

bench: $(READY)
	@for file in $(filter-out benchmarks/timing.py,$(wildcard benchmarks/*.py)); do echo "== $$file"; $(BIN)/python $$file || exit 1; done

lock: $(READY)
	$(BIN)/pip-compile --quiet --all-extras --strip-extras --no-annotate --no-header --no-emit-index-url \
	  --no-emit-find-links --no-emit-trusted-host --allow-unsafe --output-file requirements.lock pyproject.toml

$(READY): $(LOCKED) pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q src # once, also where PYTHONDONTWRITEBYTECODE would leave it to every process
	@touch $(READY)

$(LOCKED): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "attlas needs Python 3.11 or newer; name one with: make $(MAKECMDGOALS) PYTHON=python3.11"; exit 1; }
	@echo "Setting up .venv from requirements.lock (a minute or two, once)"
	@$(PYTHON) -m venv --clear .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	@touch $(LOCKED)

clean:
	rm -rf .venv site dist docs/_build docs/api .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
