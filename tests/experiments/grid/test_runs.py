from functools import cache

import pytest

from experiments import CONF
from experiments.config import compose
from experiments.config.derived import is_measured
from experiments.config.naming import run_name
from experiments.grid.runs import grid

SCALES = sorted(path.stem for path in (CONF / "scale").glob("*.yaml"))
EXPERIMENTS = sorted({path.stem for path in (CONF / "experiment").glob("*.yaml")} - {"none"})
SIZES = {  # entries × batches × seeds
    ("trainings", "smoke"): 3 * 2 * 2,
    ("trainings", "laptop"): 3 * 2 * 3,
    ("trainings", "paper"): 3 * 2 * 3,
    ("extras", "smoke"): 2 * 2,
    ("extras", "laptop"): 2 * 3,
    ("extras", "paper"): 2 * 3,
    ("q2", "smoke"): 9,
    ("q2", "laptop"): 9,
    ("q2", "paper"): 9,
    # methods × (counts × sizes + splits × batches - what is in both), and the others once
    ("q3", "smoke"): 2 * (2 * 1 + 3 * 2) + 13,
    ("q3", "laptop"): 2 * (4 * 2 + 5 * 2 - 2) + 13,
    ("q3", "paper"): 2 * (6 * 4 + 6 * 2 - 7) + 13,
    ("q3-emulated", "smoke"): 2 * 2 + 4,
    ("q3-emulated", "laptop"): 2 * 4 + 4,
    ("q3-emulated", "paper"): 2 * 6 + 4,
    ("q3-real", "smoke"): 2 * 2 * 1 + 5,
    ("q3-real", "laptop"): 2 * 4 * 2 + 5,
    ("q3-real", "paper"): 2 * 6 * 4 + 5,
} | {
    (study, scale): settings * 2
    for study, settings in (("precision", 3 * 3), ("recompute", 2 * 2), ("clipping", 2 + 3))
    for scale in SCALES
}
SIZES |= {
    ("rates", scale): 8 * rates for scale, rates in (("smoke", 2), ("laptop", 6), ("paper", 5))
}
SIZES |= {  # methods × lengths or optimizers × rates × seeds
    ("horizon", "smoke"): 5 * 2 * 1 * 2,
    ("horizon", "laptop"): 5 * 3 * 4 * 3,
    ("horizon", "paper"): 5 * 4 * 3 * 3,
    ("optimizers", "smoke"): 4 * 3 * 1 * 2,
    ("optimizers", "laptop"): 4 * 3 * 4 * 3,
    ("optimizers", "paper"): 4 * 3 * 3 * 3,
}
SIZES |= {(name, "night"): size for (name, scale), size in SIZES.items() if scale == "laptop"}
SIZES["horizon", "night"] = 5 * 4 * 4 * 3


@cache
def grid_of(scale, *overrides):
    """The runs of a grid, composed once."""
    return grid([f"scale={scale}", *overrides])


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_grid_has_a_folder_for_each_run(scale, experiment):
    configs = grid_of(scale, f"experiment={experiment}")
    folders = {(c.runs, run_name(c)) for c in configs}
    assert len(folders) == len(configs)


@pytest.mark.parametrize(("experiment", "scale"), SIZES)
def test_the_sizes_of_the_papers_grids_and_of_the_studies(experiment, scale):
    configs = grid_of(scale, f"experiment={experiment}")
    assert len(configs) == SIZES[experiment, scale]
    assert {c.seed for c in configs} == set(configs[0].seeds)


def names_of(*overrides):
    return {run_name(config) for config in grid_of("paper", *overrides)}


def test_the_papers_trainings():
    assert names_of("experiment=trainings") == {
        f"{method}-s{seed}"
        for method in (
            *("1f1b-flush-a16-b128", "paci-a4-b128", "paci-a8-b128"),
            *("1f1b-flush-a16-b256", "paci-a8-b256", "paci-a16-b256"),
        )
        for seed in (0, 1, 2)
    }


def test_trainings_that_the_paper_does_not_have():
    assert names_of("experiment=extras", "seeds=[0]") == {
        "async-1f1b-a1-b16-s0",
        "paci-a4-stashed-b128-s0",
    }


def test_q2_times_the_methods_of_the_papers_tables():
    assert names_of("experiment=q2") == {
        f"{method}-s0"
        for method in (
            *("1f1b-flush-a4-b128", "1f1b-flush-a8-b128", "1f1b-flush-a16-b128"),
            *("1f1b-flush-a8-b256", "1f1b-flush-a16-b256"),
            *("paci-a4-b128", "paci-a8-b128", "paci-a8-b256", "paci-a16-b256"),
        )
    }


def test_q3_splits_a_batch_into_as_many_micro_batches_as_the_paper():
    names = names_of("experiment=q3")
    for batch in (128, 256):
        assert {f"paci-a{m}-b{batch}-s0" for m in (4, 8, 16, 24, 32, 40)} <= names


@pytest.mark.parametrize("executor", ["measured", "distributed", "emulated"])
def test_q2_is_timed_on_any_executor(executor):
    given = [] if executor == "measured" else [f"executor={executor}"]  # the default of Q2
    (*_, config) = grid_of("paper", "experiment=q2", *given)
    assert (config.executor.name, config.executor.device) == (
        "local" if executor == "measured" else executor,
        "cuda",
    )
    assert ("cost" in config.executor) == (executor != "distributed")
    assert is_measured(config) == (executor == "measured")


@pytest.fixture
def names():
    """names(entries, *overrides): of the runs of a grid at laptop scale, with one seed."""

    def names(entries, *overrides):
        settings = ["experiment=trainings", "scale=laptop", "seeds=[0]", f"grid=[{entries}]"]
        return [run_name(config) for config in grid([*settings, *overrides])]

    return names


def test_a_list_is_an_axis_and_batches_and_seeds_are_axes_of_all(names):
    assert names("{method:[paci,gpipe],method.accumulation:[4,8]}", "seeds=[0,1]") == [
        f"{method}-a{a}-b{batch}-s{seed}"
        for method in ("paci", "gpipe")
        for a in (4, 8)
        for batch in (16, 32)
        for seed in (0, 1)
    ]


def test_an_entry_that_names_batches_runs_there_only(names):
    assert names("{method:gpipe},{method:paci,batch:32},{method:zbv,batch:[8,16]}") == [
        "gpipe-a4-b16-s0",
        "gpipe-a4-b32-s0",
        "paci-a4-b32-s0",
        "zbv-a8-b16-s0",
    ]


def test_a_run_of_several_entries_is_one(names):
    assert names("{method:paci,method.accumulation:[2,4],batch:16},{method:paci,microbatch:4}") == [
        "paci-a2-b16-s0",
        "paci-a4-b16-s0",
    ]


def test_a_size_of_micro_batches_makes_the_batch(names):
    entry = '{method:paci,method.accumulation:"${counts}",microbatch:"${sizes}"}'
    lists = ["counts=[2,4]", "sizes=[1,3]"]
    assert names(entry, *lists) == [
        "paci-a2-b2-s0",
        "paci-a2-b6-s0",
        "paci-a4-b4-s0",
        "paci-a4-b12-s0",
    ]
    assert names("{method:async-1f1b,microbatch:2}") == ["async-1f1b-a1-b2-s0"]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("{optimizer.lr:[1e-3,3e-3]}", ["lr0.001", "lr0.003"]),
        ("{tokens:[60000,120000],stages:[4,8]}", [
            *("tokens60000-stages4", "tokens60000-stages8"),
            *("tokens120000-stages4", "tokens120000-stages8"),
        ]),
        ("{model:[smoke,laptop]}", ["model-smoke", "model-laptop"]),
        ("{executor:[local,emulated]}", ["executor-local", "executor-emulated"]),
        ("{executor:[local,measured]}", ["cost-given", "cost-measured"]),
        ("{optimizer:[adamw,adamw-t1]}", ["anneal0.0", "anneal0.25"]),
        ("{optimizer.betas:[[0.8,0.9],[0.9,0.95]]}", ["betas0.8-0.9", "betas0.9-0.95"]),
        ("{optimizer.decay:[matrices,matrices-but-embeddings]}", [
            "decay-matrices", "decay-matrices-but-embeddings"
        ]),
        ("{task:[training,throughput],executor:measured}", ["task-training", "task-throughput"]),
        ("{runs:[one,other]}", [None, None]),  # two folders
    ],
)  # fmt: skip
def test_any_key_can_be_an_axis_and_the_name_tells_it(names, entry, expected):
    parts = [f"{part}-" if part else "" for part in expected]
    assert names(entry, "batches=[16]") == [f"paci-a4-b16-{part}s0" for part in parts]


def test_all_names_of_a_grid_tell_what_only_some_of_its_runs_need(names):
    entries = "{method:paci,optimizer.lr:[1e-3,3e-3],seed:[0,1]},{method:gpipe}"
    assert names(entries, "batches=[16]") == [
        *("paci-a4-b16-lr0.001-s0", "paci-a4-b16-lr0.001-s1"),
        *("paci-a4-b16-lr0.003-s0", "paci-a4-b16-lr0.003-s1"),
        "gpipe-a4-b16-lr0.001-s0",
    ]


def test_data_can_be_an_axis_of_two_entries(names):
    entries = "{data:kjv},{data:files,data.files:[[a.txt],[b.txt]]}"
    assert names(entries, "batches=[16]") == [
        "paci-a4-b16-data-kjv-s0",
        "paci-a4-b16-data-files-files-a.txt-s0",
        "paci-a4-b16-data-files-files-b.txt-s0",
    ]


def test_an_entry_has_seeds_and_batches_of_its_own(names):
    entries = "{method:paci,seeds:[3,4],batches:[8]},{method:gpipe}"
    assert names(entries, "batches=[16]") == [
        *("paci-a4-b8-s3", "paci-a4-b8-s4", "gpipe-a4-b16-s0"),
    ]


def test_an_entry_at_several_scales_has_the_values_of_each():
    entry = 'grid=[{scale:[smoke,laptop],method.accumulation:"${counts}",microbatch:"${sizes}"}]'
    configs = grid(["experiment=trainings", entry])
    assert [(c.scale, c.runs, run_name(c)) for c in configs] == [
        (scale, f"runs/{scale}/trainings", f"paci-a{a}-b{a * size}-s{seed}")
        for scale, counts, sizes, seeds in (
            ("smoke", (4, 8), (1,), (0, 1)),
            ("laptop", (4, 8, 16, 32), (4, 16), (0, 1, 2)),
        )
        for a in counts
        for size in sizes
        for seed in seeds
    ]
    together = grid(["experiment=trainings", entry, "runs=mine", "counts=[4]", "sizes=[1]"])
    assert {run_name(c) for c in together} == {
        *(f"paci-a4-b4-scale-smoke-s{seed}" for seed in (0, 1)),
        *(f"paci-a4-b4-scale-laptop-s{seed}" for seed in (0, 1, 2)),
    }


def test_what_a_user_names_is_kept(names):
    entry = "{method:paci,optimizer.lr:[1e-3,3e-3]}"
    assert names(entry, "batches=[16]", "named=[stages]") == [
        *("paci-a4-b16-stages8-lr0.001-s0", "paci-a4-b16-stages8-lr0.003-s0"),
    ]


def test_a_run_of_a_grid_is_what_its_own_overrides_compose():
    shared = ["experiment=trainings", "scale=smoke", "method.slack=1", "seeds=[3]"]
    entry = "grid=[{method:nesterov-async,optimizer.betas:[[0.8,0.9]],batch:16}]"
    (config,) = grid([*shared, entry])
    own = ["method=nesterov-async", "optimizer.betas=[0.8,0.9]", "batch=16", "seed=3"]
    assert config == compose([*shared, entry, *own])
    assert (config.optimizer.name, config.method.slack) == ("nadamw", 1)


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ([], "a sweep needs an experiment: choose from .*trainings"),
        (
            ["experiment=trainings", "seed=3"],
            r"a sweep has a list of them: seeds=\[3\], not seed=3",
        ),
        (["experiment=trainings", "batch=8"], r"a list of them: batches=\[8\], not batch=8"),
        (["experiment=trainings", "small_batch=3"], "batch must be at least method.accumulation"),
        (
            ["experiment=trainings", "method=paci"],
            "the experiment's grid sets method itself: leave out",
        ),
        (["experiment=trainings", "method.accumulation=2"], "grid sets method.accumulation itself"),
    ],
)
def test_a_grid_that_cannot_be_is_refused(overrides, sentence):
    with pytest.raises(ValueError, match=sentence):
        grid(["scale=smoke", *overrides])


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        ("'method=paci'", "an entry of the grid must be a mapping like .*, not 'method=paci'"),
        ("{method:nope}", "there is no method 'nope': choose from"),
        ("{method:paci,mehtod.slack:1}", "no setting 'mehtod.slack' .*: did you mean method.slack"),
        ("{method:paci,method.slack:[]}", "method.slack has no value in an entry of the grid"),
        ("{method:paci,microbatch:two}", "microbatch must be a whole number .*, not 'two'"),
        ("{method:paci,microbatch:true}", "microbatch must be a whole number .*, not True"),
        (
            "{method:paci,microbatch:2,method.accumulation:null}",
            "method.accumulation must be a whole number of at least 1, not None",
        ),
        ("{3:4}", "an entry of the grid sets keys of the configuration, not 3"),
        ("", "grid must have an entry"),
        ("{method:paci,microbatch:2,batch:16}", "names batch or microbatch, not both"),
        ("{method:paci,batch:8}", "the grid has no run"),
        ("{method:paci,microbatch:2,batches:[16]}", "names batches or microbatch, not both"),
        ("{method:paci,seed:1,seeds:[0]},{method:zbv}", "names seed or seeds, not both"),
        ("{method:paci,cluster:[local,slurm]}", "cluster holds for all runs of a grid: give it"),
        ("{method:paci,named:[[seed]]}", "named holds for all runs of a grid"),
        (
            "{method:paci,optimizer.betas:[0.8,0.9]}",
            r"optimizer.betas is a list, so its values in a grid are lists, too, .* not 0.8",
        ),
        (
            "{data:files,data.files:[[a/b],['a:b']]}",
            "runs of the grid are called paci-a4-b16-s0, but differ in data.files, whose values "
            "look alike in the name of a file: give each value a sweep and a folder of its own",
        ),
    ],
)
def test_an_entry_that_cannot_be_is_refused(names, entries, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        names(entries)
    assert "\n" not in str(error.value)
