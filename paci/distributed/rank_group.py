"""The group of all ranks, in which they compare settings, gather values and raise together."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch.distributed as dist

from paci.distributed.failure import RankFailed, Refused
from paci.distributed.scheduling_policy import batch_scheduling
from paci.distributed.transport import link_errors


class RankGroup:
    """All ranks of the default process group, on gloo. Every rank makes one, and all ranks call
    each of its methods. Its threads are scheduled as a `batch`."""

    def __init__(self, batch: bool = True) -> None:
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        with batch_scheduling(batch):
            self._group: dist.ProcessGroup | None = dist.new_group(
                list(range(self.size)), backend="gloo"
            )

    @property
    def process_group(self) -> dist.ProcessGroup:
        """The process group of all ranks. Raises RuntimeError once it is closed."""
        if self._group is None:
            raise RuntimeError("this rank has closed its connections to the others")
        return self._group

    def gather(self, value: object) -> list[Any]:
        """Return the `value` of every rank, in order of ranks, at every rank."""
        values: list[Any] = [None] * self.size
        group = self.process_group
        with link_errors(None):
            dist.all_gather_object(values, value, group=group)
        return values

    def check_equal(self, **settings: object) -> None:
        """Raise `Refused` at every rank unless all ranks were given the same `settings`."""
        first, *others = self.gather(settings)
        for rank, other in enumerate(others, 1):
            for name in settings:
                if other[name] != first[name]:
                    raise Refused(
                        f"all ranks must be given the same {name}: it is {first[name]!r} at rank "
                        f"0 and {other[name]!r} at rank {rank}"
                    )

    @contextmanager
    def raise_together(self) -> Iterator[None]:
        """If any rank raises inside the block, every rank raises the error of the lowest such
        rank: a ValueError as `Refused`, anything else as `RankFailed`."""
        failure: Exception | None = None
        cause: Exception | None = None
        try:
            yield
        except ValueError as error:
            failure, cause = Refused(str(error)), error
        except Exception as error:
            failure, cause = RankFailed.of(self.rank, error), error
        for other in self.gather(failure):
            if other is not None:
                raise other from cause

    def close(self) -> None:
        """Close this rank's connections. A rank that waits for this one in the group fails then."""
        if self._group is not None:
            dist.destroy_process_group(self._group)
            self._group = None  # its threads and connections last as long as it is referenced
