"""Whether a grid has all that its faults name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from grid.model.errors import Path, expected_name
from grid.model.faults import GridFaults, MachineFailure, Outage
from grid.model.time import to_seconds
from grid.scenario.value_checks import Problem

ENTITIES_NAMED = 12


class Places(NamedTuple):
    """What can go wrong: the entities, and each VO's clusters with their numbers of machines."""

    entities: Sequence[str]
    vos: Mapping[str, Mapping[str, int]]


def fault_problems(faults: GridFaults, places: Places | None) -> Iterator[Problem]:
    """Faults of what the grid does not have, and faults that never come.

    Without `places`, since VOs come from a trace, no name can be known.
    """
    yield from _after_healing(faults)
    for path, name, kind in _named(faults):
        if places is None:
            yield (
                path,
                repr(name),
                "no name of a VO or an entity: they come from a trace",
            )
        elif kind == "entity" and name not in places.entities:
            yield path, repr(name), _expected_entity(name, places)
        elif kind == "vo" and name not in places.vos:
            yield path, repr(name), expected_name(name, places.vos, "the name of a VO")
    if places is None:
        return
    for number, cut in enumerate(faults.partitions):
        both = [name for name in cut.other if name in cut.one]
        if both:
            side: Path = ("faults", "partitions", number, "other")
            yield side, repr(both[0]), "a VO that is not in `one`"
    for number, failure in enumerate(faults.machine_outages):
        yield from _of_machine(failure, ("faults", "machine_outages", number), places)


def _expected_entity(name: str, places: Places) -> str:
    """All entities of the VO that was meant, if one was: their names are few, and ours."""
    vo = name.partition("/")[0]
    if vo in places.vos:
        of_vo = [one for one in places.entities if one.startswith(f"{vo}/")]
        # There may be many clusters.
        of_vo.sort(key=lambda one: one.count("/"))
        more = ", …" if len(of_vo) > ENTITIES_NAMED else ""
        return f"an entity of {vo}: {', '.join(of_vo[:ENTITIES_NAMED])}{more}"
    return expected_name(name, places.entities, "an entity")


def _named(faults: GridFaults) -> Iterator[tuple[Path, str, str]]:
    """Each name in the faults, where it stands, and of what it is the name."""
    for number, crash in enumerate(faults.crashes):
        yield ("faults", "crashes", number, "entity"), crash.entity, "entity"
    for number, vo_outage in enumerate(faults.vo_outages):
        yield ("faults", "vo_outages", number, "vo"), vo_outage.vo, "vo"
    for number, failure in enumerate(faults.machine_outages):
        yield ("faults", "machine_outages", number, "vo"), failure.vo, "vo"
    for number, cut in enumerate(faults.partitions):
        for side, vos in (("one", cut.one), ("other", cut.other)):
            for place, vo in enumerate(vos):
                yield ("faults", "partitions", number, side, place), vo, "vo"


def _after_healing(faults: GridFaults) -> Iterator[Problem]:
    for section in ("crashes", "vo_outages", "machine_outages", "partitions"):
        for number, fault in enumerate(getattr(faults, section)):
            outage: Outage = fault.outage
            if outage.start_us >= faults.heal_us:
                path: Path = ("faults", section, number, "at_s")
                expected = f"a time below heal_s, {to_seconds(faults.heal_us):g}"
                yield path, f"{to_seconds(outage.start_us):g}", expected


def _of_machine(failure: MachineFailure, path: Path, places: Places) -> Iterator[Problem]:
    """A cluster that a VO does not have, or a machine that a cluster does not have."""
    clusters = places.vos.get(failure.vo)
    if clusters is None:
        return
    count = clusters.get(failure.cluster)
    if count is None:
        expected = expected_name(failure.cluster, clusters, f"a cluster of {failure.vo}")
        yield (*path, "cluster"), repr(failure.cluster), expected
    elif failure.machine >= count:
        yield (*path, "machine"), str(failure.machine), f"a number below {count}"
