"""Configurations: composed by Hydra from `conf/`, checked before any work starts.

conf/ + KEY=VALUE ─ compose ─▶ configuration ─ accepted ─▶ a run may start
                                    └───────── derived ──▶ what follows from it: updates, ...
"""

from experiments.config.compose import compose, flat, no_setting, parse, resolve, select

__all__ = ["compose", "flat", "no_setting", "parse", "resolve", "select"]
