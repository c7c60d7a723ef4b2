"""What VOs do for each other: CPU time of jobs by whose they were and where they ran."""

from __future__ import annotations

import numpy as np

from grid.model.arrays import Floats
from grid.model.job_results import JobResults
from grid.model.time import SECOND_US


def exchanged_cpu_seconds(results: JobResults, vos: int) -> Floats:
    """CPU seconds that the machines of VO j gave to jobs of VO i's users, shape (vos, vos)."""
    ran = results.placement.executed_vo >= 0
    pair = results.vo[ran] * vos + results.placement.executed_vo[ran]
    seconds = results.outcome.held_us[ran] * (results.processors[ran] / SECOND_US)
    exchanged: Floats = np.bincount(pair, seconds, vos * vos).astype(np.float64)
    return exchanged.reshape(vos, vos)


def figures_of(exchanged: Floats, vo: int | None) -> dict[str, int | float | None]:
    """Work done for others and by others, of VO number `vo`, or of all with their fairness."""
    away = exchanged - np.diag(np.diag(exchanged))
    if vo is not None:
        return {
            "work_for_others_cpu_s": float(away[:, vo].sum()),
            "work_by_others_cpu_s": float(away[vo].sum()),
            "fairness_of_exchange": None,
        }
    return {
        "work_for_others_cpu_s": float(away.sum()),
        "work_by_others_cpu_s": float(away.sum()),
        "fairness_of_exchange": jain(exchanged),
    }


def jain(exchanged: Floats) -> float | None:
    """Jain's index of what VOs got for what they gave; None where no VO gave anything."""
    gave = exchanged.sum(axis=0)
    share = exchanged.sum(axis=1)[gave > 0] / gave[gave > 0]
    squares = float((share**2).sum())
    return float(share.sum()) ** 2 / (len(share) * squares) if squares else None
