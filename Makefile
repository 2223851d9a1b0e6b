# Everything a newcomer needs: `make demo`, `make test`, `make lint`. Each sets up what it needs.
PYTHON ?= python3
VENV ?= .venv
LOCK ?= # requirements/ci.txt: the versions of CI, with their hashes, in place of the newest
BIN := $(VENV)/bin
PYTEST := -n 2 --dist loadfile --no-loadscope-reorder
export PYTHONDONTWRITEBYTECODE := # set, every process would compile the package and the tests anew

.PHONY: demo test test-all bench soak lint docs lock agent clean

demo: $(VENV)/.installed
	$(BIN)/iolens demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest --part quick $(PYTEST) -q

test-all: $(VENV)/.installed-test-all # what `make test` leaves out
	scripts/system-packages
	$(BIN)/python -m pytest --part rest $(PYTEST) -n 3 -q --durations=30

bench: $(VENV)/.installed-test-all
	$(BIN)/python -m bench.utilization $(BENCH)
	$(BIN)/python -m bench.agent
	$(BIN)/python -m bench.hub
	$(BIN)/python -m bench.serve --days 30 --minutes 5
	$(BIN)/python -m bench.job_stats
	$(BIN)/python -m bench.report
	$(BIN)/python -m bench.sources
	$(BIN)/python -m bench.calibration
	-$(BIN)/python -m bench.real_disk # says so if this user may not
	$(BIN)/python -m bench.scan
	$(BIN)/python -m bench.workload
	$(BIN)/python -m bench.long_window
	$(BIN)/python -m bench.blame
	$(BIN)/python -m bench.culprits
	$(BIN)/python -m bench.jobs
	$(BIN)/python -m bench.runs
	$(BIN)/python -m bench.darshan
	$(BIN)/python -m bench.job_report
	$(BIN)/python -m bench.run_summary

soak: $(VENV)/.installed-test-all
	$(BIN)/python -m bench.soak $(SOAK)
	$(BIN)/python -m bench.agent_soak
	$(BIN)/python -m bench.alerts_soak
	$(BIN)/python -m bench.hub_soak
	$(BIN)/python -m bench.rebuild_soak
	$(BIN)/python -m bench.power_cut_soak
	$(BIN)/python -m bench.fuzz $(FUZZ)
	IOLENS_RANDOM=1 $(BIN)/python -m pytest $(PYTEST) -q -m "not live"
	IOLENS_RANDOM=1 $(BIN)/python -m pytest -q tests/live/test_engines.py tests/live/test_spark_cluster.py

lint: $(VENV)/.installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict

docs: $(VENV)/.installed-docs
	$(BIN)/python scripts/import_graph.py
	$(BIN)/python scripts/generate_docs.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

lock: # the newest versions that go together; needs uv
	scripts/lock-requirements

agent: $(VENV)/.installed
	$(BIN)/python scripts/make_agent.py

clean:
	rm -rf $(VENV) build dist demo site .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.installed: pyproject.toml
	scripts/make-venv $(PYTHON) $(VENV)
	$(if $(LOCK),$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $(LOCK))
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[darshan]'
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

$(VENV)/.installed-test-all: $(VENV)/.installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test-all]'
	touch $@

$(VENV)/.installed-lint: $(VENV)/.installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[lint]'
	touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@
