"""Imports point one way, at the top of a file or inside a function; what reads logs or simulates
loads no torch."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAY_IMPORT = {
    "paci": {"paci"},
    "runlog": {"runlog"},
    "experiments": {"experiments", "paci", "runlog"},
    "analysis": {"analysis", "paci", "runlog"},
    "verification": {"verification", "paci"},
    "benchmarks": {"benchmarks", "experiments", "paci"},
    "paper_figures": {"paper_figures", "analysis", "paci", "runlog"},
}

LAYERS_OF_PACI = (
    ("actions", "checks", "cost", "draws", "microbatches"),
    ("schedules",),
    ("simulation",),
    ("explore",),
    ("method", "partition", "traits"),
    ("stage",),
    ("segment", "pipeline"),
    ("checkpoint", "tensor_file", "local"),
    ("distributed",),
)
"""Each imports only from itself and from those above it; those above `stage` load no torch."""


def modules(package: str) -> list[str]:
    files = sorted((ROOT / package).rglob("*.py"))
    names = (".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files)
    return [name.removesuffix(".__init__") for name in names]


def imported(module: str) -> set[str]:
    """Return the names of the modules that a module imports, and of what it imports from them."""
    path = ROOT.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def packages(names: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def parts_of_paci(names: set[str]) -> set[str]:
    """Return the modules and packages directly in `paci` that `names` lie in."""
    parts = {name.split(".")[1] for name in names if name.startswith("paci.")}
    return parts & {part for layer in LAYERS_OF_PACI for part in layer}


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_point_one_way(package):
    for module in modules(package):
        assert packages(imported(module)) & {*MAY_IMPORT} <= MAY_IMPORT[package], module


def test_every_module_of_paci_is_in_a_layer():
    parts = {name.split(".")[1] for name in modules("paci") if "." in name}
    assert parts == {part for layer in LAYERS_OF_PACI for part in layer}


@pytest.mark.parametrize("number", range(len(LAYERS_OF_PACI)), ids=lambda n: LAYERS_OF_PACI[n][0])
def test_layers_of_paci_import_from_above(number):
    above = {part for layer in LAYERS_OF_PACI[: number + 1] for part in layer}
    for module in modules("paci"):
        if parts_of_paci({module}) & {*LAYERS_OF_PACI[number]}:
            assert parts_of_paci(imported(module)) <= above, module


def test_nothing_above_stages_loads_torch():
    above = LAYERS_OF_PACI[: LAYERS_OF_PACI.index(("stage",))]
    parts = {part for layer in above for part in layer}
    check_no_torch([name for name in modules("paci") if parts_of_paci({name}) & parts])


@pytest.mark.parametrize("package", ["analysis", "paper_figures"])
def test_what_reads_logs_loads_no_torch(package):
    check_no_torch([name for name in modules(package) if not name.endswith("__main__")])


def check_no_torch(names: list[str]) -> None:
    """Check in a process of its own that importing the modules `names` does not load torch."""
    program = f"import sys, {', '.join(names)}; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
