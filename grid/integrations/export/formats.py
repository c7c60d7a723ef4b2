"""The formats of `grid export`, and the function that writes one."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from grid.model.errors import input_error, need


class Format(StrEnum):
    """A format and the name of its file; of `batsim` that of a folder."""

    file: str

    def __new__(cls, name: str, file: str) -> Format:
        member = str.__new__(cls, name)
        member._value_ = name
        member.file = file
        return member

    PERFETTO = "perfetto", "trace.pftrace"
    CHROME = "chrome", "trace.json"
    PAJE = "paje", "trace.paje"
    PARQUET = "parquet", "phases.parquet"
    SWF = "swf", "schedule.swf"
    BATSIM = "batsim", "batsim"


TRACES = (Format.PERFETTO, Format.CHROME, Format.PAJE)


def export_run(folder: Path, to: Format, target: Path) -> int:
    """Write the run in `folder` to `target`, whole or not at all.

    Returns how many jobs of an SWF log ran longer than they requested. Raises InputError and
    MissingExtra.
    """
    from grid.lab.store import refuse_sweep
    from grid.results.run_folder import check_file, replacing

    if not folder.is_dir():
        found = "a file" if folder.exists() else "no such folder"
        raise input_error("", found, "the folder of a run", str(folder))
    refuse_sweep(folder)
    if to is Format.PERFETTO:
        need(f"--to {to.value}", "perfetto", "perfetto")
    from grid.integrations.export import paje, tables, traces
    from grid.integrations.export.schedule import read_schedule

    if to is Format.BATSIM:
        tables.write_batsim(target, folder)
        return 0
    check_file(target, "--out", Path(to.file).suffix)
    schedule = read_schedule(folder)
    if to is Format.SWF:
        return tables.write_swf(schedule, target, folder)
    # A symbolic link stays one, to the new file.
    with replacing(target.resolve()) as partial, partial.open("wb") as file:
        if to is Format.PERFETTO:
            traces.write_trace(schedule, folder, traces.PerfettoTrace(file))
        elif to is Format.CHROME:
            traces.write_trace(schedule, folder, traces.ChromeTrace(file))
        elif to is Format.PAJE:
            paje.write_paje(schedule, folder, file)
        else:
            tables.write_phases(schedule, file)
    return 0
