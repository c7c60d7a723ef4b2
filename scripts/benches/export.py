"""A run of ten million jobs as a trace of Perfetto: wall time, CPU time and memory of the command.

The run is that of partial-utility over and over, each time after the last: made here, not played.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import grid

ROOT = Path(__file__).parents[2]
JOBS = 10_000_000
ROWS_A_GROUP = 1 << 18
TIMES = ("submission_time", "assigned_time", "starting_time", "finish_time")
COMMAND = (sys.executable, "-P", "-c", "from grid.cli.app import main; main()")
EXPORT = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""
"""A process of its own, for the system tells of the largest of all children that ever were."""


def make_run(folder: Path, jobs: int) -> None:
    """A run of so many jobs, in the folder of a run."""
    once, out = folder / "once", folder / "run"
    grid.run(ROOT / "scenarios" / "partial-utility.yaml", out=once)
    shutil.copytree(once, out)
    table = pyarrow.parquet.read_table(once / "jobs.parquet")
    lasts_s = float(np.nanmax(table["finish_time"].to_numpy())) + 1.0
    with pyarrow.parquet.ParquetWriter(
        out / "jobs.parquet", table.schema, compression="zstd"
    ) as writer:
        held: list[pa.Table] = []
        for number in range(-(-jobs // len(table))):
            held.append(_later(table, number * lasts_s, number * len(table)))
            if len(held) * len(table) >= ROWS_A_GROUP:
                writer.write_table(pa.concat_tables(held), row_group_size=ROWS_A_GROUP)
                held.clear()
        if held:
            writer.write_table(pa.concat_tables(held))


def _later(table: pa.Table, seconds: float, numbers: int) -> pa.Table:
    """The same jobs so much later, under other numbers."""
    for name in TIMES:
        place = table.schema.get_field_index(name)
        column = pa.array(table[name].to_numpy() + seconds, from_pandas=True)
        table = table.set_column(place, table.schema.field(name), column)
    place = table.schema.get_field_index("job_id")
    column = pa.array(table["job_id"].to_numpy() + numbers).cast(table.schema.field("job_id").type)
    return table.set_column(place, table.schema.field("job_id"), column)


def measure(jobs: int = JOBS) -> dict[str, float]:
    """Seconds and mebibytes of `grid export --to perfetto`, and how many jobs and bytes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_run(folder, jobs)
        rows = pyarrow.parquet.read_metadata(folder / "run" / "jobs.parquet").num_rows
        arguments = ["export", str(folder / "run"), "--to", "perfetto", "--quiet"]
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", EXPORT, *COMMAND, *arguments],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        wall_s = time.perf_counter() - started
        cpu_s, most_mib = map(float, done.stdout.split())
        size = (folder / "run" / "trace.pftrace").stat().st_size
    return {
        "slices": float(rows),
        "wall, ms": 1000 * wall_s,
        "CPU, ms": 1000 * cpu_s,
        "most memory, MiB": most_mib,
        "trace, MiB": size / (1 << 20),
    }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]) if len(sys.argv) > 1 else JOBS), indent=1))
