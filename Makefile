# Two commands matter: `make trial` runs the main job, `make test` the test suite.
# Both do all their own set-up; `drainwatch setup` says what it installs.

PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
TWO     = -n 2 --dist worksteal
THREE   = -n 3 --dist worksteal
MATRIX  = scenarios/test_published_matrix.py -n 5 --dist worksteal --dw-repeat 5
export DW_CLUSTER ?= embedded

.PHONY: trial test test-all matrix bench bench-accuracy bench-prober check setup setup-tests setup-kind venv docs screenshots clean help

help:                 ## this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/: .*## /\t/' | expand -t 16

trial: setup          ## set-up, then the main job: the drain scenarios on a real cluster
	$(BIN)/pytest scenarios/ -k "drain and not published" -v --dw-cluster=$(DW_CLUSTER)

# Trials mostly wait, so three go side by side, each worker with clusters of its own; worksteal
# keeps a module's tests together, and with them its cluster. Every test that is not slow is in
# one of the parts, and a part without tests fails (pytest's code 5).
test: setup-tests check ## set-up, checks, and the test suite, real cluster trials included
	$(BIN)/pytest $(TWO) -m "not slow and not alone and not cluster"
	$(BIN)/pytest $(THREE) -m "not slow and not alone and cluster"
	$(BIN)/pytest -m "not slow and alone"

test-all: test setup-kind ## the test suite and everything that takes minutes
	$(BIN)/pytest $(TWO) tests/core -m "not slow" --hypothesis-profile=thorough
	$(BIN)/pytest -m slow --ignore=tests/cases/test_questions.py  # these are scenarios, next
	$(BIN)/pytest scenarios/ --dw-cluster=$(DW_CLUSTER)

# Five repeats of the ancestor's five arms, on its Kubernetes and on ours: docs/matrix.md.
matrix: setup         ## the published matrix on Kubernetes 1.34 and 1.37, 25 trials each
	$(BIN)/drainwatch setup --yes --kube-version 1.34
	$(BIN)/pytest $(MATRIX) --dw-kube-version 1.34 --dw-out results/matrix-1.34
	$(BIN)/pytest $(MATRIX) --dw-kube-version 1.37 --dw-out results/matrix-1.37

bench: setup-tests    ## start-up, derive, import cost, the page, and the matrix in turn and side by side
	$(BIN)/python -m bench.import_cost
	$(BIN)/python -m bench.derive
	$(BIN)/python -m bench.page
	$(BIN)/python -m bench.startup
	$(BIN)/python -m bench.matrix

bench-accuracy: setup-tests ## flow ends of real trials against tcpdump: coverage and widths
	$(BIN)/python -m bench.accuracy

bench-prober: venv    ## what new connections every 5 ms cost the flows beside them
	$(BIN)/python -m bench.prober

check: venv           ## formatting, lint, types, architecture
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

setup: venv           ## distribution packages, the Kubernetes binary, the probe's root file system
	$(BIN)/drainwatch setup --yes

setup-tests: venv     ## the same, tcpdump and a browser
	$(BIN)/drainwatch setup --yes --for-tests

# Without Docker and kind a node image is built from packages (some ten minutes); where that
# cannot be, the tests of tests/kind are skipped with the reason.
setup-kind: venv      ## pytest-kind, and for tests/kind a node image where there is no Docker with kind
	$(BIN)/pip install --quiet --group kind
	-$(BIN)/python -m tests.kind.lab

venv: $(VENV)/.installed

# pip 25.1 brought dependency groups.
$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet 'pip>=25.1'
	$(BIN)/pip install --quiet --editable '.[embedded]' --group dev
	touch $@

docs: venv            ## write the generated pages of docs/
	$(BIN)/python docs/make_verdicts.py
	$(BIN)/python docs/make_csv.py
	$(BIN)/python docs/make_existing.py
	$(BIN)/python docs/make_matrix.py
	$(BIN)/python docs/make_fidelity.py
	$(BIN)/python docs/make_options.py
	$(BIN)/python docs/make_commands.py
	$(BIN)/python docs/make_house.py
	$(BIN)/python docs/make_termination.py

screenshots: setup-tests ## docs/screenshots: the page of the sample run as a browser shows it
	$(BIN)/python -m docs.make_screenshots

clean:                ## the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
