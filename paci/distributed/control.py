"""A board on which any rank pins a notice and every rank reads all of them, in one order.

For what must not wait for the next message, and costs nothing while there is none: that a rank
has failed, that training should stop. It lives in torch.distributed's store, which answers as
long as the process that hosts it does, whichever rank is gone.
"""

import json
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from threading import Thread

import torch.distributed as dist

FOR_EVER = timedelta(days=365)
_numbers = count(1)  # of the boards of this process; every rank makes the same ones


class ControlChannel:
    """A new board; every rank makes one. `read` gets every notice (a dict that JSON can hold) in a
    thread of its own, or None, once, if the board is gone."""

    def __init__(self, read: Callable[[dict | None], None]):
        # The only way to the store that the default group was made with, whoever made it: torchrun,
        # SLURM's ranks or `spawn`. A second one would need an address that all ranks know.
        store = dist.distributed_c10d._get_default_store()
        self._store = dist.PrefixStore(f"paci/{next(_numbers)}/", store)
        self._read = read
        self._reader = self._store.clone()  # a connection of its own, for it blocks
        self._thread = Thread(target=self._follow, daemon=True)
        self._thread.start()

    def post(self, notice: dict) -> None:
        """Every rank reads `notice`, this one too. Raises RuntimeError if the board is gone."""
        number = self._store.add("count", 1)
        self._store.set(str(number), json.dumps(notice))

    def end(self) -> None:
        """Every rank's thread stops reading."""
        self.post({})

    def join(self) -> None:
        """Wait until this rank's has."""
        self._thread.join()

    def _follow(self) -> None:
        number = 1
        try:
            while True:
                self._reader.wait([str(number)], FOR_EVER)
                notice = json.loads(self._reader.get(str(number)))
                if not notice:
                    return
                self._read(notice)
                number += 1
        except RuntimeError:
            self._read(None)
