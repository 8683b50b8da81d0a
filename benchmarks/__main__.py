"""Measure the runtime side by side with its yardsticks, on this machine's processors.

  simulate      the speed of simulations, and of a cold start to one
  local         LocalPipeline against a plain training loop; policies of weights against live ones
  distributed   DistributedPipeline against theory, PyTorch's own pipeline and a bare loop

Each figure is printed with its 95 % interval and kept in runs/bench.json, together with what else
the machine did meanwhile.
"""

import argparse
import importlib
import json
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks.goals import verdict
from benchmarks.machine import watched
from benchmarks.rounds import Estimate

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
    results = {name: results[name] for name in ALL if name in results}
    for name in chosen:
        start = time.monotonic()
        with watched() as machine:
            figures = importlib.import_module(f"benchmarks.{name}").measure()
        for key, estimate in figures.items():
            print(line(key, estimate))
        seconds = time.monotonic() - start
        print(f"{name}: {seconds:.0f} s; {machine.disturbance or 'the machine was quiet'}")
        results[name] = {
            "figures": {key: asdict(estimate) for key, estimate in figures.items()},
            "machine": asdict(machine) | {"disturbance": machine.disturbance},
            "seconds": seconds,
        }
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(RESULTS)


def line(key: str, estimate: Estimate) -> str:
    """Return the figure, its interval, its rounds and whether it reaches its goal."""
    value, low, high = (
        f"{number:,.0f}" if number >= 1000 else f"{number:.4g}"
        for number in (estimate.value, estimate.low, estimate.high)
    )
    interval = f"[{low}, {high}]"
    text = f"{key:<32} {value:>9} {interval:<20} {estimate.rounds:>3} rounds"
    return f"{text}   {verdict(key, estimate)}".rstrip()


if __name__ == "__main__":
    main()
