"""Sizes of moldable jobs, and the speed-up models by which their run times follow."""

from __future__ import annotations

from collections.abc import Mapping

from grid.model.job import Size, amounts
from grid.model.workload import DrawnMoldableSection, MoldableSection


def amdahl(cpus: int, serial_fraction: float) -> float:
    """The speed-up of Amdahl's law (AFIPS 1967)."""
    return 1.0 / (serial_fraction + (1.0 - serial_fraction) / cpus)


def downey(cpus: int, parallelism: float, sigma: float) -> float:
    """The speed-up for an average parallelism A with a coefficient of variance sigma.

    A. Downey, A parallel workload model and its implications for processor allocation (HPDC 1997).
    """
    n, a = float(cpus), parallelism
    if sigma <= 1.0:
        if n <= a:
            return a * n / (a + sigma * (n - 1.0) / 2.0)
        if n <= 2.0 * a - 1.0:
            return a * n / (sigma * (a - 0.5) + n * (1.0 - sigma / 2.0))
    elif n <= a + a * sigma - sigma:
        return n * a * (sigma + 1.0) / (sigma * (n + a - 1.0) + a)
    return a


def sizes_of(
    section: MoldableSection, cpus: int, fixed: Mapping[str, float], per_task: Mapping[str, float]
) -> tuple[Size, ...]:
    """The sizes of a job that requests `cpus`, its own first, the others from small to large.

    It holds `fixed` amounts of resources, and `per_task` on each CPU. No sizes: it is rigid.
    """

    def speedup(n: int) -> float:
        if section.speedup == "amdahl":
            return amdahl(n, section.serial_fraction)
        return downey(n, section.parallelism or float(cpus), section.sigma)

    def held(n: int) -> dict[str, float]:
        names = dict.fromkeys([*fixed, *per_task])
        return {name: fixed.get(name, 0.0) + n * per_task.get(name, 0.0) for name in names}

    numbers = [*section.cpus, *range(section.min_cpus or 1, (section.max_cpus or 0) + 1)]
    if isinstance(section, DrawnMoldableSection):
        numbers += [max(1, round(cpus * factor)) for factor in section.factors]
    others = sorted(set(numbers) - {cpus})
    sizes = [Size(n, speedup(cpus) / speedup(n), amounts(held(n))) for n in (cpus, *others)]
    return tuple(sizes) if others else ()
