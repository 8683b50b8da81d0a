import json

import pytest

from experiments.config import compose
from experiments.models import build_stages
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


@pytest.mark.parametrize(
    "change", ["stages=2", "batch=16", "method.slack=2", "model.layers=3", "model.width=64"]
)
def test_what_changes_the_cut_has_a_cut_of_its_own(measured, change, tmp_path):
    for overrides in ([], [change]):
        cut_for(measured(*overrides), VOCABULARY)
    assert len(json.loads((tmp_path / "cut.json").read_text())) == 2
