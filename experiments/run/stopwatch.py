"""What time it is, to measure how long a computation takes."""

import time

import torch


def now(device: torch.device) -> float:
    """Seconds, once `device` is done with all that it was given. With one thread of the processor
    they are the processor's, which are the wall's on a quiet machine and leave out what others do
    on a busy one."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
    elif torch.get_num_threads() == 1:
        return time.process_time()
    return time.perf_counter()
