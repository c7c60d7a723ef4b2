"""How far other VOs are from one, for those who decide where jobs go."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.model.arrays import Ints
from grid.model.time import SECOND_US, Time


class Distances(NamedTuple):
    """Latencies from VO number `vo` to the others, and the bandwidth between VOs.

    `links` holds (VO, latency) where it is not `latency_us`. None: no limit of bandwidth.
    """

    vo: int
    latency_us: Time
    links: tuple[tuple[int, Time], ...] = ()
    bandwidth_mbps: float | None = None

    @property
    def longest_us(self) -> Time:
        """The longest latency to another VO."""
        return max([self.latency_us, *(latency_us for _, latency_us in self.links)])

    def hops_us(self, vos: Ints, megabytes: float) -> Ints:
        """What a job with that input takes to each of `vos`; no time to its own. Same shape."""
        hop_us = np.full(len(vos), self.latency_us, np.int64)
        for vo, latency_us in self.links:
            hop_us[vos == vo] = latency_us
        hop_us += transfer_us(megabytes, self.bandwidth_mbps)
        hop_us[vos == self.vo] = 0
        return hop_us


def transfer_us(megabytes: float, bandwidth_mbps: float | None) -> Time:
    """Time that `megabytes` take on the way between two VOs, beside the latency."""
    if bandwidth_mbps is None or megabytes <= 0.0:
        return 0
    return round(megabytes * 8.0 / bandwidth_mbps * SECOND_US)
