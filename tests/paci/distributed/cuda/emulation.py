"""CUDA streams and NCCL as a rank's process sees them, emulated by threads, without a GPU.

    thread ── launch, record, wait_event ──▶ stream (a thread) ── does one after the other
    NCCL send, recv ──▶ the communicator's stream: first the current stream, then the transfer

What is emulated, because a runtime can deadlock on it:

- The current device and the current stream belong to a thread. A new thread starts on device 0 and
  on the default stream.
- An NCCL operation first waits for the current stream. Its kernel stays on the device until the
  other rank has posted its half (rendezvous). `Work.wait` returns at once and makes the current
  stream wait.
- A communicator has one stream. It is made by the first operation, which blocks its thread until
  the other ranks come; or eagerly, with the group.
- With lazy loading the first launch of a kernel waits until the whole device is idle.
- A process that dies takes its half of every transfer with it, and NCCL tells nobody.

Tensors stay in the processor's memory. `torch.device("cpu")` stands for this rank's GPU wherever it
is named; where no device is named, the thread's current one is meant. The payload of NCCL travels
over gloo. Memory is poisoned until a received message is there, so reading it early shows.
"""

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

import torch
import torch.distributed as dist

from paci.distributed import device as paci_device

DeviceLike = Any


class Device(threading.local):
    """The current device and streams of a thread."""

    def __init__(self) -> None:
        self.current = 0
        self.streams: dict[int, Stream] = {}


THREAD = Device()


def index_of(device: DeviceLike) -> int:
    """Return the number of a device as CUDA would: not named is the thread's current one."""
    if device is None:
        return THREAD.current
    if isinstance(device, int):
        return device
    return int(os.environ["LOCAL_RANK"])


class Gpus:
    """All devices that this process has touched."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.streams: defaultdict[int, list[Stream]] = defaultdict(list)
        self.default: dict[int, Stream] = {}
        self.loaded: set[tuple[int, str]] = set()
        self.lazy_loading = False
        self.waits_of_compute = 0  # times that a default stream was made to wait for another
        self.spins = 0  # waits that keep a core busy: those of streams, and of usual events

    def is_idle(self, index: int) -> bool:
        return not any(stream.pending for stream in self.streams[index])

    def contexts(self) -> set[int]:
        """Return the devices on which this process has opened a context."""
        return {index for index, streams in self.streams.items() if streams}


GPUS = Gpus()


class Stream:
    """A queue of a device, in the order in which it was filled."""

    def __init__(self, device: DeviceLike = None):
        self.index = index_of(device)
        self.pending = 0
        self._queue: SimpleQueue[tuple[Callable[[], None], threading.Event]] = SimpleQueue()
        with GPUS.lock:
            GPUS.streams[self.index].append(self)
        threading.Thread(target=self._run, daemon=True).start()

    def put(self, kernel: Callable[[], None]) -> threading.Event:
        """Let the device run `kernel` after all before; return what is set when it has."""
        done = threading.Event()
        with GPUS.lock:
            self.pending += 1
        self._queue.put((kernel, done))
        return done

    def wait_event(self, event: "Event") -> None:
        assert event.done is not None
        GPUS.waits_of_compute += self is GPUS.default.get(self.index)
        self.put(event.done.wait)  # type: ignore[arg-type]

    def synchronize(self) -> None:
        GPUS.spins += 1
        self.put(lambda: None).wait()

    def _run(self) -> None:
        while True:
            kernel, done = self._queue.get()
            kernel()
            with GPUS.lock:
                self.pending -= 1
            done.set()


class Event:
    def __init__(self, blocking: bool = False):
        self.blocking = blocking
        self.done: threading.Event | None = None

    def record(self, stream: Stream | None = None) -> None:
        self.done = (stream or current_stream()).put(lambda: None)

    def synchronize(self) -> None:
        assert self.done is not None
        GPUS.spins += not self.blocking
        self.done.wait()

    def query(self) -> bool:
        return self.done is None or self.done.is_set()


def set_device(device: DeviceLike) -> None:
    THREAD.current = index_of(device)


def current_device() -> int:
    return THREAD.current


def default_stream(device: DeviceLike = None) -> Stream:
    index = index_of(device)
    with GPUS.lock:
        if index not in GPUS.default:
            GPUS.default[index] = Stream(index)
        return GPUS.default[index]


def current_stream(device: DeviceLike = None) -> Stream:
    index = index_of(device)
    return THREAD.streams.get(index) or default_stream(index)


@contextmanager
def use_stream(stream: Stream) -> Iterator[None]:
    before, device = THREAD.streams.get(stream.index), THREAD.current
    THREAD.streams[stream.index], THREAD.current = stream, stream.index
    try:
        yield
    finally:
        THREAD.current = device
        if before is None:
            del THREAD.streams[stream.index]
        else:
            THREAD.streams[stream.index] = before


def launch(kernel: str, work: Callable[[], None]) -> None:
    """Let this rank's device run `work` on the current stream, as it runs operations on tensors."""
    index = int(os.environ["LOCAL_RANK"])
    if GPUS.lazy_loading and (index, kernel) not in GPUS.loaded:
        GPUS.loaded.add((index, kernel))
        while not GPUS.is_idle(index):
            time.sleep(0.001)
    current_stream(index).put(work)


def converted(tensor: torch.Tensor, *arguments: Any, **options: Any) -> torch.Tensor:
    """Stand for `Tensor.to`, which on a stream of a link comes after what that stream waits for."""
    result: torch.Tensor = TENSOR_TO(tensor, *arguments, **options)
    if result is not tensor and THREAD.streams:
        poison(result)
        launch("conversion", lambda: fill(result, tensor))
    return result


def fill(result: torch.Tensor, tensor: torch.Tensor) -> None:
    with torch.no_grad():
        result.copy_(tensor)


class Work:
    """The handle of an NCCL operation, like torch.distributed's `Work`."""

    def __init__(self, done: threading.Event):
        self._end = Event()
        self._end.done = done

    def wait(self) -> None:
        current_stream(int(os.environ["LOCAL_RANK"])).wait_event(self._end)

    def is_completed(self) -> bool:
        return self._end.query()


class Nccl:
    """One rank's half of a communicator; gloo carries the payload between the streams."""

    def __init__(self, gloo: dist.ProcessGroup, eager: bool):
        self._gloo = gloo._get_backend(torch.device("cpu"))
        self._lock = threading.Lock()
        self._stream: Stream | None = None
        if eager:
            self._make()

    def _get_backend(self, device: torch.device) -> "Nccl":
        return self

    def send(self, tensors: list[torch.Tensor], peer: int, tag: int) -> Work:
        (tensor,) = tensors
        return self._post(lambda: self._gloo.send([tensor], peer, tag).wait())

    def recv(self, tensors: list[torch.Tensor], peer: int, tag: int) -> Work:
        (tensor,) = tensors
        poison(tensor)
        return self._post(lambda: self._gloo.recv([tensor], peer, tag).wait())

    def _post(self, transfer: Callable[[], None]) -> Work:
        with self._lock:
            if self._stream is None:
                self._make()
        ready = Event()
        ready.record(current_stream(int(os.environ["LOCAL_RANK"])))
        assert self._stream is not None
        self._stream.wait_event(ready)
        if Settings.stuck:
            transfer = threading.Event().wait
        return Work(self._stream.put(lambda: until_death(transfer)))

    def _make(self) -> None:
        """Make the communicator: wait, on the processor, until all its ranks do."""
        self._gloo.barrier().wait()
        self._stream = Stream(int(os.environ["LOCAL_RANK"]))


def until_death(transfer: Callable[[], None]) -> None:
    """A kernel whose other half has died spins for ever."""
    try:
        transfer()
    except RuntimeError:
        threading.Event().wait()


def poison(tensor: torch.Tensor) -> None:
    with torch.no_grad():
        tensor.fill_(float("nan") if tensor.is_floating_point() else 77)


class Settings:
    """The choices that a test may make for the emulated device."""

    eager = False
    stuck = False  # nothing that is posted from now on moves


def new_group(ranks: list[int], backend: str | None = None, **options: Any) -> Any:
    group = GLOO_NEW_GROUP(ranks, backend="gloo", **options)
    if backend != "nccl" or dist.get_rank() not in ranks:
        return group
    nccl = Nccl(group, Settings.eager)
    GROUPS[id(nccl)] = group
    return nccl


def destroy_process_group(group: Any = None) -> None:
    GLOO_DESTROY(GROUPS.pop(id(group), group))


TENSOR_TO = torch.Tensor.to
GLOO_NEW_GROUP, GLOO_DESTROY = dist.new_group, dist.destroy_process_group
GROUPS: dict[int, Any] = {}


def install(lazy_loading: bool = True, eager: bool = False) -> None:
    """Let this process believe that it has GPUs, and that its tensors are on its own."""
    GPUS.lazy_loading, Settings.eager = lazy_loading, eager
    cuda: Any = torch.cuda
    cuda.set_device, cuda.current_device = set_device, current_device
    cuda.current_stream, cuda.default_stream, cuda.stream = (
        current_stream,
        default_stream,
        use_stream,
    )
    cuda.Stream, cuda.Event = Stream, Event
    cuda.reset_peak_memory_stats = lambda device: None
    cuda.max_memory_allocated = lambda device: 1
    cuda.max_memory_reserved = lambda device: 2
    cuda.mem_get_info = lambda device: (4, 7)
    torch.Tensor.record_stream = lambda self, stream: None  # type: ignore[method-assign]
    torch.Tensor.to = converted  # type: ignore[method-assign]
    dist.new_group, dist.destroy_process_group = new_group, destroy_process_group
    paci_device.GPU = "cpu"
