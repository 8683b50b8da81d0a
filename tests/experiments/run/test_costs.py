import json

import pytest
import torch
from torch import nn

from experiments.config import compose
from experiments.config.derived import microbatch_size
from experiments.run import costs
from experiments.run.cache import check_cached
from experiments.run.cut import cut_for
from experiments.run.pipelines import clock_of
from experiments.run.run import Run
from paci import Cost, simulate
from paci.stage.stage import Stage
from tests.experiments.smoke import lines, train

VOCABULARY = 257


@pytest.fixture
def settings(settings, monkeypatch):
    """A measurement takes no longer than it must."""
    monkeypatch.setattr(costs, "ENOUGH", 0.0)
    return [*settings, "executor=measured"]


TABLE = {
    "microbatch": 2,
    "forward": [1.0, 2.0, 3.0, 1.0],
    "backward": [2.0, 3.0, 4.0, 3.0],
    "input": [0.5, 2.0, 2.0, 2.0],
    "weight": [2.0, 2.0, 3.0, 2.0],
    "update": [0.5, 0.5, 0.5, 0.25],
}


def table_for(config):
    return costs.table_for(config, VOCABULARY, cut_for(config, VOCABULARY), microbatch_size(config))


def cost_of(run):
    return costs.cost_for(run.folder, VOCABULARY, run.cut)


def test_every_stage_has_its_times(settings):
    table = table_for(compose(settings))
    assert table.keys() == TABLE.keys()
    assert table.pop("microbatch") == 2
    assert all(len(times) == 4 and min(times) > 0 for times in table.values())


def test_all_methods_share_one_table_which_is_measured_once(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(costs, "measure", lambda config, *_: TABLE)
    table_for(compose(settings))
    monkeypatch.undo()
    for method in ("1f1b-flush", "paci", "pipedream-2bw"):
        config = compose([*settings, f"method={method}", "batch=16", "method.accumulation=8"])
        assert table_for(config) == TABLE


@pytest.mark.parametrize(
    "change",
    ["batch=16", "stages=2", "model.width=64", "optimizer=nadamw", "executor.threads=2"],
)
def test_what_changes_the_times_has_a_table_of_its_own(settings, change, tmp_path, monkeypatch):
    monkeypatch.setattr(costs, "measure", lambda config, *_: TABLE)
    for overrides in ([], [change]):
        table_for(compose([*settings, *overrides]))
    assert len(json.loads((tmp_path / "runs" / "costs.json").read_text())) == 2


def test_a_run_keeps_the_costs_that_it_began_with(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(costs, "measure", lambda config, *_: TABLE)
    run = Run(compose([*settings, "executor.transfer=0.1"]))
    run.folder.path.mkdir(parents=True)
    times = {name: times for name, times in TABLE.items() if name != "microbatch"}
    expected = Cost(**times, transfer=0.2)
    assert cost_of(run) == expected
    assert json.loads((run.folder.path / "cost.json").read_text()) == TABLE | {"transfer": 0.2}
    (tmp_path / "runs" / "costs.json").unlink()
    assert cost_of(run) == expected


def test_micro_batches_of_two_sizes_take_what_each_was_measured_to_take(settings, monkeypatch):
    smaller = {name: [time / 4 for time in TABLE[name]] for name in ("forward", "backward")}
    tables = {2: TABLE, 1: TABLE | {"microbatch": 1} | smaller}
    monkeypatch.setattr(costs, "measure", lambda config, vocabulary, cut, size: tables[size])
    folder = train([*settings, "batch=6", "task=throughput"])
    cost = json.loads((folder.path / "cost.json").read_text())
    assert cost == TABLE | {"transfer": 0.0, "sizes": [1.0, 1.0, 0.25, 0.25]}
    assert lines(folder.path / "throughput.jsonl")[0]["tokens"] % (6 * 32) == 0


def test_the_clock_of_a_run_runs_at_measured_costs(settings, monkeypatch):
    monkeypatch.setattr(costs, "measure", lambda config, *_: TABLE)
    folder = train(settings)
    log = lines(folder.path / "metrics.jsonl")
    assert {line["clock"] for line in log} == {"simulated, measured costs"}
    times = {name: times for name, times in TABLE.items() if name != "microbatch"}
    half = simulate("paci", 4, 20, 4, cost=Cost(**times))  # the pipeline drains to evaluate
    assert log[-1]["seconds"] == pytest.approx(2 * half.makespan)


@pytest.mark.parametrize(
    ("executor", "clock"),
    [
        ("local", "simulated"),
        ("measured", "simulated, measured costs"),
        ("distributed", "wall"),
        ("emulated", "emulated"),
    ],
)
def test_every_clock_has_its_name(executor, clock):
    assert clock_of(compose(["scale=smoke", f"executor={executor}"])) == clock


class Busy(torch.autograd.Function):
    """By the clock, a forward takes 5 and a backward 3."""

    @staticmethod
    def forward(ctx, input, clock):
        ctx.clock = clock
        clock[0] += 5
        return input.clone()

    @staticmethod
    def backward(ctx, gradient):
        ctx.clock[0] += 3
        return gradient, None


class BusyStage(nn.Module):
    def __init__(self, clock):
        super().__init__()
        self.linear, self.clock = nn.Linear(4, 4), clock

    def forward(self, input):
        return self.linear(Busy.apply(input, self.clock))


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("index", [0, 1])
def test_each_action_has_its_own_time(index, split, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(costs, "now", lambda device: clock[0])
    stage = Stage(index, 3, BusyStage(clock), 10**6, torch.optim.SGD)
    stage.optimizer.register_step_pre_hook(lambda *_: clock.__setitem__(0, clock[0] + 2))
    input = torch.randn(2, 4)
    times = costs._time(stage, input, None, torch.randn(2, 4), split)
    # The first stage's input needs no gradient: autograd does not come to `Busy`.
    whole = {"backward": 3.0} if index else {"backward": 0.0}
    halves = {"input": 3.0, "weight": 0.0} if index else {"input": 0.0, "weight": 0.0}
    assert times == {"forward": 5.0, "update": 2.0} | (halves if split else whole)
    assert stage.versions.peak_in_flight == 3 - index  # as in 1F1B


DAMAGED = {
    "costs.json": ["", "{", "[]"],
    "paci-a4-b8-s0/cost.json": [
        "{",
        "[]",
        '{"microbatch": 2}',
        json.dumps(TABLE | {"transfer": -1.0}),
        json.dumps(TABLE | {"transfer": 0.0, "forward": [1.0]}),
        json.dumps(TABLE | {"transfer": 0.0, "tea": 1.0}),
    ],
}


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name in DAMAGED for text in DAMAGED[name]]
)
def test_damaged_costs_are_refused_before_any_work(settings, tmp_path, name, text):
    run = Run(compose(settings))
    run.folder.path.mkdir(parents=True)
    file = tmp_path / "runs" / name
    file.write_text(text)
    with pytest.raises(ValueError, match=rf"{file}.*remove it"):
        check_cached(run.folder)
    with pytest.raises(ValueError, match=rf"{file}.*remove it"):
        cost_of(run)
