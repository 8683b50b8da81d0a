"""Write a page to explore schedules: python -m paci.explore [FILE]

FILE is schedules.html if it is not given. Open it in any browser; it needs no network.
"""

import argparse
import sys
from pathlib import Path

from paci.explore.page import page


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m paci.explore",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, nargs="?", default=Path("schedules.html"))
    file: Path = parser.parse_args().file
    try:
        file.write_text(page(), encoding="utf-8")
    except OSError as error:
        print(f"error: {file}: {error.strerror}", file=sys.stderr)
        raise SystemExit(2) from None
    print(file)


if __name__ == "__main__":
    main()
