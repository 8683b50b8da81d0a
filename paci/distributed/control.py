"""A control channel: notices that every rank can send to all ranks, apart from the messages.

A notice says that a rank has failed or that training should stop. Every rank reads it at once,
whatever it waits for, and the channel costs nothing while there is none. Notices live in
torch.distributed's store, which answers as long as the process that hosts it lives, whichever rank
is gone.
"""

import json
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from threading import Thread
from typing import Any

import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore

Notice = dict[str, Any]  # whatever JSON can hold
FOREVER = timedelta(days=365)
_numbers = count(1)  # of this process's channels; every rank opens the same ones in one order


class ControlChannel:
    """Broadcast notices among all ranks, each of which opens the channel.

    `read` gets every notice, in one order at all ranks, in a thread of its own. It gets None once
    if the store is gone.
    """

    def __init__(self, read: Callable[[Notice | None], None]):
        # The store of the default group, whoever made it (torchrun, SLURM's ranks, `spawn`). A
        # second store would need an address that all ranks know.
        store = dist.distributed_c10d._get_default_store()
        self._store = PrefixStore(f"paci/{next(_numbers)}/", store)
        self._read = read
        # A connection of its own, because it blocks.
        self._reader = self._store.clone()  # type: ignore[attr-defined]
        self._thread = Thread(target=self._follow, daemon=True)
        self._thread.start()

    def post(self, notice: Notice) -> None:
        """Send `notice` to every rank, this one included. Raise RuntimeError if the store is
        gone."""
        number = self._store.add("count", 1)
        self._store.set(str(number), json.dumps(notice))

    def end(self) -> None:
        """Let the reading thread of every rank end."""
        self.post({})

    def join(self) -> None:
        """Wait for the reading thread of this rank, and close its connection."""
        self._thread.join()
        del self._reader

    def _follow(self) -> None:
        try:
            for number in count(1):
                self._reader.wait([str(number)], FOREVER)
                notice = json.loads(self._reader.get(str(number)))
                if not notice:
                    return
                self._read(notice)
        except RuntimeError:
            self._read(None)
