"""The machine and the code of a run, for environment.json."""

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The folder of the packages: the checkout, a copy of it, or site-packages."""
PACKAGES = ("torch", "transformers", "datasets", "tiktoken", "numpy")


def describe_environment() -> dict:
    """Return the fields of `runlog.Start` that describe the machine, the packages and the code."""
    return {
        "platform": platform.platform(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "commit": commit(),
    }


def processor() -> str:
    """Return the name of the processor's model."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()


def commit() -> str | None:
    """Return the commit of this code, with "-dirty" if files differ from it; None if unknown."""
    if (ROOT / "COMMIT").exists():  # a copy of the code; git would describe the folder around it
        return (ROOT / "COMMIT").read_text()
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()
