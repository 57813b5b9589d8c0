# Hydra's everyday commands; `make` alone lists them. Everything is installed into .venv, nothing into the system but
# Debian's packages that are missing, and those as root only (scripts/system-packages; it names them otherwise), and a link
# to the command in a folder of PATH (scripts/link-command).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One stamp for each interpreter: another PYTHON makes the environment again, and everything in it.
ENVIRONMENT := $(VENV)/.made-by-$(notdir $(PYTHON))
STAMP := $(VENV)/.installed-$(notdir $(PYTHON))
ENGINES := $(VENV)/.engines-installed
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
NOW := $(shell date +%Y%m%d-%H%M%S)

.DEFAULT_GOAL := help
.PHONY: help demo quick test test-all test-rest prices lint newest soak bench man clean install native tox java servers jars browser prometheus sshd slurm kubernetes-rig native-tests
.DELETE_ON_ERROR:
.NOTPARALLEL:

help: ## List these commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 24
	@echo
	@echo "  Another interpreter: make PYTHON=python3.12 demo"

demo: ## Five small measurements on four systems, and a report (two and a half minutes; later one)
	@scripts/system-packages python $(PYTHON)
	@scripts/together "$(MAKE) --no-print-directory jars" "$(MAKE) --no-print-directory $(STAMP)"
	@scripts/demo $(BIN)/hydra runs/demo-$(NOW)

quick: $(VENV)/.tests-installed ## While writing: the tests that need no process, no socket and no server, of this tree (half a minute)
	PYTHONDONTWRITEBYTECODE= PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python scripts/suite.py quick

test: tox native-tests servers sshd ## Before others build on it: lint, types, each command once on each system (eight minutes)
	@scripts/together "$(BIN)/python hydra/native/build.py" "$(BIN)/tox run -e tests"

test-all: test test-rest ## Before it lands: all tests (30 minutes), on a real Kubernetes too where make kubernetes-rig has made one

test-rest: tox browser prometheus sshd
	$(BIN)/tox run -e tests -- rest

prices: tox native-tests servers browser prometheus sshd slurm ## Write what the tests cost into tests/prices.toml
	$(BIN)/tox run -e tests -- prices

lint: tox ## Lint and strict types only
	$(BIN)/tox run -e tests -- lint type

newest: tox servers ## Clients with newer libraries than pyproject.toml allows (every night)
	$(BIN)/tox run -e newest

soak: tox native servers ## Fifty seeds of trouble at random moments, lossy control channels, every figure against witnesses (an hour)
	HYDRA_SOAK_SEEDS=50 $(BIN)/tox run -e tests -- pytest -n 4 tests/integration/test_soak.py
	HYDRA_SOAK_SEEDS=12 $(BIN)/tox run -e tests -- pytest tests/integration/test_lossy_channel.py
	HYDRA_SOAK_SEEDS=1 $(BIN)/tox run -e tests -- pytest tests/integration/test_experiments.py
	HYDRA_SOAK_SEEDS=1 $(BIN)/tox run -e tests -- pytest tests/mesos/test_scenarios.py
	HYDRA_SOAK_SEEDS=1 $(BIN)/tox run -e tests -- pytest tests/kubernetes/test_faults.py tests/kubernetes/test_refused.py tests/kubernetes/test_runs.py
	HYDRA_SOAK_SEEDS=1 $(BIN)/tox run -e tests -- pytest tests/natstest/test_lossy.py tests/connections/test_planted.py
	HYDRA_TRUTH=whole $(BIN)/tox run -e tests -- pytest tests/truth
	HYDRA_EXPERIMENTS=whole $(BIN)/tox run -e tests -- pytest tests/integration/test_experiments.py
	HYDRA_VERDICTS=4 $(BIN)/tox run -e tests -- pytest tests/verdicts
	$(BIN)/tox run -e other-servers
	HYDRA_COMPARISONS=2000 $(BIN)/tox run -e tests -- pytest -n 2 tests/compare/test_simulated.py
	HYDRA_SLO=250 $(BIN)/tox run -e tests -- pytest tests/measure/test_slo_worlds.py
	HYDRA_SEARCHES=250 $(BIN)/tox run -e tests -- pytest -n 2 tests/sweep/test_searched_rates.py tests/sweep/test_few_short_steps.py

bench: install native servers ## What Hydra costs, beside bare programs and other tools (two hours; QUICK=1: six minutes)
	@$(BIN)/python -m bench $(if $(QUICK),--quick) --json build/bench.json </dev/null

man: install ## Man pages of all commands, where man finds them while .venv/bin is on PATH
	@$(BIN)/python scripts/man_pages.py $(VENV)/share/man/man1

install: $(ENGINES) ## Hydra in .venv, from this tree, with the engines for Kubernetes and Mesos

native: $(STAMP) ## The C++ clients, compiled now: a command compiles them only once, when they are first asked for
	@scripts/system-packages native
	@$(BIN)/python -m hydra.native.build

java: ## Java and Maven, if they are missing (the embedded Kafka broker)
	@scripts/system-packages java

jars: servers ## The jars of Kafka, fetched once into the user's cache
	@scripts/patiently "The jars of Kafka" $(PYTHON) -c 'from hydra.kafkatest.jars import fetch; fetch()'

servers: ## What the systems' own servers need, if it is missing: Java and Maven for Kafka, and others
	@scripts/system-packages servers

browser: ## Chromium, if it is missing (the tests of the report open it)
	@scripts/system-packages browser

prometheus: ## Prometheus, if it is missing (a test has it read what the dashboard shows)
	@scripts/system-packages prometheus

sshd: ## sshd, if it is missing (tests run hosts of their own)
	@scripts/system-packages sshd

slurm: ## Slurm, if it is missing (where it is installed, tests run a cluster of their own)
	@scripts/system-packages slurm

# By the Python of the tests, which has the built package; tests/ is in the tree.
kubernetes-rig: tox ## A Kubernetes for the tests, in the user's cache: compiled once, in about ten minutes (root)
	@scripts/system-packages native
	@scripts/system-packages kubernetes
	@$(BIN)/tox run -e tests --notest
	@.tox/tests/bin/python -Pc 'import hydra, sys; sys.path.insert(0, "."); from tests.kubernetes import building; building.main()'

native-tests: ## What the native client and its tests are built from, if it is missing
	@scripts/system-packages native-tests

clean: ## Remove what these commands made; runs of your own under runs/ stay
	@scripts/link-command --remove $(BIN)/hydra
	rm -rf $(VENV) .tox build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
	rm -rf shims/*/build shims/*/*.egg-info
	rm -rf runs/demo-*; rmdir runs 2>/dev/null || true
	find hydra tests bench -type d -name __pycache__ -prune -exec rm -rf {} +

# This alone empties the environment, before anything is installed into it.
$(ENVIRONMENT):
	@scripts/system-packages python $(PYTHON)
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

# An environment with tox alone is enough: it makes that of the tests.
tox: $(VENV)/.tox-installed

$(VENV)/.tox-installed: $(ENVIRONMENT)
	@$(PIP) install 'pip>=23.1' 'tox>=4.21,<5'
	@touch $@

$(STAMP): $(ENVIRONMENT) pyproject.toml setup.py
	@scripts/patiently "Installing Hydra into $(VENV)" $(PIP) install --no-compile --editable .
	@scripts/link-command $(BIN)/hydra
	@touch $@

$(ENGINES): $(STAMP) shims/http-parser/pyproject.toml
	@scripts/patiently "Installing the engines for Kubernetes and Mesos into $(VENV)" \
		$(PIP) install --no-compile 'pip>=23.1' ./shims/http-parser --editable '.[kubernetes,mesos]'
	@touch $@

$(VENV)/.tests-installed: $(ENGINES)
	@scripts/patiently "Installing what the tests need into $(VENV)" \
		$(PIP) install --editable '.[test,kubernetes,mesos,metrics]'
	@touch $@
