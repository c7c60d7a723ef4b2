"""Runs the benches named on the command line, or all: medians of five, and the machine's load.

A bench is a module beside this one with a function `measure()` that gives figures by name.
"""

from __future__ import annotations

import os
import statistics
import sys
from importlib import import_module
from pathlib import Path

TIMES = 5


def main(names: list[str]) -> int:
    here = Path(__file__).parent
    known = sorted(path.stem for path in here.glob("*.py") if path != Path(__file__))
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no bench {unknown[0]!r}, expected one of: {', '.join(known)}", file=sys.stderr)
        return 2
    for name in names or known:
        measure = import_module(name).measure
        # The first time compiles, and is not counted.
        measure()
        runs = [measure() for _ in range(TIMES)]
        load = os.getloadavg()[0]
        for figure in runs[0]:
            values = sorted(run[figure] for run in runs)
            spread = f"{values[0]:,.0f} to {values[-1]:,.0f}"
            median = statistics.median(values)
            print(f"{name}: {figure}: {median:,.0f} ({spread}), load {load:.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
