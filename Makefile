# Every target that needs the environment makes it first; `make help` lists them.
PYTHON ?= python3
SCALE  ?= laptop
CLUSTER ?= local
RUNS   ?= runs/$(1)-$(SCALE)
BIN    := .venv/bin
ENV    := .venv/.installed

.DEFAULT_GOAL := help
.PHONY: help install test lint format bench reproduce-q1 figures clean

help:  ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16
