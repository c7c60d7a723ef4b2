"""What faults may be, and whether a grid has all that they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from grid.config.faults import FaultsSection, MachineOutageSection, RandomMachineOutagesSection
from grid.model.errors import Path, Problem, expected_name
from grid.model.time import to_seconds

ENTITIES_NAMED = 12
MOST_OUTAGES = 100_000
"""Of one machine, on average."""


class FaultTargets(NamedTuple):
    """What can go wrong: the entities, and each VO's clusters with their numbers of machines."""

    entities: Sequence[str]
    vos: Mapping[str, Mapping[str, int]]


def fault_problems(faults: FaultsSection, places: FaultTargets | None) -> Iterator[Problem]:
    """Faults of what the grid does not have, and faults that never come.

    Without `places`, since VOs come from a trace, no name can be known.
    """
    yield from _after_healing(faults)
    yield from _too_many(faults)
    for path, name, kind in _named(faults):
        if places is None:
            expected = "no name of a VO or an entity, since the VOs come from a trace"
            if "machine_outages" in str(path[1]):
                expected += "; random_machine_outages without `vo` take in all machines"
            yield path, repr(name), expected
        elif kind == "entity" and name not in places.entities:
            yield path, repr(name), _expected_entity(name, places)
        elif kind == "vo" and name not in places.vos:
            yield path, repr(name), expected_name(name, places.vos, "the name of a VO")
    if places is None:
        return
    for place, cut in enumerate(faults.partitions):
        both = [name for name in cut.other if name in cut.one]
        if both:
            side: Path = ("faults", "partitions", place, "other")
            yield side, repr(both[0]), "a VO that is not in `one`"
    for place, failure in enumerate(faults.machine_outages):
        yield from _of_machine(failure, ("faults", "machine_outages", place), places)
    for place, failing in enumerate(faults.random_machine_outages):
        yield from _of_cluster(failing, ("faults", "random_machine_outages", place), places)


def _expected_entity(name: str, places: FaultTargets) -> str:
    """All entities of the VO that was meant, if one was: their names are few, and ours."""
    vo = name.partition("/")[0]
    if vo in places.vos:
        of_vo = [one for one in places.entities if one.startswith(f"{vo}/")]
        # There may be many clusters.
        of_vo.sort(key=lambda one: one.count("/"))
        more = ", …" if len(of_vo) > ENTITIES_NAMED else ""
        return f"an entity of {vo}: {', '.join(of_vo[:ENTITIES_NAMED])}{more}"
    return expected_name(name, places.entities, "an entity")


def _named(faults: FaultsSection) -> Iterator[tuple[Path, str, str]]:
    """Each name in the faults, where it stands, and of what it is the name."""
    for place, crash in enumerate(faults.crashes):
        yield ("faults", "crashes", place, "entity"), crash.entity, "entity"
    for place, vo_outage in enumerate(faults.vo_outages):
        yield ("faults", "vo_outages", place, "vo"), vo_outage.vo, "vo"
    for place, failure in enumerate(faults.machine_outages):
        yield ("faults", "machine_outages", place, "vo"), failure.vo, "vo"
    for place, failing in enumerate(faults.random_machine_outages):
        if failing.vo is not None:
            yield ("faults", "random_machine_outages", place, "vo"), failing.vo, "vo"
    for place, cut in enumerate(faults.partitions):
        for side, vos in (("one", cut.one), ("other", cut.other)):
            for at, vo in enumerate(vos):
                yield ("faults", "partitions", place, side, at), vo, "vo"


def _after_healing(faults: FaultsSection) -> Iterator[Problem]:
    for section in ("crashes", "vo_outages", "machine_outages", "partitions"):
        for place, fault in enumerate(getattr(faults, section)):
            if fault.outage.start_us >= faults.heal_us:
                path: Path = ("faults", section, place, "at_s")
                yield path, f"{fault.at_s:g}", f"a time below heal_s, {faults.heal_s:g}"


def _too_many(faults: FaultsSection) -> Iterator[Problem]:
    """Failures that a machine can have, but no memory can hold."""
    for place, failing in enumerate(faults.random_machine_outages):
        if faults.heal_us > MOST_OUTAGES * (failing.up_us + failing.down_us):
            least = to_seconds(faults.heal_us // MOST_OUTAGES)
            path: Path = ("faults", "random_machine_outages", place, "up_s")
            expected = f"at least {least:g}, so that a machine fails {MOST_OUTAGES:,} times at most"
            yield path, f"{to_seconds(failing.up_us):g}", expected


def _of_cluster(
    failing: RandomMachineOutagesSection, path: Path, places: FaultTargets
) -> Iterator[Problem]:
    """A cluster that the VO, or that no VO, has."""
    vos = places.vos if failing.vo is None else {failing.vo: places.vos.get(failing.vo)}
    clusters = [name for of_vo in vos.values() if of_vo is not None for name in of_vo]
    if failing.cluster is not None and clusters and failing.cluster not in clusters:
        which = f"a cluster of {failing.vo}" if failing.vo is not None else "a cluster of a VO"
        known = tuple(dict.fromkeys(clusters))
        yield (
            (*path, "cluster"),
            repr(failing.cluster),
            expected_name(failing.cluster, known, which),
        )


def _of_machine(
    failure: MachineOutageSection, path: Path, places: FaultTargets
) -> Iterator[Problem]:
    """A cluster that a VO does not have, or a machine that a cluster does not have."""
    clusters = places.vos.get(failure.vo)
    if clusters is None:
        return
    count = clusters.get(failure.cluster)
    if count is None:
        expected = expected_name(failure.cluster, clusters, f"a cluster of {failure.vo}")
        yield (*path, "cluster"), repr(failure.cluster), expected
    elif failure.machine >= count:
        expected = (
            f"a number below {count}" if count > 1 else "0, the only one; a pool is one machine"
        )
        yield (*path, "machine"), str(failure.machine), expected
