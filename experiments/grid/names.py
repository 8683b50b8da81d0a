"""Names that tell the runs of a grid apart: `named` lists what the usual name leaves out.

paci-a4-b16-s0, twice     named: []
paci-a4-b16-lr0.001-s0
paci-a4-b16-lr0.003-s0    named: [optimizer.lr]
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from omegaconf import DictConfig

from experiments.config import flat
from experiments.config.naming import run_name, told


def tell_apart(configs: Sequence[DictConfig], keys: Iterable[str]) -> None:
    """Add to the `named` of all `configs` the keys that tell those of one name apart: of the `keys`
    of the grid as many as do and, if they do not suffice, other keys that differ.

    Raises ValueError for runs that no key tells apart.
    """
    others = dict.fromkeys(
        group for config in configs for key in flat(config) for group in _with_groups(key)
    )
    for key in (*keys, *others):
        namesakes = _namesakes(configs)
        if not namesakes:
            return
        if any(len({told(config, key) for config in group}) > 1 for group in namesakes):
            for config in configs:
                config.named = [*config.named, key]
    for first, second, *_ in _namesakes(configs):
        one, other = flat(first), flat(second)
        differing = [key for key in one if one[key] != other.get(key)]
        raise ValueError(
            f"runs of the grid are called {run_name(first)}, but differ in {', '.join(differing)}, "
            "whose values look alike in the name of a file: give each value a sweep and a folder "
            f"of its own, like runs={first.runs}/1"
        )


def _namesakes(configs: Iterable[DictConfig]) -> list[list[DictConfig]]:
    """Return the groups of configurations that share a folder of runs and a name in it."""
    groups = defaultdict(list)
    for config in configs:
        groups[config.runs, run_name(config)].append(config)
    return [group for group in groups.values() if len(group) > 1]


def _with_groups(key: str) -> list[str]:
    """Return the groups that hold a key, the outermost first, and the key."""
    words = key.split(".")
    return [".".join(words[:end]) for end in range(1, len(words) + 1)]
