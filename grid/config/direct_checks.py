"""What would do nothing where jobs enter clusters directly: no entity sends them there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from grid.config.fault_sections import FaultsSection
from grid.config.schema import Scenario, VoSection
from grid.config.sections import Section
from grid.model.errors import Path, Problem

AS_WRITTEN = ""
"""What is found is what stands there."""
NO_MESSAGES = (
    "no such setting, for all jobs enter their clusters directly, and no entity sends a message"
)
PAST_SCHEDULER = (
    "no such setting, for the VO's jobs enter its cluster directly, past its Local Scheduler"
)
ANY_MACHINE = "cluster, for the VO's jobs enter it directly, and no selection binds them"
NONE_TO_CUT_OFF = "a VO that sends messages, for this one's jobs enter its cluster directly"
OF_THE_SCHEDULER = (
    "selection", "cluster_choice", "when_busy", "admission", "priority", "joins_s", "leaves_s",
)  # fmt: skip
"""Keys of a VO that say what becomes of jobs that come by Local Schedulers."""


def direct_problems(scenario: Scenario) -> Iterator[Problem]:
    """Settings for routed jobs and for messages, where there are none.

    What is at its default passes, for a run writes all defaults into its scenario.yaml. Crashes and
    outages of entities pass, too: a live run hears later of the jobs that have ended meanwhile.
    """
    if scenario.workload is not None or scenario.vos is None:
        return
    direct = [(v, vo) for v, vo in enumerate(scenario.vos) if _is_direct(vo)]
    for v, vo in direct:
        yield from _of_vo(vo, ("vos", v))
    faults = scenario.faults
    if faults is not None:
        yield from _partitions(faults, {name for _, vo in direct for name in vo.names})
    if len(direct) < len(scenario.vos):
        return
    for key in ("network", "protocol"):
        yield from _given(getattr(scenario, key), (key,), NO_MESSAGES)
    if faults is not None:
        for key in ("between_vos", "within_vos"):
            yield from _given(getattr(faults, key), ("faults", key), NO_MESSAGES)


def _is_direct(vo: VoSection) -> bool:
    return vo.workload is not None and vo.workload.enters == "cluster"


def _of_vo(vo: VoSection, path: Path) -> Iterator[Problem]:
    yield from _given(vo, path, PAST_SCHEDULER, OF_THE_SCHEDULER)
    for c, cluster in enumerate(vo.clusters):
        if cluster.bind == "machine":
            yield (*path, "clusters", c, "bind"), AS_WRITTEN, ANY_MACHINE
    workload, wanted = vo.workload, ("requirements",)
    if workload is None:
        return
    for j, job in enumerate(workload.jobs or ()):
        yield from _given(job, (*path, "workload", "jobs", j), PAST_SCHEDULER, wanted)
    if workload.annotate is not None:
        annotate = (*path, "workload", "annotate")
        yield from _given(workload.annotate, annotate, PAST_SCHEDULER, wanted)


def _partitions(faults: FaultsSection, direct: set[str]) -> Iterator[Problem]:
    """Those that keep no message from anybody: one of the sides sends and hears none."""
    for number, cut in enumerate(faults.partitions):
        sides = (("one", cut.one), ("other", cut.other))
        silent = next((side for side, names in sides if direct.issuperset(names)), None)
        if silent is not None:
            yield ("faults", "partitions", number, silent, 0), AS_WRITTEN, NONE_TO_CUT_OFF


def _given(
    section: Section, path: Path, expected: str, keys: Iterable[str] | None = None
) -> Iterator[Problem]:
    """Which of the keys, or of all that the section has, are not at their defaults."""
    fields = type(section).model_fields
    for key in fields if keys is None else keys:
        if getattr(section, key) != fields[key].get_default():
            yield (*path, key), AS_WRITTEN, expected
