"""Where the runs of experiments are done."""

from __future__ import annotations

from dataclasses import dataclass

from grid.model.errors import one_mistake, only_on_ray


@dataclass(frozen=True, slots=True)
class Place:
    """Where runs are done: on the Ray cluster at `address`, on `cpus` of this machine, or here.

    Raises InputError where something is given that runs in one process have no use for.
    """

    address: str | None = None
    cpus: int | None = None
    in_process: bool = False

    def __post_init__(self) -> None:
        if self.cpus is not None and self.cpus < 1:
            raise one_mistake("cpus", repr(self.cpus), "at least 1")
        if self.in_process:
            only_on_ray(address=self.address, cpus=self.cpus)
