"""Copies of the code for the jobs of a sweep to import.

Changes of the checkout after the submission do not reach the jobs.

    RUNS/.code/<digest>/     conf/ experiments/ paci/ runlog/   copies of what jobs read
                             COMMIT                     for `environment.json`
                             changes.diff               difference from that commit
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from experiments.run.environment import ROOT, commit
from runlog import CODE, CODE_DIFF, write

PARTS = (
    *("conf/**/*.yaml", "experiments/conf/**/*.yaml"),  # in a checkout, in a wheel
    *("experiments/**/*.py", "paci/**/*.py", "runlog/**/*.py"),
)


class Snapshot(NamedTuple):
    """A copy of the code in `path`, taken or still to be taken.

    `commit` is marked if files differ from it, and `changes` is the difference.
    """

    path: Path
    commit: str
    changes: str

    def describe(self, folder: Path) -> None:
        """Write into a run's folder with what code it was submitted."""
        text = f"# commit {self.commit}\n# code {self.path.name}\n{self.changes}"
        write(folder / CODE_DIFF, text)


def look(runs: Path) -> Snapshot:
    """Return the snapshot that `take` would take now."""
    here = commit() or "unknown"
    digest = hashlib.sha256(here.encode())
    for file in _files():
        digest.update(f"\n{file}\n".encode())
        digest.update((ROOT / file).read_bytes())
    return Snapshot(runs / CODE / digest.hexdigest()[:12], here, _changes())


def take(runs: Path) -> Snapshot:
    """Copy the code to a folder below `runs`, unless an equal copy is there, and return it."""
    snapshot = look(runs)
    if snapshot.path.is_dir():
        return snapshot
    draft = snapshot.path.with_name(f".{snapshot.path.name}.{os.getpid()}")
    for file in _files():
        (draft / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, draft / file)
    (draft / "COMMIT").write_text(snapshot.commit)
    (draft / "changes.diff").write_text(snapshot.changes)
    try:
        os.rename(draft, snapshot.path)
    except OSError:  # another process was faster
        shutil.rmtree(draft)
    return snapshot


def _files() -> list[Path]:
    return sorted(path.relative_to(ROOT) for part in PARTS for path in ROOT.glob(part))


def _changes() -> str:
    """Return git's difference from the commit, which leaves out files that git does not know."""
    try:
        asked = subprocess.run(
            ["git", "diff", "HEAD", "--", *(part.partition("/")[0] for part in PARTS)],
            cwd=ROOT, capture_output=True, text=True,
        )  # fmt: skip
    except OSError:
        return ""
    return asked.stdout
