# `make app` and `make test` are all that a newcomer needs. Any make and sh will do; Python 3.11 or newer is looked for.
# Versions come from constraints.txt. Settings: PORT=7861 MODEL=tiny PYTHON=python3.12.

VENV = .venv
PORT ?= 7860
MODEL ?= small
PYTHON ?=

BIN = $(VENV)/bin
# Setuptools warns of every editable install.
INSTALL = -W ignore -m pip install --quiet --disable-pip-version-check

# sh: makes the environment $$venv with the first Python that is new enough, unless there is a working one.
MAKE_VENV = \
	"$$venv/bin/python" -c "import pip" 2>/dev/null || { \
	  found=; \
	  for python in $(PYTHON) python3 python3.13 python3.12 python3.11 python; do \
	    if "$$python" -c "import sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null; then found=$$python; break; fi; \
	  done; \
	  if [ -z "$$found" ]; then \
	    echo "No Python 3.11 or newer found: install one, or name it with PYTHON=/path/to/python3." >&2; exit 1; \
	  fi; \
	  echo "Making $$venv with $$("$$found" --version) ..."; \
	  rm -rf "$$venv"; \
	  "$$found" -m venv "$$venv" && "$$venv/bin/python" -m pip --version >/dev/null || { \
	    rm -rf "$$venv"; \
	    echo "$$found cannot make an environment: on Debian and Ubuntu, 'apt install python3-venv' mends that." >&2; exit 1; \
	  }; \
	}

.PHONY: setup app notebooks test test-eval lint bench compat clean

setup: $(VENV)/.installed

# Stamps: an environment is brought up to date when what defines it has changed.
$(VENV)/.installed: pyproject.toml constraints.txt
	@venv=$(VENV); $(MAKE_VENV)
	@echo "Installing magnet_lab (minutes the first time) ..."
	@$(BIN)/python $(INSTALL) --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "Installing what the tests need ..."
	@$(BIN)/python $(INSTALL) --constraint constraints.txt --editable ".[dev]"
	@touch $@

app: setup
	@$(BIN)/magnet-lab app --model "$(MODEL)" --port "$(PORT)"

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest

# The adapters for others' tools, with those tools: hundreds of megabytes, so not a part of `test`.
test-eval: $(VENV)/.installed-dev
	@$(BIN)/python $(INSTALL) --constraint constraints.txt --editable ".[eval]"
	$(BIN)/python -m pytest tests/integrations

# The course in JupyterLab, in the clone itself.
notebooks: setup
	$(BIN)/python -m jupyterlab notebooks

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

bench: setup
	@for name in $$($(BIN)/magnet-lab bench); do $(BIN)/magnet-lab bench $$name || exit 1; done

# The fast tests on the lowest versions that pyproject.toml allows. TORCH overrides the lowest torch, for machines where
# only one build of it can be had, and COMPAT_PYTHON the Python: the oldest numpy has no wheels for the newest ones.
TORCH ?=
COMPAT_PYTHON ?= python3.11

compat: pyproject.toml
	@venv=$(VENV)-compat; set -e; rm -rf $$venv; \
	$(COMPAT_PYTHON) -m venv $$venv; \
	$$venv/bin/python tests/lowest_versions.py pyproject.toml $(TORCH) > $$venv/lowest.txt; \
	$$venv/bin/python $(INSTALL) --constraint $$venv/lowest.txt --editable ".[dev]"; \
	$$venv/bin/python -m pytest -m "not slow and not browser"

clean:
	rm -rf $(VENV) $(VENV)-compat build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
