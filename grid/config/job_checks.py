"""What the jobs of a grid must keep to, however they were made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from grid.config.value_checks import Problem
from grid.model.arrays import Floats
from grid.model.errors import Path
from grid.model.grid_settings import GridSettings
from grid.model.job_table import JobTable, concatenate
from grid.model.platform import Cluster, VirtualOrganization
from grid.model.time import NEVER, SECOND_US, to_seconds
from grid.workload.table_checks import table_problems

Tables = Sequence[JobTable | None]

END_S = to_seconds(NEVER)
"""The end of virtual time."""
NO_MEMORY = "none, for no machine of the grid gives its ram_mb"


def job_problems(
    settings: GridSettings, vos: Sequence[VirtualOrganization], submitted: Tables, direct: Tables
) -> Iterator[Problem]:
    """All that is wrong with the jobs of a grid whose VOs are right."""
    problems: list[Problem] = []
    for name, tables in (("submitted", submitted), ("direct", direct)):
        if len(tables) != len(vos):
            expected = f"one for each of the {len(vos)} VOs, a JobTable or None"
            yield (name,), f"{len(tables)} tables", expected
            return
        for position, table in enumerate(tables):
            if table is not None:
                problems += table_problems((name, position), table)
    for position, (vo, table) in enumerate(zip(vos, direct, strict=True)):
        if table is not None and len(vo.clusters) != 1:
            found = f"jobs for a VO of {len(vo.clusters)} clusters"
            problems.append((("direct", position), found, "a VO with one cluster"))
    yield from problems
    if problems:
        return
    for position, both in enumerate(zip(submitted, direct, strict=True)):
        yield from _repeated_numbers(position, [table for table in both if table is not None])
    yield from past_the_end(settings, vos, submitted, direct)


def _repeated_numbers(position: int, tables: Sequence[JobTable]) -> Iterator[Problem]:
    """Two jobs of one VO with one number, which is their name in it."""
    jobs = concatenate(tables).number if len(tables) > 1 else tables[0].number if tables else None
    if jobs is None or (np.diff(jobs) > 0).all():
        return
    numbers, counts = np.unique(jobs, return_counts=True)
    if (counts > 1).any():
        path: Path = ("vos", position)
        found = f"job number {numbers[counts > 1][0]} again"
        yield path, found, "a number of its own for each job of a VO"


def past_the_end(
    settings: GridSettings, vos: Sequence[VirtualOrganization], submitted: Tables, direct: Tables
) -> Iterator[Problem]:
    """Work that takes longer than there is time, even if no CPU ever idles."""
    if settings.faults is not None:
        return
    everywhere = [cluster for vo in vos for cluster in vo.clusters]
    for position, (vo, table) in enumerate(zip(vos, direct, strict=True)):
        if table is not None:
            yield from _too_much_work(("direct", position), [table], vo.clusters)
    if settings.protocol.when_busy != "reject":
        tables = [table for table in submitted if table is not None]
        yield from _too_much_work(("submitted",), tables, everywhere)


def _too_much_work(
    path: Path, tables: Sequence[JobTable], clusters: Sequence[Cluster]
) -> Iterator[Problem]:
    capacity = sum(machine.cpus * machine.mips for one in clusters for machine in one.machines)
    factor = min(1.0, *(cluster.estimate_factor for cluster in clusters))
    widest = max(cluster.widest for cluster in clusters)
    work = sum(_certain_work(table, factor, widest) for table in tables)
    least_us = work / capacity
    if least_us >= NEVER:
        found = f"work for {least_us / SECOND_US:.3g} s on all CPUs together"
        yield path, found, f"less than {END_S:.3g} s, the end of virtual time"


def _certain_work(table: JobTable, factor: float, widest: int) -> float:
    """Microseconds times MIPS of the jobs that will run, whatever happens."""
    certain = (table.processors <= widest) & (table.licenses == 0)
    if table.requirements:
        certain &= ~table.has_requirements
    run_us: Floats = np.minimum(table.run_us, table.estimate_us * factor)
    return float((run_us * table.processors * table.reference_mips)[certain].sum())


def width_problems(
    vos: Sequence[VirtualOrganization], submitted: Tables, direct: Tables
) -> Iterator[Problem]:
    """The first job of each table that asks for more CPUs than any machine that it can reach."""
    everywhere = max(cluster.widest for vo in vos for cluster in vo.clusters)
    for position, vo in enumerate(vos):
        here = max(cluster.widest for cluster in vo.clusters)
        for name, table, widest in (
            ("submitted", submitted[position], everywhere),
            ("direct", direct[position], here),
        ):
            if table is None or not (table.processors > widest).any():
                continue
            row = int((table.processors > widest).argmax())
            expected = f"at most {widest}, the CPUs of the largest machine that it can reach"
            yield (name, position, "processors", row), str(table.processors[row]), expected


def memory_problems(
    vos: Sequence[VirtualOrganization], submitted: Tables, direct: Tables
) -> Iterator[Problem]:
    """The first job of each table that asks for memory, in a grid that has no machine with any."""
    if any(machine.ram_mb > 0 for vo in vos for one in vo.clusters for machine in one.machines):
        return
    for name, tables in (("submitted", submitted), ("direct", direct)):
        for position, table in enumerate(tables):
            if table is not None and table.ram_mb.any():
                row = int(table.ram_mb.argmax())
                yield (name, position, "ram_mb", row), f"{table.ram_mb[row]:g}", NO_MEMORY


def may_pass_the_end(vos: Sequence[VirtualOrganization], tables: Sequence[JobTable | None]) -> bool:
    """Whether virtual time may end before the jobs do, one after the other on the slowest CPU."""
    slowest = min(m.mips for vo in vos for cluster in vo.clusters for m in cluster.machines)
    jobs = [table for table in tables if table is not None]
    run_us = sum(float((table.run_us * table.reference_mips).sum()) for table in jobs) / slowest
    last_us = max((int(table.submit_us.max(initial=0)) for table in jobs), default=0)
    return last_us + run_us >= NEVER
