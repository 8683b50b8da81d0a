"""The name of a run's folder, which tells the runs of a grid apart.

paci-a4-slack2-stashed-b16-lr0.003-s0
│    │  │      │       │   │       └── seed
│    │  │      │       │   └── each key of `named`, here optimizer.lr
│    │  │      │       └── batch
└────┴──┴──────┴── method, accumulation, slack and weights unless usual, options
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from omegaconf import DictConfig, ListConfig

TITLES = ("name", "source")
"""Settings of a group that name the group's option."""
LONGEST = 40
"""Characters of a value."""


def run_name(config: DictConfig) -> str:
    """Return the name of a run's folder: its method, batch and seed, and what `named` lists."""
    method = config.method
    parts = [method.name, f"a{method.accumulation}"]
    if method.slack:
        parts.append(f"slack{method.slack}")
    if method.weights != "live":
        parts.append(method.weights)
    parts += [
        option if isinstance(value, DictConfig) else f"{option}={_words(value)}"
        for option, value in method.options.items()
    ]
    parts.append(f"b{config.batch}")
    for key, label in _labels(config.named).items():
        if (value := told(config, key)) is not None:
            parts.append(f"{label}{value}" if value[:1].isdigit() else f"{label}-{value}")
    return "-".join([*parts, f"s{config.seed}"])


def told(config: DictConfig, key: str) -> str | None:
    """Return the value of `key` as a part of a file name; None if there is no such setting.

    A group is told by its name, a list as 4-4-2. What a file name cannot hold becomes a dash, and
    the end of a long text becomes a digest.
    """
    value: Any = config
    for name in key.split("."):
        if not isinstance(value, DictConfig) or name not in value:
            return None
        value = value[name]
    text = re.sub(r"[^\w.+]+", "-", _words(value)).strip("-.")
    if len(text) <= LONGEST:
        return text
    digest = hashlib.sha256(_words(value).encode()).hexdigest()[:8]
    return f"{text[: LONGEST - len(digest) - 1]}-{digest}"


def _words(value: object) -> str:
    if isinstance(value, DictConfig):
        titles = [str(value[title]) for title in TITLES if title in value]
        return titles[0] if titles else "given"
    if isinstance(value, ListConfig):
        return "-".join(map(_words, value))
    return str(value)


def _labels(keys: Sequence[str]) -> dict[str, str]:
    """Return the shortest end of each key that is the end of no other: lr for optimizer.lr."""
    labels = {}
    for key in keys:
        words = key.split(".")
        ends = [".".join(words[start:]) for start in reversed(range(len(words)))]
        others = [f".{other}" for other in keys if other != key]
        alone = [end for end in ends if not any(it.endswith(f".{end}") for it in others)]
        labels[key] = (alone or [key])[0]
    return labels
