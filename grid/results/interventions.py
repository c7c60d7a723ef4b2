"""`interventions.json` of a run's folder: what somebody did to it while it went on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grid.model.errors import input_error, shorten
from grid.model.interventions import (
    NO_INTERVENTIONS,
    Intervention,
    InterventionLog,
    Refusal,
    is_text,
    wish_of,
)
from grid.model.time import from_seconds

INTERVENTIONS_FILE = "interventions.json"
LARGEST_FILE = 1 << 24
MOST_SECONDS = 1e12


def write_interventions(path: Path, wishes: InterventionLog) -> None:
    """A row for each, one a line: number, time_s, real_s, what, and what it was done to; of what
    was refused `refused`, and no number.
    """
    lines = [json.dumps(one.row(), ensure_ascii=False) for one in wishes.in_order()]
    rows = ",\n".join(lines)
    path.write_text(f"[\n{rows}\n]\n", encoding="utf-8")


def read_interventions(folder: Path) -> InterventionLog:
    """What somebody did to the run in `folder`, or was refused; nothing where no such file is.
    Raises InputError.
    """
    path = folder / INTERVENTIONS_FILE
    if not path.is_file():
        return NO_INTERVENTIONS
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise ValueError("a file that is too large")
        rows = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ValueError("something else than a list of rows")
        done: list[Intervention] = []
        refused: list[Refusal] = []
        for place, row in enumerate(rows, start=1):
            one = _read(place, row, len(done))
            if isinstance(one, Refusal):
                refused.append(one)
            else:
                done.append(one)
        return InterventionLog(tuple(done), tuple(refused))
    except (OSError, ValueError, RecursionError) as error:
        found = shorten(str(error))
        raise input_error("interventions", found, "what a live run wrote", str(path)) from None


def _read(place: int, row: Mapping[str, Any], done: int) -> Intervention | Refusal:
    """A row, at that place, after so many that were done."""
    time_s, real_s = (row.get(name) for name in ("time_s", "real_s"))
    for one in (time_s, real_s):
        if not (isinstance(one, int | float) and 0 <= one <= MOST_SECONDS):
            raise ValueError(f"row {place}: no times")
    assert time_s is not None and real_s is not None
    when = from_seconds(time_s), real_s, wish_of(row)
    if "refused" not in row:
        return Intervention(done + 1, *when)
    if not (isinstance(row["refused"], str) and is_text(row["refused"])):
        raise ValueError(f"row {place}: no words why it was refused")
    return Refusal(done, *when, row["refused"])
