"""Random pipelines under random choices: nothing hangs, and no bound breaks."""

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paci import Compute, Safeguards
from paci.schedules import SCHEDULES, build
from paci.stage.compute import PRECISIONS, RECOMPUTE
from paci.stage.safeguards import CLIP, ON_NONFINITE
from paci.stage.weights import WEIGHTS
from tests.paci import toys


def float_loss(output, target):
    return toys.loss_fn(output.float(), target)


@st.composite
def pipelines(draw):
    name = draw(st.sampled_from([*SCHEDULES]))
    count = draw(st.integers(1, 3)) * SCHEDULES[name].stages_per_rank
    a = 1 if name == "async-1f1b" else draw(st.sampled_from([4, 6, 12]))
    slack = draw(st.integers(0, 3)) if name == "paci" else 0
    try:
        rule = build(name, count, a, slack)
    except ValueError:
        rule = build("paci", count, a, slack)
    clips = CLIP if rule.flushes else [clip for clip in CLIP if clip != "global"]
    policies = [*WEIGHTS]
    if a < max(map(rule.in_flight_limit, range(count))):
        policies.remove("double-buffered")
    return {
        "schedule": rule,
        "weights": draw(st.sampled_from(policies)),
        "compute": Compute(draw(st.sampled_from(PRECISIONS)), draw(st.sampled_from(RECOMPUTE))),
        "safeguards": Safeguards(
            draw(st.sampled_from(clips)), draw(st.sampled_from([0.05, 1.0, 3.0])),
            draw(st.sampled_from(ON_NONFINITE)),
        ),
        "lost": draw(st.sets(st.integers(0, 4 * a - 1), max_size=2)),
    }  # fmt: skip


@pytest.mark.stress
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(pipelines())
def test_every_combination_trains_within_its_bounds(choice):
    rule, safeguards = choice["schedule"], choice["safeguards"]
    lost = choice["lost"] if safeguards.on_nonfinite == "skip" else set()
    batches = [
        (x * math.nan if m in lost else x, y)
        for m, (x, y) in enumerate(toys.batches(4 * rule.accumulation))
    ]
    modules = toys.stages(rule.stages, dropout=0.3)
    local = toys.pipeline(
        modules, rule, None, weights=choice["weights"], loss_fn=float_loss,
        compute=choice["compute"], safeguards=safeguards,
    )  # fmt: skip
    run = local.train(batches)
    windows = sorted({m // rule.accumulation for m in lost})
    for stage, module in zip(run.stages, modules, strict=True):
        assert sum(stage.drift.values()) == len(batches)
        assert max(stage.drift) <= rule.drift_bound(stage.index)
        if not rule.flushes:
            assert stage.peak_in_flight <= rule.in_flight_limit(stage.index)
        assert [update for update, _ in stage.skipped] == windows
        assert all(parameter.isfinite().all() for parameter in module.parameters())
    assert [stage.versions.version for stage in local.stages] == [4] * rule.stages
