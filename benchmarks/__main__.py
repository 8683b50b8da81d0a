"""Measure the runtime side by side with its yardsticks, on this machine's processors.

  simulate      the speed of simulations, and of a cold start to one
  local         LocalPipeline against a plain training loop; policies of weights against live ones
  distributed   DistributedPipeline against theory, PyTorch's own pipeline and a bare loop

The results are printed, and kept in runs/bench.json.
"""

import argparse
import importlib
import json
from pathlib import Path

ALL = ("simulate", "local", "distributed")
RESULTS = Path("runs/bench.json")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "chosen", nargs="*", metavar="NAME", help=f"any of {', '.join(ALL)} (default: all)"
    )
    chosen = parser.parse_args().chosen or ALL
    if unknown := set(chosen) - set(ALL):
        parser.error(f"no benchmark {min(unknown)!r}: choose from {', '.join(ALL)}")
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in chosen:
        for key, value in importlib.import_module(f"benchmarks.{name}").measure().items():
            results[key] = value
            print(f"{key:<32} {value:,.0f}" if value >= 1000 else f"{key:<32} {value:.4g}")
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(RESULTS)


if __name__ == "__main__":
    main()
