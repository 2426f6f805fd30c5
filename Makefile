# Two commands matter: `make book` and `make test`. `make` alone lists them all.

PYTHON ?= python3
# Which groups of pyproject.toml are installed; .ci/run asks for more.
EXTRAS ?= numba,plots,widgets,tests
N ?=
# What `make measure` times; without a name it lists what there is.
CLAIM ?=
PORT ?= 8000

PY := .venv/bin/python
comma := ,
node := $(if $(shell command -v npm),,$(comma)node)
READY := .venv/ready-$(subst $(comma),-,$(EXTRAS)$(node))

# The checkout comes first on the path, so that it may be moved or renamed.
export PYTHONPATH := $(CURDIR)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONUNBUFFERED := 1
# compiled modules are kept, whatever the shell says: pip leaves them to Python
export PYTHONDONTWRITEBYTECODE :=
export JUPYTER_PLATFORM_DIRS := 1
export PYDEVD_DISABLE_FILE_VALIDATION := 1

.PHONY: help book test lint chapter notebooks serve browser measure clean distclean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' Makefile \
	  | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

book: $(READY) ## run every notebook once and build the pages (prints where they are)
	@$(PY) tools/vendor.py
	@$(PY) tools/build_book.py

test: $(READY) lint ## style, every notebook, every test
	@$(PY) tools/execute.py
	@$(PY) tools/check_prose.py
	@OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -n auto

lint: $(READY) ## style of code and notebooks
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .

chapter: $(READY) ## run and build one chapter only, such as N=04
	@$(PY) tools/vendor.py
	@$(PY) tools/build_chapter.py "$(N)"

notebooks: $(READY) ## open the chapters in JupyterLab
	@$(PY) -m jupyterlab notebooks

serve: book ## build, then serve the pages on this machine (PORT=8000)
	@echo "http://127.0.0.1:$(PORT)/ (stop with Ctrl-C)"
	@$(PY) -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html

browser: $(READY) ## test the built pages in Chromium (needs EXTRAS with browser)
	@OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -n auto tests/browser

measure: $(READY) ## time a claim and write it down, such as CLAIM=decode; or list them
	@$(PY) -m flashlib.measure $(CLAIM)

clean: ## remove what was built and executed
	rm -rf _build .executed .pytest_cache .ruff_cache .hypothesis

distclean: clean ## remove the environment and the vendored files too
	rm -rf .venv .vendor

# --no-compile: most modules are never imported.
$(READY): pyproject.toml requirements.txt constraints.txt
	@test -x $(PY) || sh tools/make_venv.sh "$(PYTHON)"
	@echo "installing into .venv (once; needs network)"
	@$(PY) -m pip install --quiet --no-compile --constraint constraints.txt \
	  --requirement requirements.txt --editable ".[$(EXTRAS)$(node)]"
	@touch $@
