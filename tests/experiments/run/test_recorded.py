from pathlib import Path

from omegaconf import OmegaConf

import runlog
from experiments.config import compose
from experiments.run.recorded import differing, shorter_of

FIRST_VERSION = Path(__file__).with_name("first_version.yaml")


def test_a_folder_of_an_older_version_holds_the_same_run():
    """It lacks the settings that came later, which `runlog.LATER` must list."""
    assert differing(FIRST_VERSION, compose(["scale=smoke"])) == {}


def test_a_setting_that_came_later_may_differ_from_what_it_was():
    assert differing(FIRST_VERSION, compose(["scale=smoke", "optimizer.schedule=wsd",
                                             "optimizer.warmup=9"])) == {
        "optimizer.schedule": ("cosine", "wsd"),
        "optimizer.warmup": (0.01, 9),
    }  # fmt: skip


def test_later_settings_are_those_that_the_first_version_lacks():
    first = OmegaConf.load(FIRST_VERSION)
    assert all(OmegaConf.select(first, key, default=...) is ... for key in runlog.LATER)


def test_names_and_places_are_no_part_of_a_run():
    here = compose(["scale=smoke", "named=[seed]", "data.folder=elsewhere", "runs=elsewhere"])
    assert differing(FIRST_VERSION, here) == {}


def test_only_more_tokens_make_a_run_longer():
    def shorter(*overrides):
        config = compose(["scale=smoke", *overrides])
        return shorter_of(differing(FIRST_VERSION, config), config)

    assert shorter("tokens=10240", "evaluations=4") == compose(["scale=smoke"])
    assert shorter() is shorter("tokens=2560") is shorter("tokens=10240", "seed=1") is None
    assert shorter("evaluations=4") is None
    assert shorter("tokens=10240", "task=throughput", "executor=measured") is None
