# make setup   set up: everything goes into .venv
# make atlas   set up, write the site from the shipped results, run the quick atlas here, say whether this machine agrees, write the site again
# make test    set up, pass all tests
# make check   format, lint, types, who may import whom
# make docs    build the documentation, strictly and offline
# make bench   benchmarks, as ratios to something measured in the same run
# make lock    pin the dependencies anew, with hashes
# make lowest  install the lowest versions that pyproject.toml allows, and pass the core tests with them
# make newer   fetch a newer Python from Debian, install the newest versions, and pass the core tests with them
# make attack  kill drivers, flip bytes, send nonsense, for minutes: the long form of tests/attack
# make clean   remove the environment and everything that was made (never the store)

PYTHON ?= python3
BIN := .venv/bin
LOCKED := .venv/locked
READY := .venv/ready
PYTEST_WORKERS ?= 2
CORE_TESTS := tests/layers tests/numerics tests/test_inputs.py tests/test_tokens.py tests/store/test_payload.py \
  tests/store/test_key.py tests/store/test_store.py tests/aim/test_spectrum.py tests/aim/test_state_evolution.py \
  tests/context/test_theory.py tests/positional/test_bayes.py tests/features/test_kernels.py tests/features/test_regressor.py \
  tests/recovery/test_layer.py

.PHONY: setup atlas test check docs bench lock lowest newer attack clean
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
	@cp requirements.lock .venv/requirements.lock # pins stay unless pyproject.toml asks for others
	$(BIN)/pip-compile --quiet --extra all --extra dev --strip-extras --no-annotate --no-header --no-emit-index-url --no-emit-options \
	  --no-emit-find-links --no-emit-trusted-host --allow-unsafe --output-file .venv/requirements.lock pyproject.toml
	$(BIN)/python .ci/hashes.py .venv/requirements.lock
	@mv .venv/requirements.lock requirements.lock

lowest: $(READY)
	@$(PYTHON) -m venv --clear .venv-lowest
	@$(BIN)/python .ci/lowest.py > .venv-lowest/requirements.txt
	@.venv-lowest/bin/pip install --quiet --disable-pip-version-check --requirement .venv-lowest/requirements.txt
	@$(BIN)/python -m hatchling build --target wheel --directory .venv-lowest/dist > .venv-lowest/build.log
	@.venv-lowest/bin/pip install --quiet --disable-pip-version-check --no-deps .venv-lowest/dist/attlas-*.whl
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv-lowest/bin/python -m pytest -q -n $(PYTEST_WORKERS) -p no:cacheprovider \
	  -W "ignore:Passing a non-Collection iterable" $(CORE_TESTS)

newer: $(READY)
	@rm -rf .venv-newer .debian-python
	@$$($(BIN)/python .ci/debian_python.py .debian-python) -m venv --without-pip .venv-newer
	@$(BIN)/python .ci/lowest.py --newest > .venv-newer/requirements.txt
	@$(BIN)/pip --python .venv-newer/bin/python install --quiet --disable-pip-version-check --requirement .venv-newer/requirements.txt
	@$(BIN)/python -m hatchling build --target wheel --directory .venv-newer/dist > .venv-newer/build.log
	@$(BIN)/pip --python .venv-newer/bin/python install --quiet --disable-pip-version-check --no-deps .venv-newer/dist/attlas-*.whl
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv-newer/bin/python -m pytest -q -n $(PYTEST_WORKERS) -p no:cacheprovider $(CORE_TESTS)

attack: $(READY)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 ATTLAS_ATTACK=long ATTLAS_FUZZ=200 $(BIN)/python -m pytest -q -s tests/attack tests/fuzz

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
	rm -rf .venv .venv-lowest .venv-newer .debian-python site dist docs/_build docs/api docs/gallery docs/plots .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
