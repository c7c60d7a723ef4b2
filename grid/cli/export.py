"""`grid export`: a run in the format of another tool."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from grid.cli.endings import endings
from grid.cli.options import Quiet
from grid.model.extras import need

if TYPE_CHECKING:
    from grid.integrations.export.schedule import Schedule


class Format(StrEnum):
    """What a run may be written as."""

    PERFETTO = "perfetto"
    CHROME = "chrome"
    PAJE = "paje"
    PARQUET = "parquet"
    SWF = "swf"
    BATSIM = "batsim"


FILES = {
    Format.PERFETTO: "trace.pftrace",
    Format.CHROME: "trace.json",
    Format.PAJE: "trace.paje",
    Format.PARQUET: "phases.parquet",
    Format.SWF: "schedule.swf",
    Format.BATSIM: "batsim",
}
"""What is written where nothing else is said, in the folder of the run; the last is a folder."""


def export(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    to: Annotated[
        Format,
        typer.Option(
            metavar="FORMAT",
            help="`perfetto`, `chrome` (JSON trace events), `paje` (for ViTE, pajeng), `parquet` "
            "(a row for each phase of each job), `swf`, or `batsim` (jobs.csv and schedule.csv).",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The file, of batsim the folder. Default: trace.pftrace, trace.json, trace.paje, "
            "phases.parquet, schedule.swf or batsim in the folder of the run.",
            show_default=False,
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write a run in the format of another tool.

    The age of information is shown where the run has its events: grid run SCENARIO --events
    """
    from grid.runtime.progress import display_on

    target = folder / FILES[to] if out is None else out
    with endings(folder=target), display_on(sys.stderr, quiet=quiet) as display:
        display.stage("writing the trace" if to in _TRACES else "writing the tables")
        longer = _write(folder, to, target)
    typer.echo(f"{to.value} in {target}")
    if longer:
        typer.echo(
            f"jobs that ran longer than they requested: {longer:,} (stopped on the way, or on slow "
            "machines); played again, they are cut unless the workload has cut_at_estimate: false"
        )


_TRACES = (Format.PERFETTO, Format.CHROME, Format.PAJE)


def _write(folder: Path, to: Format, target: Path) -> int:
    """Write `target`, whole or not at all. Raises InputError, and MissingExtra.

    Gives how many jobs of a log in SWF ran longer than they requested.
    """
    from grid.integrations.export.files import replacing, replacing_folder
    from grid.integrations.export.schedule import read_schedule
    from grid.lab.store import refuse_sweep
    from grid.model.errors import input_error
    from grid.results.run_folder import check_file

    if not folder.is_dir():
        found = "a file" if folder.exists() else "no such folder"
        raise input_error("", found, "the folder of a run", str(folder))
    refuse_sweep(folder)
    if to is Format.PERFETTO:
        need(f"--to {to.value}", "perfetto", "perfetto")
    if to is Format.BATSIM:
        from grid.integrations.export.tables import check_batsim, write_batsim

        check_batsim(target)
        with replacing_folder(target) as partial:
            write_batsim(partial, folder)
        return 0
    check_file(target, "--out", Path(FILES[to]).suffix, replaced=True)
    schedule = read_schedule(folder, for_traces=to in _TRACES)
    if to is Format.SWF:
        from grid.integrations.export.tables import write_swf

        return write_swf(schedule, target, folder)
    write = _writer(to)
    with replacing(target) as partial, partial.open("wb") as file:
        write(schedule, folder, file)
    return 0


def _writer(to: Format) -> Callable[[Schedule, Path, IO[bytes]], None]:
    from grid.integrations.export.chrome import write_chrome
    from grid.integrations.export.paje import write_paje
    from grid.integrations.export.perfetto import write_perfetto
    from grid.integrations.export.tables import write_phases

    if to is Format.PARQUET:
        return lambda schedule, _, file: write_phases(schedule, file)
    traces = {
        Format.PERFETTO: write_perfetto,
        Format.CHROME: write_chrome,
        Format.PAJE: write_paje,
    }
    return traces[to]
