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
        self._accounts: dict[tuple[str, int], int] = {}

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

    def account(self, vo: str, user: int) -> int:
        """The number of a VO's user, by which run times are remembered; -1 if none are."""
        if not self.predicts or user < 0:
            return -1
        return self._accounts.setdefault((vo, user), len(self._accounts))

    def accounts_of(self, users: Ints) -> Ints | int:
        """Those of direct jobs, whose VO is the cluster's own."""
        if not self.predicts:
            return -1
        known, places = np.unique(users, return_inverse=True)
        return np.array([self.account("", user) for user in known.tolist()], np.int64)[places]

    @property
    def accounts(self) -> int:
        """How many there are."""
        return len(self._accounts)
