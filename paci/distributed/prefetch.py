"""Prefetching: batches are copied to a rank's GPU one micro-batch ahead.

thread    build, copy m + 1 ┐      build, copy m + 2 ┐
engine    ...  forward of m └▶ ... forward of m + 1  └▶ ...
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import overload

import torch

from paci.distributed.device import on_cuda, settle
from paci.stage.stage import Batch, Stage


def batches_for(stages: Sequence[Stage], batches: Sequence[Batch]) -> Sequence[Batch]:
    """Return `batches` for a rank that holds `stages`, prefetched if they live on a GPU."""
    reads = any(stage.is_first or stage.is_last for stage in stages)
    if reads and on_cuda(stages[0].device):
        return Prefetched(batches, stages)
    return batches


class Prefetched(Sequence[Batch]):
    """Batches on the device of `stages`. While one is in use, a thread builds the next one and
    copies what the stages read of it."""

    def __init__(self, batches: Sequence[Batch], stages: Sequence[Stage]):
        self._batches = batches
        self._device = stages[0].device
        self._needs_input = any(stage.is_first for stage in stages)
        self._needs_target = any(stage.is_last for stage in stages)
        self._compute_stream = torch.cuda.current_stream(self._device)
        self._copy_stream = torch.cuda.Stream(self._device)
        self._loader = ThreadPoolExecutor(1)
        self._loading: dict[int, Future[Batch]] = {}

    def __len__(self) -> int:
        return len(self._batches)

    @overload
    def __getitem__(self, index: int) -> Batch: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Batch]: ...
    def __getitem__(self, index: int | slice) -> Batch | Sequence[Batch]:
        if isinstance(index, slice):
            raise TypeError("prefetched batches are read one by one")
        loading = self._loading.pop(index, None) or self._loader.submit(self._load, index)
        following = index + 1
        if following < len(self) and following not in self._loading:
            self._loading[following] = self._loader.submit(self._load, following)
        return loading.result()

    def _load(self, index: int) -> Batch:
        input, target = self._batches[index]
        with torch.cuda.stream(self._copy_stream):
            if self._needs_input:
                input = self._copy(input)
            if self._needs_target:
                target = self._copy(target)
            settle(self._device)
        return input, target

    def _copy(self, tensor: torch.Tensor) -> torch.Tensor:
        copied = tensor.to(self._device)
        if copied is not tensor:
            copied.record_stream(self._compute_stream)
        return copied
