"""Measure everything, or what is named: python -m benchmarks [simulate] [local] [distributed]"""

import importlib
import json
import sys
from pathlib import Path

ALL = ("simulate", "local", "distributed")
RESULTS = Path("runs/bench.json")


def main() -> None:
    chosen = sys.argv[1:] or ALL
    unknown = set(chosen) - set(ALL)
    if unknown:
        raise SystemExit(f"error: no benchmark {unknown.pop()!r}: choose from {', '.join(ALL)}")
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in chosen:
        for key, value in importlib.import_module(f"benchmarks.{name}").measure().items():
            results[key] = value
            print(f"{key:<32} {value:,.4g}")
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
