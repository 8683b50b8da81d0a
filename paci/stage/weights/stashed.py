"""PipeDream (Narayanan et al., SOSP 2019): a backward sees the weights of its forward.

    version    0 ─────────── 1 ─────────── 2
    forward    sees 0
    backward                                 of the same micro-batch sees 0, updates 2

As many versions are held as are in flight.
"""

from paci.stage.weights.versions import Version, Versioned


class Stashed(Versioned):
    """Every micro-batch sees the newest version of the time of its forward."""

    name = "stashed"

    def choose(self, microbatch: int, version: int) -> tuple[int, Version]:
        return version, self.newest
