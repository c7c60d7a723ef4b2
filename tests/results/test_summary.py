"""The table at the end of a run can be read on any terminal, and in a file."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from grid.model.job import JobState
from grid.results.machines import ClusterEntry, Directory
from grid.results.metrics import metrics
from grid.results.summary import print_summary
from tests.results.results_tables import TWO_VOS, job, table


def printed(vos: int, width: int, *, terminal: bool = False, name: str = "organization") -> str:
    """The summary of a grid of so many VOs, of which the n-th is the n-th least busy."""
    directory = Directory(
        tuple(f"{name}{vo}" for vo in range(vos)),
        tuple(ClusterEntry(vo, "pool", (1,)) for vo in range(vos)),
    )
    rows = [
        job(number, 0, 1000, 1000 * (2 + vo), vo=vo, at=(vo, vo, 0))
        for vo in range(vos)
        for number in range(3)
    ]
    rows.append(job(999, 0, vo=0, state=JobState.REJECTED))
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=terminal)
    print_summary(metrics(table(rows), directory), console)
    return file.getvalue()


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("vos", [1, 12, 13])
@pytest.mark.parametrize("terminal", [False, True])
def test_no_line_is_too_long_and_none_is_wrapped_or_cut(
    width: int, vos: int, terminal: bool
) -> None:
    lines = re.sub("\x1b[^m]*m", "", printed(vos, width, terminal=terminal)).splitlines()
    assert max(len(line) for line in lines) <= width
    labels = [line for line in lines if line.startswith(("jobs submitted", "utilization (%)"))]
    assert len(labels) == 2
    columns = len(labels[0].split()) - 2
    assert len(labels[1].split()) - 2 == columns
    said = int(lines[-1].split()[0]) if "metrics.json" in lines[-1] else 0
    assert columns - 1 + said == vos


def test_values_are_below_their_names() -> None:
    rows = [
        job(1, 0, 10, 110, processors=4, user=1),
        job(2, 0, state=JobState.REJECTED, user=2),
        job(1, 0, 0, 55, vo=1, at=(0, 0, 0), hops=1, assigned=5, utility=0.5),
    ]
    file = io.StringIO()
    print_summary(metrics(table(rows), TWO_VOS), Console(file=file, width=80))
    lines = [line.split() for line in file.getvalue().splitlines()]
    assert lines[0] == ["grid", "north", "south"]
    cells = {" ".join(line[:-3]): line[-3:] for line in lines[1:]}
    assert cells["jobs submitted"] == ["3", "2", "1"]
    assert cells["jobs rejected"] == ["1", "1", "0"]
    assert cells["jobs forwarded"] == ["1", "0", "1"]
    assert cells["PU user utility (%)"] == ["50.0", "50.0", "50.0"]
    assert cells["utilization (%)"] == ["59.1", "103.4", "0.0"]


def test_of_many_vos_the_busiest_are_shown_in_the_scenarios_order_and_the_rest_is_named() -> None:
    text = printed(13, 200)
    names = [f"organization{vo}" for vo in (7, 8, 9, 10, 11, 12)]
    assert text.splitlines()[0].split() == ["grid", *names]
    assert text.endswith(
        "7 more VOs are in metrics.json; the 6 with the highest utilization are shown.\n"
    )
