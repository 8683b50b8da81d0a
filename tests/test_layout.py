"""Imports point one way, at the top of a file or inside a function; logs are read without torch."""

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
    "paper_figures": {"paper_figures", "analysis", "paci", "runlog"},
}


def modules(package: str) -> list[str]:
    files = sorted((ROOT / package).rglob("*.py"))
    names = (".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files)
    return [name.removesuffix(".__init__") for name in names]


def imported(module: str) -> set[str]:
    """The packages that a module imports from."""
    path = ROOT.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module)
    return {name.partition(".")[0] for name in found}


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_point_one_way(package):
    for module in modules(package):
        assert imported(module) & {*MAY_IMPORT} <= MAY_IMPORT[package], module


@pytest.mark.parametrize("package", ["analysis", "paper_figures"])
def test_what_reads_logs_loads_no_torch(package):
    names = [name for name in modules(package) if not name.endswith("__main__")]
    program = f"import sys, {', '.join(names)}; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
