import doctest
import importlib
import pkgutil

import pytest

import paci

MODULES = [module.name for module in pkgutil.walk_packages(paci.__path__, "paci.")]


@pytest.mark.parametrize("name", ["paci", *MODULES])
def test_examples_in_docstrings(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
