"""The machines of a cluster as its policy sees them."""

from __future__ import annotations

from math import ceil

import numpy as np

from grid.model.platform import Cluster
from grid.policies.interface import MachineColumns


def in_kilobytes(megabytes: float) -> float:
    """Megabytes to the next whole kilobyte, so that sums and differences are exact."""
    return ceil(megabytes * 1024) / 1024


def machine_columns(platform: Cluster, licenses: list[str], padding: int = 0) -> MachineColumns:
    """The machines of a cluster as columns, each with `padding` CPUs more than it has.

    Bit n of a mask stands for the n-th license.
    """
    machines = platform.machines
    types = sorted({machine.cpu_type for machine in machines})
    cpus = np.array([machine.cpus + padding for machine in machines], np.int64)
    mips = np.array([machine.mips for machine in machines], np.float64)
    return MachineColumns(
        cpus=cpus,
        mips=mips,
        licenses=np.array(
            [sum(1 << licenses.index(name) for name in m.licenses) for m in machines], np.int64
        ),
        ram_mb=np.array([in_kilobytes(machine.ram_mb) or np.inf for machine in machines]),
        cpu_type=np.array([types.index(machine.cpu_type) for machine in machines], np.int64),
        speed_order=np.lexsort((np.arange(len(machines)), -cpus, -mips)),
    )
