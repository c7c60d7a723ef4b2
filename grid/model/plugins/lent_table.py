"""The table of resources as it is lent to a part of another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from grid.model.plugins.origin import Origin
from grid.model.resources import STATUS_OF_TABLE, ResourceTable


@contextmanager
def lent(origin: Origin, what: str, table: ResourceTable) -> Iterator[ResourceTable]:
    """A copy of `table` for a part. Raises PluginFailed where it has written into that.

    Its status is not marked as not to be written, for which compiled code would be compiled anew.
    """
    copy = table.to_read()
    yield copy
    for name in STATUS_OF_TABLE:
        if not np.array_equal(getattr(copy, name), getattr(table, name), equal_nan=True):
            raise origin.failed(f"{what} wrote into table.{name}, by which others go: copy it")
