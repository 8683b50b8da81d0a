"""The settings of conf/ as --help lists them: the text of its files, which comments on each."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import indent, wrap

from experiments.config.compose import choices


def settings(overrides: Sequence[str], folder: Path) -> str:
    """Return the settings of the config.yaml in `folder`, the options of its groups, and the
    settings of those options that `overrides` choose."""
    try:
        chosen = choices(overrides, folder)
    except ValueError:  # A mistake must not keep anyone from the help.
        chosen = choices([], folder)
    lines = ["Settings, as KEY=VALUE:"]
    lines += [_shown(folder / "config.yaml"), ""]
    lines += ["Groups, as GROUP=OPTION, and the settings of an option, as GROUP.KEY=VALUE:"]
    for group in sorted(chosen):
        options = ", ".join(sorted(path.stem for path in (folder / group).glob("*.yaml")))
        lines += [
            "",
            *wrap(options, 98, initial_indent=f"  {group:<12}", subsequent_indent=" " * 14),
        ]
        lines += [f"    {group}={chosen[group]}", _shown(folder / group / f"{chosen[group]}.yaml")]
    return "\n".join(lines)


def _shown(file: Path) -> str:
    """Return the text of a file without what only Hydra reads."""
    lines = file.read_text().splitlines()
    if "defaults:" in lines:
        start = lines.index("defaults:")
        end = start + 1
        while end < len(lines) and lines[end].startswith("  - "):
            end += 1
        del lines[start:end]
    text = "\n".join(line for line in lines if not line.startswith("# @package"))
    return indent(text.strip(), "  " if file.name == "config.yaml" else "      ")
