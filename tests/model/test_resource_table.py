"""The table of resources as a Local Scheduler knows them."""

from __future__ import annotations

import numpy as np

from grid.model.platform import Cluster, Machine, VirtualOrganization
from grid.model.resources import (
    STATUS_OF_TABLE,
    ResourceTable,
    concatenate_resources,
    resources_of,
)


def test_the_rows_of_one_vo_keep_their_status() -> None:
    pools = tuple(Cluster(name, (Machine(name, 4),)) for name in ("p", "q"))
    vos = [VirtualOrganization(name, pools) for name in ("a", "b")]
    columns = concatenate_resources([resources_of(vo, place) for place, vo in enumerate(vos)])
    whole = {name: np.arange(4.0) + 10 * n for n, name in enumerate(STATUS_OF_TABLE)}
    mine = ResourceTable(columns, **whole, now=77).of(1)
    assert mine.columns.vo.tolist() == [1, 1]
    assert {name: getattr(mine, name).tolist() for name in STATUS_OF_TABLE} == {
        name: column[2:].tolist() for name, column in whole.items()
    }
    assert mine.now == 77
    assert ResourceTable(columns, np.arange(4.0)).of(1).backlog_s.tolist() == []
