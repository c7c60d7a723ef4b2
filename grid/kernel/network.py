"""The network: latencies between entities, and steps of an exchange between all processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from grid.kernel.faults import Faults
from grid.model.arrays import Ints
from grid.model.platform import transfer_us
from grid.model.time import NEVER, Time

UNREACHABLE: Time = NEVER - 1
"""Later than every instant; its sum with an instant is still a 64-bit integer."""
RADIX = 4


class Network:
    """Entities live at sites; a link joins every pair of sites, and a site to itself.

    `names` are all entities of the grid, sorted; `sites[i]` is the site of entity i. Latencies are
    microseconds and above zero, so no event affects another site at its own instant. `links`
    holds the latencies that differ from the default, by (site, site), for both directions.
    `bandwidth_mbps` limits what passes between sites, in megabits a second; None: no limit.
    `faults` are those of messages, if any.
    """

    def __init__(
        self,
        names: Sequence[str],
        sites: Sequence[int],
        latency_us: Time,
        local_latency_us: Time,
        links: Mapping[tuple[int, int], Time] | None = None,
        bandwidth_mbps: float | None = None,
        faults: Faults | None = None,
    ) -> None:
        if list(names) != sorted(set(names)):
            raise ValueError("entity names must be sorted and unique")
        links = dict(links or {})
        if min(latency_us, local_latency_us, *links.values()) <= 0:
            raise ValueError("latencies must be positive")
        self.names = tuple(names)
        self.sites = tuple(sites)
        self.site_count = max(sites) + 1
        self.bandwidth_mbps = bandwidth_mbps
        self.faults = faults
        self._latency_us = latency_us
        self._local_latency_us = local_latency_us
        self._links = links
        self._rows: dict[int, list[Time]] = {}

    def latency_row(self, site: int) -> list[Time]:
        """Latency in microseconds from `site` to each site."""
        row = self._rows.get(site)
        if row is None:
            row = [self._latency_us] * self.site_count
            row[site] = self._local_latency_us
            for (one, other), latency in self._links.items():
                if one == site:
                    row[other] = latency
                elif other == site:
                    row[one] = latency
            self._rows[site] = row
        return row

    def transfer_us(self, megabytes: float) -> Time:
        """Time that `megabytes` take between two sites, in addition to the latency."""
        return transfer_us(megabytes, self.bandwidth_mbps)

    def lookahead(self, processes: Sequence[Sequence[int]]) -> Ints:
        """Least time from an event in process i to its first effect in process j.

        `processes` lists the entities of each process. The result has shape (processes, processes):
        shortest paths over any number of links, and on the diagonal the shortest cycle;
        `UNREACHABLE` if there is no path.
        """
        count = len(processes)
        site_sets = [sorted({self.sites[entity] for entity in members}) for members in processes]
        direct = np.full((count, count), UNREACHABLE, np.int64)
        for i in range(count):
            for j in range(count):
                if i != j and site_sets[i] and site_sets[j]:
                    direct[i, j] = min(
                        min(row[site] for site in site_sets[j])
                        for row in map(self.latency_row, site_sets[i])
                    )
        shortest = direct.copy()
        for middle in range(count):
            np.minimum(shortest, shortest[:, [middle]] + shortest[[middle], :], out=shortest)
        return np.minimum(shortest, UNREACHABLE)


def steps(count: int) -> list[list[int]]:
    """Distances to the receivers of a process in each step of an exchange among `count` processes.

    In the first step each process sends to those at distances one, two and three; in the second, at
    distances four, eight and twelve, all that it has received by then; and so on. After the last
    step every process has everything (J. Bruck and others, "Efficient algorithms for all-to-all
    communications in multiport message-passing systems", 1997).
    """
    found: list[list[int]] = []
    span = 1
    while span < count:
        found.append([far for far in range(span, RADIX * span, span) if far < count])
        span *= RADIX
    return found
