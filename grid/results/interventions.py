"""`interventions.json` of a run's folder: what somebody did to it while it went on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from grid.model.errors import one_mistake, shorten
from grid.model.interventions import Intervention, wish_of
from grid.model.time import from_seconds

INTERVENTIONS_FILE = "interventions.json"
LARGEST_FILE = 1 << 24
MOST_SECONDS = 1e12


def write_interventions(path: Path, done: Sequence[Intervention]) -> None:
    """A row for each, one a line: number, time_s, real_s, what, and what it was done to."""
    rows = ",\n".join(json.dumps(one.row(), ensure_ascii=False) for one in done)
    path.write_text(f"[\n{rows}\n]\n", encoding="utf-8")


def read_interventions(folder: Path) -> tuple[Intervention, ...]:
    """What was done to the run in `folder`; nothing where no such file is. Raises InputError."""
    path = folder / INTERVENTIONS_FILE
    if not path.is_file():
        return ()
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise ValueError("a file that is too large")
        rows = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ValueError("something else than a list of rows")
        return tuple(_read(place, row) for place, row in enumerate(rows))
    except (OSError, ValueError, RecursionError) as error:
        found = shorten(str(error))
        raise one_mistake("interventions", found, "what a live run wrote", str(path)) from None


def _read(place: int, row: Mapping[str, Any]) -> Intervention:
    time_s, real_s = (row.get(name) for name in ("time_s", "real_s"))
    for one in (time_s, real_s):
        if not (isinstance(one, int | float) and 0 <= one <= MOST_SECONDS):
            raise ValueError(f"row {place + 1}: no times")
    assert time_s is not None and real_s is not None
    return Intervention(place + 1, from_seconds(time_s), real_s, wish_of(row))
