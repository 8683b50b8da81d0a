"""The checkout of the authors' repository that paci is compared with."""

import subprocess
import sys
from pathlib import Path

REPOSITORY = "https://github.com/ItayElam/PACI"
COMMIT = "3e45e7188a88f85efae02d82ff0ed93c87c2017b"  # this package was written against it
HOW_TO_GET = f"`git clone {REPOSITORY}`, then `git checkout {COMMIT[:7]}` in it"


def checked(path: str | None) -> Path:
    """Return the folder of a checkout. Raise ValueError, with how to get one, if it is none."""
    if not path:
        raise ValueError(
            "name a checkout of the authors' repository, as in "
            f"`make verify-authors AUTHORS=../authors` ({HOW_TO_GET})"
        )
    folder = Path(path).expanduser().resolve()
    if not (folder / "DistPACI" / "PACIModel.py").is_file():
        raise ValueError(
            f"{folder} is not a checkout of the authors' repository ({HOW_TO_GET}): "
            "there is no DistPACI/PACIModel.py in it"
        )
    return folder


def difference_from_known(folder: Path) -> str | None:
    """Return a sentence if `folder` is not at `COMMIT` or has local changes, else None."""
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return f"{folder} does not say its commit; the comparison was written against {COMMIT[:7]}"
    if commit != COMMIT:
        return f"{folder} is at {commit[:7]}; the comparison was written against {COMMIT[:7]}"
    if _git(folder, "status", "--porcelain", "--untracked-files=no"):
        return f"{folder} has local changes; the comparison was written against {COMMIT[:7]}"
    return None


def make_importable(folder: Path) -> None:
    """Let this process, and those that multiprocessing starts from it, import the authors' code."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _git(folder: Path, *arguments: str) -> str | None:
    asked = subprocess.run(
        ["git", "-C", folder, *arguments], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() if asked.returncode == 0 else None
