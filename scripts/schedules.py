"""How schedules of pybatsim differ from ours, and why; see scripts/schedules."""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
from pathlib import Path
from time import process_time

import numpy as np

from grid.config.load import load_scenario, source_of
from grid.config.workload import realize
from grid.model.job_table import JobTable
from grid.policies.queue import easy, fcfs
from tests.policies.batsim.asked_functions import schedule
from tests.runtime.asked_pybatsim import of_pybatsim
from tests.runtime.explained_starts import backfilling, in_turn, reasons, told


def main() -> None:
    """Print a few lines for the scheduler."""
    parser = argparse.ArgumentParser(prog="scripts/schedules")
    parser.add_argument("scheduler", help="a scheduler of pybatsim, by its name or file")
    parser.add_argument("ours", choices=("fcfs", "easy"))
    parser.add_argument("scenario", help="one VO with one pool, whose jobs enter it")
    parser.add_argument("--jobs", type=int, default=10_000, help="only the first so many")
    parser.add_argument("--set", dest="settings", action="append", default=[])
    given = parser.parse_args()
    jobs, processors = _asked_for(given.scenario, given.settings, given.jobs)
    policy, decide = {"fcfs": (fcfs, in_turn), "easy": (easy, backfilling)}[given.ours]
    own, _, _ = schedule(policy(), jobs, processors)
    scheduler = given.scheduler
    if Path(scheduler).exists():
        scheduler = str(Path(scheduler).resolve())
    began = process_time()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # It writes a log where it is started.
        asked = of_pybatsim(scheduler, jobs, processors)
        os.chdir("/")
    spent, used = process_time() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    theirs = np.array(asked.starts)
    differ = int((theirs != own).sum())
    submit = jobs.submit_us
    waits = [float((starts - submit).mean() / 1e6) for starts in (theirs, np.array(own))]
    print(f"{Path(scheduler).stem}: {len(jobs)} jobs on {processors} processors")
    print(f"  {asked.time.messages} messages; {used.ru_utime + used.ru_stime:.1f} s of CPU there, "
          f"{spent:.1f} s here")  # fmt: skip
    print(f"  {differ} jobs start at other times than under {given.ours}; mean wait "
          f"{waits[0]:.1f} s, here {waits[1]:.1f} s")  # fmt: skip
    found = list(reasons(jobs, processors, asked.said, decide))
    print(f"  {len(found)} decisions differ from ours in the same state, all others do not:")
    for reason, count in told(iter(found)).most_common():
        print(f"    {count:6d}  {reason}")


def _asked_for(file: str, settings: list[str], count: int) -> tuple[JobTable, int]:
    """The first jobs of the scenario's only VO, and the processors of its pool."""
    scenario = load_scenario(file, tuple(settings))
    grid = realize(scenario, source_of(file))[0]
    (vo,) = grid.vos
    (table,) = grid.direct
    if table is None:
        raise SystemExit(f"{file}: its jobs do not enter the cluster itself (entry_point: cluster)")
    return table.take(slice(count)), vo.clusters[0].machines[0].cpus


if __name__ == "__main__":
    main()
