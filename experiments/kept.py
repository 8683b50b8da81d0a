"""What is measured once for a folder of runs, and kept there: two measurements never agree exactly,
and runs that are to be compared must share one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from filelock import FileLock

from experiments.runfolder import replace


def kept(file: Path, key: dict, measure: Callable[[], Any]) -> Any:
    """What `measure` gave, as JSON has it, when `key` (all that it depends on) was first asked for.

    One process at a time measures. What it raises is not kept.
    """
    text = json.dumps(key)
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file.with_suffix(".lock")):
        known = json.loads(file.read_text()) if file.exists() else {}
        if text not in known:
            known[text] = measure()
            replace(file, json.dumps(known, indent=1))
    return known[text]
