"""Operations of the runtime on a rank's device, a GPU; on a processor they do nothing.

Every call names its device. Without a name CUDA takes the thread's current device, GPU 0 in a new
thread, waits for the wrong GPU, and opens a context there.
"""

import torch

from paci.segment import DeviceMemory

GPU = "cuda"


def on_cuda(device: torch.device) -> bool:
    """Return whether `device` is a GPU."""
    return device.type == GPU


def make_current(device: torch.device) -> None:
    """Make `device` the current one of this thread."""
    if on_cuda(device):
        torch.cuda.set_device(device)


def settle(device: torch.device) -> None:
    """Wait, asleep, until this thread's stream of `device` has done what it was given."""
    if on_cuda(device):
        event = torch.cuda.Event(blocking=True)
        event.record(torch.cuda.current_stream(device))
        event.synchronize()


def reset_peaks(device: torch.device) -> None:
    """Start new peaks of `device_memory`."""
    if on_cuda(device):
        torch.cuda.reset_peak_memory_stats(device)


def device_memory(device: torch.device) -> DeviceMemory | None:
    """Return the memory taken of `device` since `reset_peaks`; None on a processor."""
    if not on_cuda(device):
        return None
    free, total = torch.cuda.mem_get_info(device)
    return DeviceMemory(
        torch.cuda.max_memory_allocated(device),
        torch.cuda.max_memory_reserved(device),
        total - free,
    )
