"""Runs a shipped scenario twice, and prints both digests: the first run calls kernels as plain
Python until so many calls have been asked about, the second has all of them compiled.

For a process of its own, in which nothing is compiled yet.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from grid.config.load import load_scenario
from grid.config.shipped import find
from grid.model.compiled import plain_while
from grid.runtime.run import execute


def digests(name: str, settings: list[str], plain_calls: int) -> list[str]:
    """Those of both runs, and how many calls were plain."""
    scenario = load_scenario(find(Path(name), experiment=False), settings)
    asked = 0

    def are_plain() -> bool:
        nonlocal asked
        asked += 1
        return asked <= plain_calls

    plain_while(are_plain)
    first = execute(scenario, name, in_process=True).manifest["digest"]
    plain_while()
    second = execute(scenario, name, in_process=True).manifest["digest"]
    return [first, second, str(min(asked, plain_calls))]


if __name__ == "__main__":
    print(json.dumps(digests(sys.argv[1], sys.argv[3:], int(sys.argv[2]))))
