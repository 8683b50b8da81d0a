"""A clock to measure how long a computation takes."""

import time

import torch


def now(device: torch.device) -> float:
    """Return a time in seconds after `device` has finished all its work.

    With one thread on a CPU it is the time that the process spent computing: the same as wall time
    on a quiet machine, and free of what other processes take on a busy one.
    """
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
    elif torch.get_num_threads() == 1:
        return time.process_time()
    return time.perf_counter()
