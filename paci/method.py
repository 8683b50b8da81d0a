"""A method: a schedule, a policy of weights and an optimizer, under one name."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from paci.schedules import SCHEDULES, Schedule, build, theory
from paci.schedules.delay import delay_of_limit
from paci.simulation.simulate import VERSIONED

LIMITS = ("stages_per_rank", "in_flight")
"""Options of asynchronous schedules that the closed forms know."""


@dataclass(frozen=True)
class Method:
    """A way to train a pipeline, whatever the model and the number of stages.

    name          what tables and figures call it, such as "pipedream"
    schedule      a name in `paci.SCHEDULES`
    accumulation  micro-batches per update
    slack         forwards admitted beyond those that fill the pipeline (asynchronous ones only)
    weights       which weights an action sees: a name in `paci.stage.weights.WEIGHTS`
    optimizer     the optimizer's name; it is no part of the label, nor of a comparison
    options       the schedule's own, such as {"stages_per_rank": 2}; None stands for the default

    Nothing is checked before `schedule_of` or `check`, so that any run folder can be read.
    """

    name: str
    schedule: str
    accumulation: int
    slack: int = 0
    weights: str = "live"
    optimizer: str = field(default="", compare=False)
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        given = {key: value for key, value in self.options.items() if value is not None}
        object.__setattr__(self, "options", given)

    @classmethod
    def read(cls, table: Mapping[str, Any], optimizer: str = "", **others: Any) -> Self:
        """Return the method of a table such as `conf/method/paci.yaml`.

        Slack, weights and options may be missing or null. Raises KeyError for any other missing
        key, and TypeError or ValueError for values of the wrong kind.
        """
        return cls(
            name=str(table["name"]),
            schedule=str(table["schedule"]),
            accumulation=int(table["accumulation"]),
            slack=int(table.get("slack") or 0),
            weights=str(table.get("weights") or "live"),
            optimizer=optimizer,
            options=dict(table.get("options") or {}),
            **others,
        )

    @property
    def label(self) -> str:
        """The name, and what the name does not say.

        `1f1b-flush m=8`, `paci a=4`, `paci a=4 slack=7`, `paci a=4 stashed`, `async-1f1b`,
        `interleaved-1f1b m=8 stages_per_rank=2`.
        """
        parts = [self.name]
        if self.flushes:
            parts.append(f"m={self.accumulation}")
        elif self.name == "paci":
            parts.append(f"a={self.accumulation}")
        if self.slack:
            parts.append(f"slack={self.slack}")
        if self.name == "paci" and self.weights != "live":
            parts.append(self.weights)
        parts += [f"{key}={_text(value)}" for key, value in sorted(self.options.items())]
        return " ".join(parts)

    @property
    def flushes(self) -> bool:
        """True if the pipeline is drained between updates."""
        return SCHEDULES[self.schedule].flushes

    @property
    def stages_per_rank(self) -> int:
        """The stages of one rank."""
        default = SCHEDULES[self.schedule].stages_per_rank
        return int(self.options.get("stages_per_rank", default))

    def schedule_of(self, stages: int) -> Schedule:
        """Return the rule for `stages` stages.

        Raises ValueError for an unknown schedule and for sizes or options that do not fit it.
        """
        return build(self.schedule, stages, self.accumulation, self.slack, **self.options)

    def check(self, stages: int) -> None:
        """Raise ValueError if schedule, weights and optimizer do not go together."""
        self.schedule_of(stages)
        in_flight = max(self._in_flight(stages, stage) for stage in range(stages))
        if self.weights == "double-buffered" and self.accumulation < in_flight:
            raise ValueError(
                f"double-buffered weights need method.accumulation of at least {in_flight}, as "
                f"many micro-batches as may be in flight at a stage, not {self.accumulation}"
            )
        if self.weights == "predicted" and self.optimizer in ("nadamw", "muon"):
            raise ValueError("predicted weights need optimizer adamw, whose steps can be predicted")

    def with_window(self, microbatches: int) -> "Method":
        """Return the method with windows of `microbatches` if it flushes; else as it is.

        How long a window is changes nothing but the bubble of a method that flushes; it makes
        others another method.
        """
        return replace(self, accumulation=microbatches) if self.flushes else self

    def updates_between(self, stages: int, stage: int) -> int:
        """Return the most updates of a stage between a micro-batch's forward and its backward."""
        if self.flushes:
            return 0
        return theory.drift_of_limit(self._in_flight(stages, stage), self.accumulation)

    def drift_bound_at(self, stages: int, stage: int) -> int:
        """Return the most versions between the weights that a forward and its backward see."""
        return 0 if self.weights in VERSIONED else self.updates_between(stages, stage)

    def staleness_bound_at(self, stages: int, stage: int) -> int:
        """Return the most updates between the weights that a forward sees and the update that uses
        its gradient."""
        return 1 if self.weights == "double-buffered" else self.updates_between(stages, stage)

    def mean_delay(self, stages: int, stage: int) -> float:
        """Return the mean updates between a forward and the update that uses its gradient, once the
        pipeline is full."""
        return delay_of_limit(self._in_flight(stages, stage), self.accumulation)

    def _in_flight(self, stages: int, stage: int) -> int:
        return theory.in_flight_bound(stages, stage, self.slack, **self.limits)

    @property
    def limits(self) -> dict[str, Any]:
        """The options that the closed forms know."""
        return {key: self.options[key] for key in LIMITS if key in self.options}


def _text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
