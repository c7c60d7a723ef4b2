"""What a cluster takes for the estimates of its jobs: all that its policy sees of run times.

The cluster is the place for it, as the batch system is: it knows which jobs of a user have ended on
it when the next one comes, and nothing of jobs elsewhere or of the future.
"""

from __future__ import annotations

import numpy as np

from grid.model.arrays import Ints
from grid.model.platform import Cluster
from grid.model.time import Time

LONGEST_US = 10**17
"""No estimate becomes longer by a factor than this, the longest time of a log."""


class Estimates:
    """The models of `Cluster.estimates`.

    `average` predicts as Tsafrir, Etsion and Feitelson do (IEEE TPDS 18(6), 2007): the mean run
    time of the last two jobs of a VO's user, in order of their ends, that had ended when the job
    came (ends of an instant are before its arrivals), and never more than the user says; what the
    user says until there are two, and for jobs whose user is not known. A prediction that falls
    short kills no job: as in the paper the user's estimate, times the factor, remains the limit
    where there is one. Run times are taken as work, so that speeds do not matter.
    """

    def __init__(self, platform: Cluster) -> None:
        self._exact = platform.estimates == "exact"
        self.predicts = platform.estimates == "average"
        self._factor = platform.estimate_factor
        self._last: dict[tuple[str, int], tuple[float, ...]] = {}

    def column(self, estimate_us: Ints, run_us: Ints) -> Ints:
        """The estimates of many jobs: what users say times the factor, or the truth."""
        if self._exact:
            return run_us
        if self._factor == 1:
            return estimate_us
        scaled = np.rint(np.minimum(estimate_us * self._factor, LONGEST_US)).astype(np.int64)
        longer: Ints = np.maximum(scaled, 1)
        return longer

    def of(self, estimate_us: Time, run_us: Time) -> Time:
        """The same for one job."""
        if self._exact:
            return run_us
        if self._factor == 1:
            return estimate_us
        return max(1, round(min(estimate_us * self._factor, LONGEST_US)))

    def predicted(self, user: tuple[str, int], limit_us: Time, reference_mips: float) -> Time:
        """What `average` expects now of a job of the user, who says `limit_us`.

        A user is a VO and a number in it.
        """
        last = self._last.get(user, ())
        if len(last) < 2:
            return limit_us
        return min(limit_us, max(1, round(sum(last) / 2 / reference_mips)))

    def ended(self, user: tuple[str, int], work: float) -> None:
        """A job of the user has ended, after so much work: microseconds times MIPS."""
        if self.predicts and user[1] >= 0:
            self._last[user] = (*self._last.get(user, ())[-1:], float(work))
