import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from experiments.config import compose
from experiments.config.derived import layers_of
from experiments.models import build_stages
from experiments.run import cut as of_run
from experiments.run.cut import cut_for

VOCABULARY = 257


@pytest.fixture
def measured(tmp_path):
    def measured(*overrides):
        return compose(["scale=smoke", "model.partition=measured", f"runs={tmp_path}", *overrides])

    return measured


def test_counted_flops_need_no_measurement(tmp_path):
    cut = cut_for(compose(["scale=smoke", f"runs={tmp_path}"]), VOCABULARY)
    assert cut == [range(0, 3), range(3, 5), range(5, 8), range(8, 10)]
    assert not list(tmp_path.iterdir())


def test_the_measured_cut_covers_the_model(measured):
    config = measured()
    cut = cut_for(config, VOCABULARY)
    assert [unit for run in cut for unit in run] == list(range(10))
    build_stages(config.model, VOCABULARY, config.stages, config.seed, cut)


def test_it_is_measured_once_for_a_folder_of_runs(measured, tmp_path):
    cut_for(measured(), VOCABULARY)
    (key,) = kept = json.loads((tmp_path / "cut.json").read_text())
    kept[key] = [[0, 1], [1, 2], [2, 3], [3, 10]]  # one that no measurement would give
    (tmp_path / "cut.json").write_text(json.dumps(kept))
    for seed in (0, 1):
        cut = cut_for(measured(f"seed={seed}", "method=1f1b-flush"), VOCABULARY)
        assert cut == [range(0, 1), range(1, 2), range(2, 3), range(3, 10)]


def test_on_a_gpu_another_process_measures(measured, monkeypatch):
    """It takes its context and its cached blocks with it when it ends."""
    on_cpu = measured()
    started = []

    class Child(ThreadPoolExecutor):
        def __init__(self, workers, mp_context):
            started.append(mp_context.get_start_method())
            super().__init__(workers)

        def submit(self, function, config, vocabulary):
            return super().submit(function, on_cpu, vocabulary)

    monkeypatch.setattr(of_run, "ProcessPoolExecutor", Child)
    monkeypatch.setattr(of_run, "_device_name", lambda config: "a GPU")
    monkeypatch.setattr(of_run, "_device_bytes", lambda config: 10**12)
    cut = cut_for(measured("executor.device=cuda"), VOCABULARY)
    assert [unit for run in cut for unit in run] == list(range(10))
    assert started == ["spawn"]


@pytest.mark.parametrize(
    "change", ["stages=2", "batch=16", "method.slack=2", "model.layers=3", "model.width=64"]
)
def test_what_changes_the_cut_has_a_cut_of_its_own(measured, change, tmp_path):
    for overrides in ([], [change]):
        cut_for(measured(*overrides), VOCABULARY)
    assert len(json.loads((tmp_path / "cut.json").read_text())) == 2


@pytest.mark.parametrize(
    ("partition", "stages", "layers", "expected"),
    [
        ("even-less-ends", 4, 6, [1, 2, 2, 1]),
        ("even-less-ends", 4, 8, [1, 3, 3, 1]),
        ("even-less-ends", 3, 6, [2, 3, 1]),
        ("even-less-ends", 2, 6, [3, 3]),
        ("even-less-ends", 1, 6, [6]),
        ("[0,3,3,0]", 4, 6, [0, 3, 3, 0]),
    ],
)
def test_layers_by_hand(partition, stages, layers, expected):
    config = compose(
        ["scale=smoke", f"model.partition={partition}", f"stages={stages}",
         f"model.layers={layers}"]
    )  # fmt: skip
    cut = cut_for(config, 257)
    assert layers_of(config) == expected
    assert [
        len(units) - (2 if stages == 1 else i in (0, stages - 1)) for i, units in enumerate(cut)
    ] == [2 * count for count in expected]
    assert (cut[0].start, cut[-1].stop) == (0, 2 * layers + 2)


@pytest.mark.parametrize(
    ("partition", "sentence"),
    [
        ("[2,2]", r"must give 4 stages 6 layers together, .*, not \[2, 2\]"),
        ("[3,0,0,3]", r"at least one each between the first and the last, not \[3, 0, 0, 3\]"),
        ("thirds", "model.partition must be flops, measured, even-less-ends or a list"),
    ],
)
def test_layers_that_do_not_fit_are_refused(partition, sentence):
    with pytest.raises(ValueError, match=sentence):
        cut_for(
            compose(["scale=smoke", f"model.partition={partition}", "stages=4", "model.layers=6"]),
            257,
        )
