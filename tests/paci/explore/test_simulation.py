"""The simulation of the page against `paci.simulate`: the same times to the last bit."""

import json
from pathlib import Path

import pytest

import paci
from paci import Cost, FixedOrder, simulate
from paci.explore import recorded as explore
from paci.schedules import SCHEDULES, build
from paci.schedules.fixed_order import number_actions
from tests.paci.explore.chromium import evaluate, needs_chromium

SIMULATION = Path(paci.__file__).parent / "explore" / "simulation.js"
COSTS = [
    {},
    {"forward": 0.7, "backward": 1.3, "update": 0.4, "transfer": 0.3},
    {"forward": 1.1, "backward": 1.9, "transfer": 0.25, "jitter": 0.35},
]
SIZES = [(2, 2, 0), (2, 8, 0), (4, 4, 0), (4, 1, 3), (8, 16, 1), (16, 2, 8)]  # ranks, window, slack


def order(name, ranks, window):
    rule = SCHEDULES[name]
    stages = ranks * rule.stages_per_rank
    cost = Cost().per_stage(rule.stages_per_rank)
    return simulate(name, stages, explore.MICROBATCHES, window, cost=cost).timeline.orders()


def cases():
    """Return (what the page is asked, what `paci.simulate` answers)."""
    given = explore.recorded()
    for number, (name, rule) in enumerate(SCHEDULES.items()):
        for place, (ranks, window, slack) in enumerate(SIZES):
            cost = {"forward": 1.0, "backward": 2.0, "update": 0.0, "transfer": 0.0, "jitter": 0.0}
            cost |= COSTS[(number + place) % len(COSTS)]
            microbatches, seed = 16, number
            asked = {"cost": cost, "microbatches": microbatches, "window": window, "seed": seed}
            if name == "async-1f1b":
                continue  # the page runs it as paci with a = 1
            if rule.flushes:
                recorded = given[name]["orders"][f"{ranks}/{window}"]
                if isinstance(recorded, str):
                    continue
                schedule = FixedOrder(order(name, ranks, window), window).truncated(microbatches)
                asked |= {"order": recorded}
            else:
                schedule = build(name, ranks, window, slack)
                asked |= {"ranks": ranks, "slack": slack}
            run = simulate(schedule, schedule.stages, microbatches, cost=Cost(**cost), seed=seed)
            steps = sorted([*map(list, run.actions)])
            yield asked, {"steps": steps, "drift": max(run.max_drift), "busy": run.utilization}


@needs_chromium
def test_the_page_simulates_as_paci_does(tmp_path):
    asked, expected = zip(*cases(), strict=True)
    script = """
    say(ASKED.map(({ cost, order, ranks, slack, microbatches, window, seed }) => {
      const rule = order ? orderRule(order, window, microbatches) : paciRule(ranks, window, slack);
      const rows = simulate(rule, microbatches,
                            durations(cost, rule.stages, microbatches, seed));
      const { utilization, drift } = measured(rows, rule);
      return {
        steps: rows.map((r) => [r.rank, r.stage, r.kind, r.microbatch, r.start, r.end, r.version]),
        drift: Math.max(...drift), busy: utilization,
      };
    }));
    """
    body = f"<script>{SIMULATION.read_text()}\nconst ASKED = {json.dumps(asked)};{script}</script>"
    answers = evaluate(tmp_path, body)
    assert len(answers) == len(expected) > 40
    for question, answer, truth in zip(asked, answers, expected, strict=True):
        assert sorted(answer["steps"]) == truth["steps"], question
        assert answer["drift"] == truth["drift"]
        assert answer["busy"] == pytest.approx(truth["busy"])


def test_every_order_is_recorded_whole():
    for name, schedule in explore.recorded().items():
        for size, recorded in (schedule["orders"] or {}).items():
            if isinstance(recorded, str):
                assert name in recorded  # the sentence of a refusal
                continue
            ranks, window = map(int, size.split("/"))
            read = [
                number_actions(
                    ((own[letter.islower()], letter.upper()) for letter in text * times),
                    explore.MICROBATCHES,
                )
                for own, (text, times) in zip(
                    recorded["placement"], recorded["letters"], strict=True
                )
            ]
            assert read == order(name, ranks, window)
