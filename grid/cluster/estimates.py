"""What a cluster takes for the estimates of its jobs: all that its policy sees of run times.

The cluster is the place for it, as the batch system is: it knows which jobs of a user have ended on
it when the next one comes, and nothing of jobs elsewhere or of the future.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from grid.cluster.arrivals import Arrival
from grid.model.platform import Cluster
from grid.model.time import NEVER, Time

LONGEST_US = 10**17
"""No estimate becomes longer by a factor than this, the longest time of a log."""

Ints = npt.NDArray[np.int64]


class Estimates:
    """The models of `Cluster.estimates`.

    `average` predicts as Tsafrir, Etsion and Feitelson do (IEEE TPDS 18(6), 2007): the mean run
    time of the user's last two jobs, in order of their ends, that had ended when the job came (ends
    of an instant are before its arrivals), and never more than the user says; what the user says
    until there are two, and for jobs whose user is not known. A prediction that falls short kills
    no job: as in the paper the user's estimate, times the factor, remains the limit where there is
    one. Run times are taken as work, so that speeds do not matter.
    """

    def __init__(self, platform: Cluster) -> None:
        self._exact = platform.estimates == "exact"
        self.predicts = platform.estimates == "average"
        self._factor = platform.estimate_factor
        self._kills = platform.overrun == "kill"
        self._last: dict[int, tuple[float, ...]] = {}

    def column(self, estimate_us: Ints, run_us: Ints) -> Ints:
        """The estimates of many jobs, where they are not predicted."""
        if self._exact:
            return run_us
        if self._factor == 1:
            return estimate_us
        scaled = np.rint(np.minimum(estimate_us * self._factor, LONGEST_US)).astype(np.int64)
        told: Ints = np.maximum(scaled, 1)
        return told

    def of(self, job: Arrival) -> tuple[Arrival, Time, bool]:
        """The job as it is to be planned; the run time at which it is killed, and whether it will.

        The limit is NEVER where the estimate itself, or nothing, is it. The run time is cut there.
        """
        limit_us = self._of_user(job)
        if not self.predicts:
            return job._replace(estimate_us=limit_us), NEVER, False
        last = self._last.get(job.user, ())
        predicted_us = limit_us
        if len(last) == 2:
            mean_us = round(sum(last) / 2 / job.reference_mips)
            predicted_us = min(limit_us, max(1, mean_us))
        if not self._kills:
            return job._replace(estimate_us=predicted_us), NEVER, False
        run_us = min(job.run_us, limit_us)
        told = job._replace(estimate_us=predicted_us, run_us=run_us)
        return told, limit_us, job.run_us > limit_us

    def _of_user(self, job: Arrival) -> Time:
        if self._exact:
            return job.run_us
        if self._factor == 1:
            return job.estimate_us
        return max(1, round(min(job.estimate_us * self._factor, LONGEST_US)))

    def ended(self, user: int, work: float) -> None:
        """A job of the user has ended, after so much work: microseconds times MIPS."""
        if self.predicts and user >= 0:
            self._last[int(user)] = (*self._last.get(int(user), ())[-1:], float(work))
