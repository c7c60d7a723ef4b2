"""How old the information was on which Local Schedulers chose resources of other VOs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute
import pyarrow.dataset

from grid.model.arrays import Ints
from grid.results.event_reading import EventFile


class BeliefAges(NamedTuple):
    """Decisions in order of time, shapes (decisions,): when, the VO that decided, how old."""

    time_us: Ints
    vo: Ints
    age_us: Ints


def belief_ages(events: EventFile, vos: Sequence[str]) -> BeliefAges:
    """Those of a run whose VOs these are; what a VO knows of itself has no age and is left out."""
    field = pyarrow.dataset.field
    wanted = (field("kind") == "decision") & (field("age_us") > 0)
    table = events.columns(["time_us", "entity", "age_us"], wanted)
    places = pa.array([f"{vo}/scheduler" for vo in vos], pa.string())
    vo = pyarrow.compute.index_in(table["entity"], places).fill_null(-1).to_numpy()
    return BeliefAges(table["time_us"].to_numpy(), vo, table["age_us"].to_numpy())
