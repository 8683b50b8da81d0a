import doctest
import importlib
import pkgutil

import paci

MODULES = [module.name for module in pkgutil.walk_packages(paci.__path__, "paci.")]


def test_examples_in_docstrings():
    results = [doctest.testmod(importlib.import_module(name)) for name in MODULES]
    assert sum(result.attempted for result in results) >= 4
    assert sum(result.failed for result in results) == 0
