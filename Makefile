# `make demo` and `make test` work in a fresh clone: they set up .venv first, and at once when it is there.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/ready
SERVERS := $(VENV)/servers
BENCHES ?= facts writes consolidate opening importing size startup gate privacy recall_speed robotgrid mirror doors
DATA_BENCHES ?= locomo xquad corrections compression peers

.DEFAULT_GOAL := help
.PHONY: help demo serve test lint fix bench docs constraints clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) ## play a small life of an agent, in a temporary folder
	@$(PY) examples/life.py

serve: $(READY) ## serve the page, REST and MCP of the demo's account, which is played first if it is not there
	@[ -d build/demo/nok ] || $(PY) examples/life.py build/demo >/dev/null
	@$(PY) -m octavo --root build/demo --account nok --actor human:nok open

# The tests sync every file they write; where there is room, they do so in memory.
MEMORY := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 6000000 {print "TMPDIR=/dev/shm"}')

test: lint $(SERVERS) ## everything that must hold: format, lint, types, all tests
	@$(MEMORY) $(PY) -m pytest -n 2 --dist worksteal || { \
		echo "once more, alone, what failed beside others (what passes only now is a defect to mend):"; \
		$(MEMORY) $(PY) -m pytest -rA --last-failed --last-failed-no-failures none; }

lint: $(READY) ## format, lint and types
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy --strict src

fix: $(READY) ## format, and correct what can be corrected
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

bench: $(READY) ## measure; DATA=<folder> adds what needs the data sets
	@set -e; for bench in $(BENCHES); do echo "== $$bench"; $(PY) -m bench.$$bench; done
	@set -e; if [ -n "$(DATA)" ]; then \
		for bench in $(DATA_BENCHES); do echo "== $$bench"; $(PY) -m bench.$$bench "$(DATA)"; done; fi

docs: $(READY) ## write the generated parts of docs/ anew
	$(PY) -m docs.references docs

constraints: ## write constraints.txt anew from the newest versions that fit
	rm -rf build/constraints && $(PYTHON) -m venv build/constraints
	build/constraints/bin/python -m pip install --quiet --upgrade pip
	build/constraints/bin/python -m pip install --quiet --editable . --group dev
	{ echo "# Exact versions that are tested together. Made anew by: make constraints"; \
	  build/constraints/bin/python -m pip freeze --exclude-editable; } > constraints.txt

clean: ## remove what is made here, .venv too
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Debian's Python comes without venv; on a machine where we may, it is installed, elsewhere it is named.
$(READY): pyproject.toml constraints.txt
	@[ -n "$(PYTHON)" ] && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Octavo needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 …" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		package=$$($(PYTHON) -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			apt-get update -qq && apt-get install -y -qq $$package; \
		else echo "this Python has no venv module; install $$package and try again" >&2; exit 1; fi; }
	@echo "setting up $(VENV) (once)"
	@[ -x $(PY) ] || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --upgrade 'pip>=25.1'
	@$(PY) -m pip install --quiet --constraint constraints.txt --editable . --group dev
	@touch $@

# The tests run a real PostgreSQL, PgBouncer and browser: Debian's packages, installed where we may, named elsewhere.
$(SERVERS): Makefile $(READY)
	@missing=""; \
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$$missing postgresql"; \
	command -v chromium >/dev/null || missing="$$missing chromium"; \
	command -v npm >/dev/null || missing="$$missing npm"; \
	command -v git >/dev/null || missing="$$missing git"; \
	PATH=$$PATH:/usr/sbin command -v pgbouncer >/dev/null || missing="$$missing pgbouncer"; \
	command -v openssl >/dev/null || missing="$$missing openssl"; \
	if [ -n "$$missing" ]; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "installing$$missing (once)"; \
			apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing fonts-noto-core >/dev/null; \
		else echo "the tests need Debian's packages$$missing; install them and try again" >&2; exit 1; fi; fi
	@touch $@
