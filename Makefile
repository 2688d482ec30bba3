# Every target sets up what it needs and is quick the second time. `make` alone lists them.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# Hundreds of processes would each compile what the first one has compiled already.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
UNIT := tests/unit tests/property
# `make test` runs these, and each program, command and route with a success and a refusal.
QUICK := $(UNIT) tests/blackbox/smoke

# Arguments for a person: PYTEST_ARGS="-k name", REQUIRE_CLUSTER=1 (a skipped cluster test fails).
PYTEST_ARGS ?=
# Most tests wait for something: three of them share a processor.
WORKERS ?= $(shell expr 3 \* $$(nproc))
# Quick tests wait for little, and each worker collects them again.
QUICK_WORKERS = $(if $(filter 0,$(WORKERS)),0,$(shell nproc))
# Series and fleets load a machine by themselves.
LONG_WORKERS = $(if $(filter 0,$(WORKERS)),0,$(shell expr 2 \* $$(nproc)))
PYTEST = $(BIN)/python -m pytest -q $(PYTEST_ARGS)
# Tests that need no cluster and repeat nothing for long.
HERE = not cluster and not node and not long
# Neighbouring tests share servers: each worker begins with a part of its own, then helps the others.
PARALLEL = -n $(WORKERS) --dist worksteal

VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' reporter/__init__.py)
REVISION = $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
ENGINE ?= $(firstword $(foreach engine,buildah podman docker,$(if $(shell command -v $(engine)),$(engine))))
# The time of every file in the image: two builds of a revision have the same digest. docker takes
# the time from SOURCE_DATE_EPOCH.
STAMP = $(if $(filter buildah podman,$(notdir $(ENGINE))),--timestamp $$(git log -1 --format=%ct 2>/dev/null || echo 0))
SOURCE ?=
IMAGE ?= localhost/status-reporter:dev
BUILD_ARGS ?=
# Nodes that `make cluster` adds to the real one; Pods on them never run.
NODES ?= 0

# $(call need,VARIABLE,example): stops with one clear line where the variable is not given.
need = if [ -z "$($(1))" ]; then echo "make $@ needs $(1), for example: make $@ $(1)=$(2)" >&2; exit 2; fi

.PHONY: help install demo test test-integration test-cluster test-cluster-bed test-cluster-people test-long test-long-local test-browser \
  test-long-cluster test-long-cluster-bed test-long-cluster-people test-python \
  test-coverage test-coverage-html lint fmt \
  verify bench soak mutation lock image image-dev image-push image-archive binary chart release-check cluster cluster-down clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 24

$(READY): requirements/dev.txt pyproject.toml scripts/venv.sh
	@python=$$(scripts/python.sh)
	echo "Setting up $(VENV) with $$python"
	scripts/venv.sh $(VENV) requirements/dev.txt "$$python"
	touch $@

.venv-release/.ready: $(READY) requirements/release.txt scripts/venv.sh
	@echo "Setting up .venv-release"
	scripts/venv.sh .venv-release requirements/release.txt "$$(scripts/python.sh)"
	touch $@

.venv-%/.ready: requirements/test.txt pyproject.toml scripts/venv.sh
	@echo "Setting up .venv-$* with $(OTHER)"
	scripts/venv.sh .venv-$* requirements/test.txt "$(OTHER)"
	touch $@

install: $(READY) ## create .venv with the locked packages and this project

demo: $(READY) ## run three example adapters without a cluster
	@PATH="$(CURDIR)/$(BIN):$$PATH" examples/demo.sh

test: $(READY) ## run the quick tests: 90 seconds on two cores, no root, no Go
	@$(PYTEST) -n $(QUICK_WORKERS) --dist worksteal -m "$(HERE)" $(QUICK)
	echo "Not run here: make test-integration, test-cluster and test-long."

test-integration: $(READY) ## run the other tests that need no cluster
	@$(PYTEST) $(PARALLEL) -m "$(HERE)" $(addprefix --ignore ,$(QUICK))

test-python: $(READY) ## run the unit and property tests on another Python, 3.13 or 3.11
	@version=$$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
	other=$$(scripts/python.sh other "$$version")
	if [ -z "$$other" ]; then
	  echo "Not run on another Python than $$version: no other supported version was found on this machine."
	  exit
	fi
	name=$$("$$other" -c 'import sys; print("%d%d" % sys.version_info[:2])')
	$(MAKE) -s .venv-$$name/.ready OTHER="$$other"
	# Packages, manifests and documents are the same there.
	.venv-$$name/bin/python -m pytest -q $(PYTEST_ARGS) -n $(QUICK_WORKERS) --dist worksteal -m "$(HERE)" $(UNIT) \
	  --ignore tests/unit/repository

ABROAD = tests/blackbox/aggregator/test_aggregator_absence.py tests/blackbox/ctl/test_real_aggregator.py \
  tests/blackbox/ctl/test_real_reporter.py

test-versions: $(READY) ## run each program of another commit with the others of this one: BASE=COMMIT
	@base=$$(mktemp -d)
	trap 'rm -rf "$$base"' EXIT
	git archive "$(or $(BASE),HEAD)" | tar -x -C "$$base"
	for program in REPORTER AGGREGATOR COMMAND; do
	  env "OTHER_$$program=$$base" $(PYTEST) $(ABROAD)
	done

# Debian packages for the node and the image build, where this may install them.
define bed
if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then tests/bed/setup.sh; fi
endef

CLUSTER = $(PYTEST) $(addprefix --ignore ,$(QUICK) tests/browser tests/long tests/blackbox/long)

test-cluster: test-cluster-bed test-cluster-people ## run the tests against a real API server and, as root, a real node

# Each has a cluster of its own: they can run beside each other.
test-cluster-bed: $(READY)
	@$(bed)
	$(CLUSTER) -m "(cluster or node) and not people and not long"

test-cluster-people: $(READY)
	@$(bed)
	$(CLUSTER) -m "(cluster or node) and people and not long"

test-long: test-long-local test-browser test-long-cluster ## run the long tests: kills, fleets, outages, bulk fuzzing, a second Python

test-long-local: $(READY)
	@$(bed)
	$(MAKE) test-python
	$(PYTEST) -n $(LONG_WORKERS) --dist worksteal --ignore tests/browser -m "long and not cluster and not node"
	PROPERTY_EXAMPLES=100 $(PYTEST) -n $(LONG_WORKERS) --dist worksteal -m "hypothesis and not long"

# Not beside a node that starts or ends: a browser gives up on a page when the machine's network changes.
test-browser: $(READY)
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then tests/browser/setup.sh; fi
	$(PYTEST) -n $(LONG_WORKERS) --dist worksteal -m "long" tests/browser

test-long-cluster: test-long-cluster-bed test-long-cluster-people

test-long-cluster-bed: $(READY)
	@$(bed)
	$(PYTEST) -m "long and (cluster or node) and not people"

test-long-cluster-people: $(READY)
	@$(bed)
	$(PYTEST) -m "long and (cluster or node) and people"

test-coverage: $(READY) ## measure coverage; verdict, run and untar must be complete
	@rm -f .coverage .coverage.*
	PROPERTY_EXAMPLES=100 $(PYTEST) $(PARALLEL) -m "$(HERE)" \
	  --cov --cov-report=term:skip-covered
	$(BIN)/python -m coverage report --include='reporter/verdict/*,reporter/run/*,reporter/untar/*' \
	  --show-missing --skip-covered --fail-under=100

test-coverage-html: $(READY) ## measure coverage and write htmlcov/index.html
	@rm -f .coverage .coverage.*
	$(PYTEST) $(PARALLEL) -m "$(HERE)" --cov --cov-report=html

lint: $(READY) ## check format, style, types, layers, locks and documents
	@$(BIN)/ruff format --check --quiet . || { echo "make fmt formats these files" >&2; $(BIN)/ruff format --check .; }
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/mypy scripts/*.py
	for program in cmd/*.py; do $(BIN)/mypy "$$program"; done
	$(BIN)/lint-imports --no-logo >$(VENV)/lint-imports.log || { cat $(VENV)/lint-imports.log; exit 1; }
	$(BIN)/python scripts/check_locks.py
	$(BIN)/python scripts/check_docs.py
	$(BIN)/python scripts/plain_manifests.py --check
	$(BIN)/python scripts/derived_manifests.py --check
	for script in scripts/*.sh .ci/run; do bash -n "$$script"; done
	if [ -e cmd/__init__.py ]; then echo "cmd/__init__.py would shadow the standard module cmd" >&2; exit 1; fi

fmt: $(READY) ## format the code, fix what can be fixed automatically, write the generated tables
	@$(BIN)/python scripts/docs_tables.py
	$(BIN)/python scripts/plain_manifests.py
	$(BIN)/python scripts/derived_manifests.py
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

verify: lint test test-integration ## lint, and run the quick and the integration tests

bench: $(READY) ## measure the figures of docs/benchmarks.md
	@$(bed)
	$(BIN)/python -m tests.bench
	$(BIN)/python -m tests.bench.aggregator
	$(BIN)/python -m tests.bench.commands
	$(BIN)/python -m tests.bench.upload
	$(BIN)/python -m tests.bench.host
	$(BIN)/python -m tests.bench.runs
	$(BIN)/python -m tests.bench.judging
	$(BIN)/python -m tests.bench.page
	$(BIN)/python -m tests.bench.snapshot

lock: $(READY) ## write requirements/*.txt from pyproject.toml (UPGRADE=1: newest versions)
	@UV=$(BIN)/uv UPGRADE="$(UPGRADE)" scripts/lock.sh

image: ## build the container image: IMAGE=localhost/status-reporter:dev
	@if [ -z "$(ENGINE)" ]; then echo "make $@ needs buildah, podman or docker" >&2; exit 1; fi
	$(ENGINE) build --build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) \
	  --build-arg SOURCE=$(SOURCE) $(STAMP) $(BUILD_ARGS) \
	  --file Dockerfile --tag $(IMAGE) .

image-push: ## build the image and push it as REGISTRY/status-reporter:VERSION
	@$(call need,REGISTRY,registry.example.org/team)
	$(MAKE) image IMAGE=$(REGISTRY)/status-reporter:$(VERSION)
	$(ENGINE) push $(REGISTRY)/status-reporter:$(VERSION)

image-dev: ## the same for this revision: REGISTRY/status-reporter:dev-REVISION
	@$(call need,REGISTRY,registry.example.org/you)
	$(MAKE) image IMAGE=$(REGISTRY)/status-reporter:dev-$(REVISION)
	$(ENGINE) push $(REGISTRY)/status-reporter:dev-$(REVISION)

image-archive: $(READY) ## build the image from Debian packages, without a registry: OUT=image.tar
	@$(call need,OUT,status-reporter.tar)
	$(bed)
	$(BIN)/python -m tests.bed image --out "$(OUT)"

binary: $(READY) .venv-release/.ready ## pack status-ctl into one file: OUT=dist/status-ctl
	@scripts/binary.sh "$(or $(OUT),dist/status-ctl)"

chart: ## pack the Helm chart and its library chart, status-reporter-chart.tgz and -library.tgz: OUT=dist
	@$$(scripts/python.sh) scripts/pack_chart.py "$(or $(OUT),dist)"

release-check: $(READY) .venv-release/.ready ## build what a release publishes into dist/ and check it: RELEASE=0.1.0
	@$(bed)
	.venv-release/bin/python scripts/release_check.py $(RELEASE)

soak: $(READY) ## run random Jobs under random faults on a real node: MINUTES=3 SEED=any
	@$(bed)
	$(BIN)/python -m tests.blackbox.soak --minutes $(or $(MINUTES),3) $(if $(SEED),--seed $(SEED))

mutation: $(READY) ## introduce small faults and check that the tests catch them: PACKAGES=folders COUNT=300 SEED=1
	@$(BIN)/python -m tests.mutation $(if $(PACKAGES),--package $(PACKAGES)) $(if $(COUNT),--count $(COUNT)) \
	  $(if $(SEED),--seed $(SEED)) $(if $(TESTS),--tests $(TESTS))

cluster: $(READY) ## start a real cluster on this machine and print its kubeconfig: DIR=directory
	@$(call need,DIR,/tmp/cluster)
	$(bed)
	$(BIN)/python -m tests.bed up --dir "$(DIR)" --hollow $(NODES)

cluster-down: $(READY) ## stop the cluster in DIR
	@$(call need,DIR,/tmp/cluster)
	$(BIN)/python -m tests.bed down --dir "$(DIR)"

clean: ## remove what make created in this directory, including virtual environments
	@rm -rf .venv .venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache \
	  .coverage .coverage.* .mutation htmlcov build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.ONESHELL:
