"""Read from a job's log, in which SLURM and submitit write it, why the job ended."""

import re
from pathlib import Path

START = "Starting with JobEnvironment"  # submitit's first words; a log holds every start of a job
TAIL = 1 << 16  # bytes at the end of a log that are read

ENDS = (
    (r"timed-out too many times", "timed out", "as often as cluster.requeues allows"),
    (r"CANCELLED AT .* DUE TO TIME LIMIT", "timed out", "its time was over before it was saved"),
    (r"CANCELLED AT .* DUE TO PREEMPTION", "preempted", ""),
    (r"CANCELLED AT .* DUE TO NODE FAILURE", "died", "its node failed"),
    (r"oom.kill|Out Of Memory", "out-of-memory", "of the node, not of a GPU"),
    (r"CANCELLED AT \S+ \*\*\*", "cancelled", ""),
)
"""(pattern of the text that SLURM writes, the state that it means, why)"""


def last_words(log: Path) -> tuple[str, str]:
    """Return the state in which a job's last start ended, "died" if its log has none, and why."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL))
            text = file.read().decode(errors="replace").rpartition(START)[2]
    except OSError:
        return "not started", "its job left the queue without a log"
    for pattern, state, why in ENDS:
        if re.search(pattern, text):
            return state, why
    refused = re.findall(r"^error: (.+)$", text, re.MULTILINE)
    if refused:
        return "refused", refused[-1]
    ended = re.findall(r"^srun: error: \S+: (tasks? [\d,-]+: .+)$", text, re.MULTILINE)
    killed = [how for how in ended if "Exited" not in how]
    if killed:
        return "killed", killed[0]
    return "died", ended[0] if ended else "its job is gone"
