import pytest

from experiments.run.execution import outcome
from paci.distributed.failure import RankFailed


@pytest.mark.parametrize(
    ("error", "state", "why"),
    [
        (KeyboardInterrupt(), "preempted", "interrupted"),
        (RankFailed(1, None, None, "SIGTERM", "killed by SIGTERM"), "preempted", "interrupted"),
        (MemoryError("all\nof it"), "out-of-memory", "MemoryError: all"),
        (
            RankFailed(1, 1, 7, "OutOfMemoryError", "CUDA\n2 GiB"),
            "out-of-memory",
            "rank 1 (stage 1, micro-batch 7): OutOfMemoryError: CUDA",
        ),
        (RankFailed(1, 1, 7, "NonFinite", "the loss is nan"), "diverged", "the loss is nan"),
        (
            RankFailed(1, None, None, "SIGKILL", "killed by SIGKILL"),
            "failed",
            "rank 1: killed by SIGKILL",
        ),
        # What it is is not told by how it is worded.
        (OSError("SIGTERM: diverged"), "failed", "OSError: SIGTERM: diverged"),
    ],
)
def test_what_becomes_of_a_run(error, state, why):
    assert outcome(error) == (state, why)
