# Every target that needs the environment makes it first; `make help` lists the targets.
#   SCALE    smoke (seconds), laptop (minutes, the default) or paper (GPUs)
#   CLUSTER  local (the default), inline (the default at SCALE=smoke), or slurm, which only submits
#   SET      further settings of the sweeps: SET="cluster.partition=gpu cluster.time=600"
#   AUTHORS  a checkout of the authors' repository, for verify-authors
#   RUNS     the folder of the runs, with a folder for each question (default: runs/SCALE)
PYTHON  ?= python3
SCALE   ?= laptop
CLUSTER ?= $(if $(filter smoke,$(SCALE)),inline,local)
RUNS    ?= runs/$(SCALE)

BIN := .venv/bin
ENV := .venv/.installed
PY  := $(BIN)/python -m
SWEEP = $(PY) experiments.sweep scale=$(SCALE) cluster=$(CLUSTER) $(SET)
# Throughput runs are short, or need all processors: their experiments run them one at a time in
# this process (cluster=inline). Only a cluster other than local replaces that.
ELSEWHERE = $(addprefix cluster=,$(filter-out local,$(CLUSTER)))
TIME = $(PY) experiments.sweep scale=$(SCALE) $(ELSEWHERE) $(SET)
EXTRAPOLATE = $(PY) experiments.extrapolate scale=$(SCALE) runs=$(RUNS)/extrapolation
# $(call of-runs,COMMAND,OPTIONS): run COMMAND on the finished runs; on SLURM they have only begun.
of-runs = $(if $(filter slurm,$(CLUSTER)),,$(PY) $(1) $(RUNS) $(2) $(GO_ON))
# Exit status 1 (a run failed, or a figure could not be made) does not stop the rest of a target,
# but the target fails at its end. Any other status stops it at once.
FAILED := $(shell mktemp -u)
GO_ON = || { [ $$? = 1 ] && touch $(FAILED); }
END = if rm $(FAILED) 2>/dev/null; then echo "not all of it worked: see above" >&2; exit 1; fi

.DEFAULT_GOAL := help
.SILENT:  # commands say themselves what they do
.PHONY: help install reproduce reproduce-q1 reproduce-q2 reproduce-q3
.PHONY: trainings runs-q1 runs-q2 runs-q3
.PHONY: reference extrapolate figures report bench bench-gpu test test-gpu docs-check test-stress slurm-up slurm-down
.PHONY: test-slurm lint format
.PHONY: clean verify-authors
.NOTPARALLEL:  # costs are measured while nothing else runs

help:  ## list the targets, and what can be set: make figures SCALE=smoke
	grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16
	echo; sed -nE 's/^#   ([A-Z]+) +/\1\t/p' $(MAKEFILE_LIST) | expand -t 16

$(ENV): pyproject.toml constraints.txt
	echo "making the environment, .venv: a minute or two"
	$(PYTHON) -m venv .venv
	$(PY) pip install --quiet --editable '.[dev]' --constraint constraints.txt
	touch $@

install: $(ENV)  ## make the environment, .venv

reproduce: runs-q1 runs-q2 runs-q3  ## Q1 to Q3, the claims, and all of it on one page
	$(call of-runs,paper_figures)
	$(call of-runs,paper_figures.report)
	$(END)

reproduce-q1: runs-q1  ## Q1, stability: train the paper's runs and the extras, then draw
	$(call of-runs,paper_figures,--question q1)
	$(END)

reproduce-q2: runs-q2  ## Q2, time to a perplexity: train what Q1 has not, measure throughput, draw
	$(call of-runs,paper_figures,--question q2)
	$(END)

reproduce-q3: runs-q3  ## Q3, throughput and memory: simulated, emulated, real, extrapolated; draw
	$(call of-runs,paper_figures,--question q3)
	$(END)

trainings: $(ENV)
	$(SWEEP) experiment=trainings runs=$(RUNS)/trainings $(GO_ON)

runs-q1: trainings
	$(SWEEP) experiment=extras runs=$(RUNS)/extras $(GO_ON)

runs-q2: trainings
	$(TIME) experiment=q2 runs=$(RUNS)/q2 $(GO_ON)

runs-q3: $(ENV)
	$(TIME) experiment=q3 runs=$(RUNS)/q3/simulated $(GO_ON)
	$(TIME) experiment=q3-emulated runs=$(RUNS)/q3/emulated $(GO_ON)
	$(TIME) experiment=q3-real runs=$(RUNS)/q3/real $(GO_ON)
	$(EXTRAPOLATE) $(GO_ON)

extrapolate: $(ENV)  ## simulate beyond the paper: up to 1,024 stages, jitter, late messages, slack
	$(EXTRAPOLATE)
	$(PY) paper_figures $(RUNS)

figures: $(ENV)  ## every table and figure that the logs in RUNS allow
	$(PY) paper_figures $(RUNS)

report: $(ENV)  ## the same, and all of them on one page, RUNS/figures/report.html
	$(PY) paper_figures $(RUNS) $(GO_ON)
	$(PY) paper_figures.report $(RUNS)
	$(END)

bench: $(ENV)  ## measure the runtime, side by side with its yardsticks, into runs/bench.json
	$(PY) benchmarks

bench-gpu: $(ENV)  ## measure what only GPUs can show, into runs/bench-gpu.json
	$(PY) benchmarks.gpu

reference: $(ENV)  ## write docs/reference.md from docstrings, docs/settings.md from conf/
	$(BIN)/python docs/reference.py
	$(BIN)/python docs/settings.py

test: $(ENV)  ## run the tests
	$(PY) pytest -n 2 --dist loadfile -q -m "not stress and not slurm and not docs"

test-gpu: $(ENV)  ## run the tests that need GPUs; they skip, saying so, where there is none
	$(PY) pytest -q -rs -m gpu tests/gpu

docs-check: $(ENV)  ## run every command of the README and of docs/, at the scale smoke
	$(PY) pytest -q -m docs tests/docs

test-stress: $(ENV)  ## run the long tests: many configurations, many crashes
	$(PY) pytest -n 2 --dist loadfile -q -m stress

slurm-up:  ## start a throwaway SLURM on this machine (root, Debian's packages)
	tests/slurm/up.sh

slurm-down:  ## stop that SLURM
	tests/slurm/down.sh

test-slurm: $(ENV) slurm-up  ## run the tests that need a SLURM on that one
	$(PY) pytest -q -m slurm tests/slurm

verify-authors: $(ENV)  ## compare paci with the authors' code: AUTHORS=<checkout of it>
	$(PY) verification.authors $(AUTHORS)

lint: $(ENV)  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(ENV)  ## apply the style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove the environment and caches; runs and data stay
	rm -rf .venv .pytest_cache .ruff_cache .mypy_cache .hypothesis *.egg-info
