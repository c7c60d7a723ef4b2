"""`interventions.json` of a run's folder: the interventions in a live run."""

from __future__ import annotations

import json
from pathlib import Path

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


def write_interventions(path: Path, interventions: InterventionLog) -> None:
    """Write a row for each, one a line; `definitions.yaml` has its keys."""
    lines = [json.dumps(one.row(), ensure_ascii=False) for one in interventions.in_order()]
    rows = ",\n".join(lines)
    path.write_text(f"[\n{rows}\n]\n", encoding="utf-8")


def read_interventions(folder: Path) -> InterventionLog:
    """The interventions in the run in `folder`, done and refused. Raises InputError."""
    path = folder / INTERVENTIONS_FILE
    if not path.is_file():
        return NO_INTERVENTIONS
    done: list[Intervention] = []
    refused: list[Refusal] = []
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise ValueError("a file that is too large")
        rows = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ValueError("something else than a list of rows")
        for number, row in enumerate(rows, start=1):
            time_s, real_s = row.get("time_s"), row.get("real_s")
            for one in (time_s, real_s):
                if not (isinstance(one, int | float) and 0 <= one <= MOST_SECONDS):
                    raise ValueError(f"row {number}: no times")
            when = from_seconds(time_s), real_s, wish_of(row)
            if "refused" not in row:
                done.append(Intervention(len(done) + 1, *when))
            elif isinstance(row["refused"], str) and is_text(row["refused"]):
                refused.append(Refusal(len(done), *when, row["refused"]))
            else:
                raise ValueError(f"row {number}: no reason why it was refused")
    except (OSError, ValueError, RecursionError) as error:
        found = shorten(str(error))
        raise input_error("interventions", found, "what a live run wrote", str(path)) from None
    return InterventionLog(tuple(done), tuple(refused))
