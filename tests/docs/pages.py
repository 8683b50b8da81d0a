"""The README and the pages of docs/: their blocks of code, by language."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of `language` in `page`, in order."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def commands(page: Path) -> list[str]:
    """Return the shell commands of `page`, without comments; continued lines are joined."""
    text = "".join(blocks(page, "sh")).replace("\\\n", " ")
    lines = (re.sub(r"(^|\s)#.*$", "", line).strip() for line in text.splitlines())
    return [re.sub(r"\s+", " ", line) for line in lines if line]
