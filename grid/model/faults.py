"""Faults of links, and outages; times in microseconds."""

from __future__ import annotations

from dataclasses import dataclass

from grid.model.time import Time


@dataclass(frozen=True, slots=True)
class LinkFaults:
    """Shares of messages in [0, 1), and by how much one that is delayed is late at most."""

    lost: float = 0.0
    doubled: float = 0.0
    delayed: float = 0.0
    delay_us: Time = 0

    @property
    def any(self) -> bool:
        """Whether any message comes to harm."""
        return bool(self.lost or self.doubled or self.delayed)


NO_LINK_FAULTS = LinkFaults()


@dataclass(frozen=True, slots=True)
class Outage:
    """From `start_us` until `end_us`, which is excluded."""

    start_us: Time
    end_us: Time
