"""The Python in the README and in docs/ is run, and the values that it shows are compared."""

import ast
import re
import subprocess
import sys

import pytest
import torch
from torch import nn

import paci
from paci.distributed.launch import spawn
from tests.docs.pages import ROOT, blocks

README, SIMULATE, TRAIN, DISTRIBUTED, API = (
    ROOT / page
    for page in (
        "README.md",
        "docs/simulate.md",
        "docs/train.md",
        "docs/distributed.md",
        "docs/api.md",
    )
)


def test_simulation_shows_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # it writes a trace
    (block,) = blocks(SIMULATE, "python")
    names = {}
    exec(block, names)
    shown = re.findall(r"^(run\.\w+) +# (.+)$", block, re.MULTILINE)
    assert len(shown) == 3
    for expression, value in shown:
        assert eval(expression, names) == pytest.approx(ast.literal_eval(value), abs=5e-4)
    picture = re.findall(r"^# (rank .*)$", block, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == picture
    assert (tmp_path / "trace.json").exists()


def _rank(block: str) -> list[float] | None:
    names = {"torch": torch, "stages": [nn.Linear(4, 4), nn.Linear(4, 4)]}
    names["batches"] = [(torch.ones(2, 4), torch.tensor([0, 1]))] * 8
    initialised = 'torch.distributed.init_process_group("gloo")\n'
    assert initialised in block
    exec("import paci\n" + block.replace(initialised, ""), names)  # spawn has done that
    return names["segment"] and names["segment"].losses


def test_training_runs_on_processes():
    (block,) = blocks(DISTRIBUTED, "python")
    first, last = spawn(_rank, 2, block)
    assert first is None
    assert len(last) == 8


@pytest.mark.parametrize("page", [README, TRAIN], ids=lambda page: page.name)
def test_training_runs_on_any_modules(page):
    stages = {f"stage_{i}": nn.Linear(4, 4) for i in range(3)}
    batches = [(torch.randn(2, 4), torch.tensor([0, 1])) for _ in range(8)]
    names = {"torch": torch, "batches": batches, **stages}
    exec("import paci\n" + blocks(page, "python")[0], names)
    assert len(names["segment"].losses) == 8


def test_the_page_on_the_interface(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    *inside, processes, simulation = blocks(API, "python")
    names = {}
    for block in (*inside, simulation):
        exec(block, names)
    assert len(capsys.readouterr().out.splitlines()) == 4  # updates
    assert names["pipeline"].microbatch == 16
    assert names["run"].max_drift[0] == 2
    program = tmp_path / "ranks.py"
    program.write_text(f"{inside[0]}{processes}    print(len(losses))\n")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert done.stdout == "16\n"


def test_the_page_on_the_interface_names_all_of_it():
    listed = API.read_text().partition("\n\n")[2].partition(". ")[0]
    assert {*re.findall(r"`(\w+)`", listed)} == {*paci.__all__, "__version__"}


def test_the_readme_is_short():
    assert len(README.read_text().splitlines()) <= 180
