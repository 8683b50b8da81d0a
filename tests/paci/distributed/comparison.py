"""The training of all ranks, compared with LocalPipeline."""

from paci.schedules import FixedOrder
from tests.paci import fleet, toys

CONFIGURATIONS = [
    (schedule, accumulation, order, slack)
    for schedule, accumulation, slack in (
        ("gpipe", 4, 0),
        ("1f1b-flush", 4, 0),
        ("paci", 4, 0),
        ("paci", 2, 2),
        ("async-1f1b", 1, 0),
        ("zb-h1", 4, 0),
        ("zb-h2", 4, 0),
        ("zb-1p", 4, 0),
        ("zb-2p", 4, 0),
        ("interleaved-1f1b", 4, 0),
        ("interleaved-zb-h1", 4, 0),
        ("zbv", 4, 0),
        ("dualpipev", 16, 0),  # at least as many micro-batches as stages, on up to eight ranks
    )
    for order in ("static", "dynamic")
]
"""The (schedule, accumulation, order, slack) that every transport must train with."""

UPDATES = 6
"""Updates of each training: enough for every stage to drift by all that its bound allows."""


def by_stage(by_rank: list[dict], key: str) -> list:
    """Put together {stage: value} of all ranks."""
    stages = {stage: value for of_rank in by_rank for stage, value in of_rank[key].items()}
    return [stages[stage] for stage in range(len(stages))]


def local(ranks: int, configuration: tuple, updates: int, rule: FixedOrder | None = None) -> tuple:
    """Return (weights by stage, segment, pipeline) of LocalPipeline, in the order of `rule`, or of
    the schedule."""
    name, accumulation, _, slack = configuration
    modules = toys.stages(fleet.stages_of(name, ranks), dropout=0.3)
    options = {"slack": slack} if rule is None else {}
    one = toys.pipeline(
        modules, rule or name, accumulation if rule is None else None, seed=fleet.SEED, **options
    )
    segment = one.train(toys.batches(updates * accumulation))
    return toys.weights(modules), segment, one


def check_equals_local(ours: list[dict], configuration: tuple, updates: int = UPDATES) -> None:
    """Static order: the same to the last bit. Dynamic order: so it is if the recording is
    replayed."""
    ranks = len(ours)
    (segment,) = (r["segment"] for r in ours if r["segment"])
    static = configuration[2] == "static"
    rule = None if static else FixedOrder(segment.timeline.orders(), configuration[1])
    weights, expected, one = local(ranks, configuration, updates, rule)
    assert toys.same(by_stage(ours, "weights"), weights)
    assert segment.losses == expected.losses
    for stage, other in zip(segment.stages, expected.stages, strict=True):
        assert stage.index == other.index
        assert stage.drift == other.drift
        assert stage.staleness == other.staleness
        assert stage.peak_in_flight == other.peak_in_flight
    assert segment.timeline.orders() == expected.timeline.orders()
    evaluation = one.evaluate(toys.batches(3))
    assert [r["evaluation"] for r in ours] == [evaluation] * ranks
