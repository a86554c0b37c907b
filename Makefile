# `make help` lists what there is.

PYTHON  ?= python3
SEED    ?= 0
WORKERS ?= 2
EXTRAS  ?= dev
BIN     := .venv/bin
PIP     := $(BIN)/python -m pip install -qq --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test check lint types layers format bench bench-quick

help: ## this list
	@sed -n 's/^\([a-z.]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

.venv: .venv/.installed ## the environment, rebuilt when pyproject.toml or constraints.txt change

# torch first and alone: where a build for this machine is at hand, the rest then resolves to it.
.venv/.installed: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing torch, then the rest (some minutes the first time)"
	@$(PIP) "$$(grep '^torch==' constraints.txt)"
	@$(PIP) --constraint constraints.txt --editable '.[$(EXTRAS)]'
	@touch $@

demo: .venv/.installed ## train the demo task (SEED=n)
	@$(BIN)/gspo train demo seed=$(SEED)

# The peer of the benchmark, apart from ours; the same torch, for this machine, first and alone.
.venv-bench: .venv-bench/.installed ## the environment of the benchmark's peer

.venv-bench/.installed: bench/constraints-peer.txt
	@test -x .venv-bench/bin/python || $(PYTHON) -m venv .venv-bench
	@echo "installing the benchmark's peer (some minutes the first time)"
	@.venv-bench/bin/python -m pip install -qq --disable-pip-version-check "$$(grep '^torch==' $<)"
	@.venv-bench/bin/python -m pip install -qq --disable-pip-version-check --requirement $<
	@touch $@

bench: .venv/.installed .venv-bench/.installed ## ours against TRL, hours (ROWS="gen-5m-128 update-p128")
	@$(BIN)/python -m bench.versus $(ROWS)
	@$(BIN)/python -m bench.versus.report

bench-quick: .venv/.installed .venv-bench/.installed ## its main row, minutes; prints only
	@$(BIN)/python -m bench.versus --quick

# Coverage is collected here, in the one run of the tests; pyproject.toml says of what, and 100 %.
test: .venv/.installed ## every test, and full coverage of layers 0 and 1
	@$(BIN)/pytest -q -n $(WORKERS) --dist worksteal --cov --cov-report term-missing:skip-covered

check: lint types layers ## all that is checked without running the code

lint: .venv/.installed ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: .venv/.installed ## pyright
	@$(BIN)/pyright

layers: .venv/.installed ## imports point down
	@$(BIN)/lint-imports --no-logo --no-cache

format: .venv/.installed ## let ruff mend what it can
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .
