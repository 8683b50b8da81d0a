"""Configurations: composed by Hydra from conf/ and the command line, checked before any work.

conf/ + KEY=VALUE ──▶ compose ──▶ accepted ──▶ consistent ──▶ a run may start
                                    each        together

accepted     the values that each setting accepts
consistent   settings checked against each other
derived      sizes and times that follow from a configuration
naming       the name of a run, from its configuration
own          the settings that a run's numbers depend on, and their command line
"""

from experiments.config.compose import compose, flat, no_setting, parse, resolve, select

__all__ = ["compose", "flat", "no_setting", "parse", "resolve", "select"]
