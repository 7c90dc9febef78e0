# Everything a person needs, one line of help each.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
BIN := .venv/bin
# Where tests run in parallel, each worker needs one thread of DuckDB and Arrow, not all of them.
WORKERS ?= 2
# Before a command that starts Spark, so that it runs on the Java found even where another one is on PATH.
JAVA := JAVA_HOME="$$(tools/java-home)"
CONNECTORS := .venv/connectors
# The Spark that Delta is built for, which is older than ours.
DELTA_SPARK := .venv/delta-spark
ARCHIVE := .venv/spark-classes.jsa
ESPER := .venv/esper
# Most of what the JVMs of tests do they do once: the optimising compiler would cost more than it saves, about half.
QUICK := -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
COPY := mvn -q dependency:copy-dependencies
# As root on Debian, installs a package; elsewhere it fails, and the line that called it says what is missing.
apt = { [ "$$(id -u)" = 0 ] && apt-get update && apt-get install --yes --no-install-recommends $(1); } >/dev/null 2>&1
maven = command -v mvn >/dev/null || $(call apt,maven) \
	|| { echo "$(1) is fetched by Maven: run 'apt-get install maven' as root, then make again"; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help setup java connectors delta-spark esper demo test test-fast coverage soak bench lint format lock clean

help: ## Show this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | column -t -s "$$(printf '\t')"

# The lock has every package that any other needs, so that pip is not asked to find them: it would look at newer releases
# than the locked ones, and refuse a package with an extra as soon as there is one.
setup: .venv/ready ## Create .venv with the pinned dependencies and this package

.venv/ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Panewise needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv .venv \
		|| { echo "Python has no venv module: run 'apt-get install python3-venv' as root, then make again"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

java: ## Find Java 17 or 21 for Spark; as root on Debian, install it
	@tools/java-home >/dev/null 2>&1 || $(call apt,openjdk-17-jre-headless) || $(call apt,openjdk-21-jre-headless) || true
	@tools/java-home >/dev/null

connectors: $(CONNECTORS)/ready ## Fetch Spark's connectors and the Kafka broker that tests talk to

$(CONNECTORS)/ready: tools/connectors.xml | setup java
	@$(call maven,What Spark connects to)
	@rm -rf $(CONNECTORS)/spark $(CONNECTORS)/kafka
	$(JAVA) $(COPY) -f tools/connectors.xml -P spark -DoutputDirectory=$(CURDIR)/$(CONNECTORS)/spark
	$(JAVA) $(COPY) -f tools/connectors.xml -P kafka -DoutputDirectory=$(CURDIR)/$(CONNECTORS)/kafka
	@touch $@

delta-spark: $(DELTA_SPARK)/ready ## Fetch Delta, and the Spark that it is built for, for the tests of Delta

$(DELTA_SPARK)/ready: requirements-delta.lock tools/connectors.xml | connectors
	@rm -rf $(DELTA_SPARK) $(CONNECTORS)/delta
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --no-build-isolation \
		--target $(DELTA_SPARK) -r requirements-delta.lock
	$(JAVA) $(COPY) -f tools/connectors.xml -P delta -DoutputDirectory=$(CURDIR)/$(CONNECTORS)/delta
	@touch $@

esper: $(ESPER)/ready ## Fetch Esper, which windows without a SLIDE are compared with, and compile what asks it

$(ESPER)/ready: tools/esper.xml benchmarks/promises/LanesEsper.java | setup java
	@$(call maven,Esper)
	@rm -rf $(ESPER)
	$(JAVA) $(COPY) -f tools/esper.xml -DoutputDirectory=$(CURDIR)/$(ESPER)/jars
	"$$(tools/java-home)/bin/javac" -cp "$(ESPER)/jars/*" -d $(ESPER) benchmarks/promises/LanesEsper.java
	@touch $@

# Every test of Spark starts a JVM or several; with its classes archived one starts in half the time.
$(ARCHIVE): requirements.lock tools/spark_classes.py | connectors
	@rm -f $@
	$(JAVA) JDK_JAVA_OPTIONS="$(QUICK)" PYSPARK_PYTHON=$(BIN)/python $(BIN)/spark-submit \
		--driver-java-options "-XX:ArchiveClassesAtExit=$@ -Xlog:cds=off -Xlog:cds+dynamic=off" tools/spark_classes.py 2>/dev/null

demo: setup java ## Answer a script of standing queries over a generated stream, live
	$(JAVA) $(BIN)/panewise demo

# Tests are compiled once, also where the machine asks Python not to keep what it compiles: that is half of collecting them.
test test-fast: export PYTHONDONTWRITEBYTECODE =
test: export CI = true # the same cases each time; test-fast draws new ones
# Tracing makes a test take nearly twice as long, so that the slow ones, which are most of the time, are not traced.
test: setup java connectors delta-spark ## Run everything CI runs, and show the coverage of the fast tests
	@$(MAKE) --no-print-directory --jobs=2 lint $(ARCHIVE)
	@status=0; \
	$(MAKE) --no-print-directory coverage || status=1; \
	$(JAVA) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "(slow or timed) and not soak" || status=1; \
	exit $$status

test-fast: setup java ## Run the tests for daily work
	$(JAVA) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow and not soak"

coverage: setup java ## Run the tests for daily work, and show the files of which they reach least, and the total
	$(JAVA) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow and not soak and not timed" \
		--cov --cov-report=
	@$(BIN)/coverage report --sort=cover | sed -n '1,12p;$$p'

soak: setup java connectors $(ARCHIVE) ## Run what takes up to an hour: kills, attacks, every case of every scalar function
	$(JAVA) $(BIN)/python -m pytest -m soak

bench: setup java ## Measure every figure of the papers; SIZE=seconds (default) or full
	@$(MAKE) --no-print-directory esper || echo "There is no Esper to compare with: it needs Maven and a JDK"
	$(JAVA) $(BIN)/python -m benchmarks --all --size $(or $(SIZE),seconds)

lint: setup ## Check style, spelling, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: setup ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: setup ## Pin the newest versions that pyproject.toml allows
	$(BIN)/uv pip compile pyproject.toml --group dev --all-extras --universal --python-version 3.11 --generate-hashes \
		--no-annotate --no-header --no-emit-index-url --upgrade --quiet --output-file requirements.lock
	echo pyspark==4.2.0 | $(BIN)/uv pip compile - --no-deps --universal --python-version 3.11 --generate-hashes \
		--no-annotate --no-header --no-emit-index-url --quiet --output-file requirements-delta.lock

clean: ## Remove what was built
	rm -rf .venv build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
