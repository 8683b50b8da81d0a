"""What a method is called in tables and figures."""

from collections.abc import Mapping


def label(
    method: str, flushes: bool, accumulation: int, slack: int, weights: str, options: str = ""
) -> str:
    """`1f1b-flush m=8`, `paci a=4`, `paci a=4 slack=7`, `paci a=4 stashed`, `async-1f1b`,
    `interleaved-1f1b m=8 stages_per_rank=2`: its name, and what its name does not say."""
    parts = [method]
    if flushes:
        parts.append(f"m={accumulation}")
    elif method == "paci":
        parts.append(f"a={accumulation}")
    if slack:
        parts.append(f"slack={slack}")
    if method == "paci" and weights != "live":
        parts.append(weights)
    return " ".join([*parts, options]).rstrip()


def options_text(options: Mapping[str, object]) -> str:
    """`limit=16 stages_per_rank=2`: the options that are not None, by name."""
    given = sorted((key, value) for key, value in options.items() if value is not None)
    return " ".join(f"{key}={value}" for key, value in given)
