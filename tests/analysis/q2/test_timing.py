"""Flush mapped to other micro-batch counts, with times worked out by hand."""

import pytest

from analysis import CannotAnswer, cells, read_runs
from analysis.q2.rates import on_clocks
from analysis.q2.timing import Timings, timed

MEASURED = "simulated, measured costs"
POINTS = [(0, 0.0, 300), (2, 50.0, 16), (4, 100.0, 10)]


def costs(size, seconds):
    """Stages that take `seconds` for a forward and twice that for a backward."""
    whole = {"forward": [seconds] * 8, "backward": [2 * seconds] * 8}
    parts = {"input": [seconds] * 8, "weight": [seconds] * 8}
    return {"microbatch": size} | whole | parts | {"update": [0.0] * 8, "transfer": 0.0}


def run(write_run, name, method, a, seconds, **options):
    options = {"clock": MEASURED, "costs": costs(16 // a, seconds), "evaluations": POINTS} | options
    write_run(name, method=method, accumulation=a, **options)


def mapped(write_run):
    frames = read_runs(write_run.root)
    made = cells(frames)
    return {it.m: it for it in Timings(made, frames).flushes(made)}


def test_flush_is_mapped_by_the_simulated_time_of_an_update(write_run):
    """An update of m micro-batches takes m + N - 1 times a forward and a backward of a stage."""
    run(write_run, "flush", "1f1b-flush", 16, 1.0)
    run(write_run, "paci-4", "paci", 4, 3.0)
    run(write_run, "paci-8", "paci", 8, 1.5)
    made = mapped(write_run)
    assert [(m, it.mapped, it.basis) for m, it in made.items()] == [
        (4, True, "mapped from m=16"),
        (8, True, "mapped from m=16"),
        (16, False, "measured"),
    ]
    assert made[4].pace == pytest.approx(3.0 * (4 + 7) / (16 + 7))
    assert made[8].pace == pytest.approx(1.5 * (8 + 7) / (16 + 7))
    assert made[4].total[0] == pytest.approx(100 * made[4].pace)
    assert made[4].time_to(13)[0] == pytest.approx(75 * made[4].pace)
    assert made[4].final_perplexity[0] == 10
    assert made[4].label == "1f1b-flush m=4"


def test_a_size_without_measured_costs_is_not_mapped_to(write_run):
    run(write_run, "flush", "1f1b-flush", 16, 1.0)
    run(write_run, "paci", "paci", 4, 3.0, costs=None)
    assert list(mapped(write_run)) == [16]


def test_costs_come_from_runs_of_any_batch(write_run):
    """Batch 32 with a = 16 has the micro-batches of two that batch 16 with m = 8 wants."""
    run(write_run, "flush", "1f1b-flush", 16, 1.0)
    run(write_run, "paci-8", "paci", 8, 1.5, costs=None)
    run(write_run, "large", "paci", 16, 1.5, costs=costs(2, 1.5), batch=32)
    frames = read_runs(write_run.root)
    made = cells(frames)
    small = [cell for cell in made if cell.batch == 16]
    assert [it.m for it in Timings(made, frames).flushes(small)] == [8, 16]


def test_what_is_trained_is_not_mapped(write_run):
    run(write_run, "flush-16", "1f1b-flush", 16, 1.0)
    run(write_run, "flush-4", "1f1b-flush", 4, 3.0)
    assert not any(it.mapped for it in mapped(write_run).values())


def test_on_the_wall_clock_flush_is_mapped_by_the_real_runs_of_q3(write_run, write_throughput):
    options = {"clock": "wall", "costs": None, "stages": 2, "executor": {"name": "distributed"}}
    run(write_run, "flush", "1f1b-flush", 8, 1.0, **options)
    run(write_run, "paci", "paci", 4, 1.0, **options)
    assert list(mapped(write_run)) == [8]
    write_throughput("q3-8", accumulation=8, microbatch=2, seconds=[2, 2])
    write_throughput("q3-4", accumulation=4, microbatch=4, seconds=[3, 3])
    write_throughput("other", accumulation=4, microbatch=2, seconds=[9, 9])
    made = mapped(write_run)
    assert made[4].pace == pytest.approx(1.5)
    assert made[4].mapped


def test_tokens_are_a_share_of_all_and_the_same_for_any_count(write_run):
    run(write_run, "flush", "1f1b-flush", 16, 1.0)
    run(write_run, "paci", "paci", 4, 3.0)
    made = mapped(write_run)
    assert made[16].tokens_to(13)[0] == made[4].tokens_to(13)[0] == pytest.approx(0.75)


def test_everything_of_a_setting_is_timed_flush_first(write_run):
    run(write_run, "flush", "1f1b-flush", 16, 1.0)
    run(write_run, "paci", "paci", 4, 3.0)
    run(write_run, "async", "async-1f1b", 1, 9.0)
    frames = read_runs(write_run.root)
    made = cells(frames)
    labels = [it.label for it in Timings(made, frames).everything(made)]
    assert labels == ["1f1b-flush m=16", "1f1b-flush m=4", "paci a=4", "async-1f1b"]


def test_given_costs_say_nothing_about_time(write_run):
    run(write_run, "f", "1f1b-flush", 16, 1.0, clock="simulated")
    with pytest.raises(CannotAnswer, match="1 runs on the clock 'simulated', whose costs are"):
        timed(cells(read_runs(write_run.root)))
    run(write_run, "g", "1f1b-flush", 16, 1.0)
    able, said = timed(cells(read_runs(write_run.root)))
    assert [cell.clock for cell in able] == [MEASURED]
    assert said.startswith("1 runs on the clock 'simulated'")


def test_two_measurements_of_one_size_are_not_compared(write_run):
    run(write_run, "f", "1f1b-flush", 8, 1.0)
    run(write_run, "p", "paci", 8, 1.1)
    with pytest.raises(CannotAnswer, match="f and p have different measured costs"):
        timed(cells(read_runs(write_run.root)))


def test_costs_that_are_none_are_one_sentence(write_run):
    run(write_run, "f", "1f1b-flush", 8, 1.0, costs=costs(2, 1.0) | {"forward": "fast"})
    with pytest.raises(CannotAnswer, match=r"no table of costs"):
        timed(cells(read_runs(write_run.root)))


def test_q2_times_the_trainings_and_maps_flush_at_the_batch(write_run, write_throughput):
    """Flush is trained at m = 8; a throughput run takes 4096 tokens in the seconds given."""
    tokens = {"clock": "simulated", "costs": None}
    run(write_run, "flush", "1f1b-flush", 8, 1.0, **tokens)
    run(write_run, "paci", "paci", 4, 1.0, **tokens)
    for method, a, seconds in (("1f1b-flush", 4, 8), ("1f1b-flush", 8, 4), ("paci", 4, 2)):
        options = {"method": method, "accumulation": a, "microbatch": 16 // a, "stages": 8}
        write_throughput(
            f"q2-{method}-{a}", experiment="q2", seconds=[seconds], clock=MEASURED,
            executor="local", **options,
        )  # fmt: skip
    frames = read_runs(write_run.root)
    made, _ = timed(on_clocks(cells(frames), frames))
    found = {it.label: it for it in Timings(made, frames).everything(made)}
    assert {label: (it.cell.clock, it.basis) for label, it in found.items()} == {
        "1f1b-flush m=4": (MEASURED, "mapped from m=8"),
        "1f1b-flush m=8": (MEASURED, "tokens ÷ throughput"),
        "paci a=4": (MEASURED, "tokens ÷ throughput"),
    }
    tokens = 1024 * 4
    assert found["1f1b-flush m=8"].total[0] == pytest.approx(4 * tokens / 4096)
    assert found["1f1b-flush m=4"].total[0] == pytest.approx(8 * tokens / 4096)
    assert found["paci a=4"].total[0] == pytest.approx(2 * tokens / 4096)
    assert found["paci a=4"].time_to(13)[0] == pytest.approx(2 * 3 / 4)


def test_without_q2_the_trainings_have_no_time(write_run):
    run(write_run, "flush", "1f1b-flush", 8, 1.0, clock="simulated")
    frames = read_runs(write_run.root)
    with pytest.raises(CannotAnswer, match="without the throughputs of experiment=q2"):
        timed(on_clocks(cells(frames), frames))
