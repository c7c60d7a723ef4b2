"""What a story says of machines, licenses and places in a queue, from states that are given."""

from __future__ import annotations

from grid.model.cluster_facts import ClusterFacts
from grid.model.event import MESSAGE, Event
from grid.results.history import ClusterLog, Stay, why_waiting


def state_of(running: list[Stay], waiting: list[Stay], **facts: object) -> ClusterLog:
    made = {"cpus": (4, 2), "ram_mb": (0.0, 100.0), "machine_licenses": (1, 0)} | facts
    log = ClusterLog(ClusterFacts("v", "c", "easy", **made), [])  # type: ignore[arg-type]
    log.stays = {one.key: one for one in (*running, *waiting)}
    return log


def test_licenses_memory_and_machines_that_are_down() -> None:
    held = Stay(("v", 1), 0, 1, 0.0, 1, machine=0, start_us=0)
    other = Stay(("v", 4), 0, 1, 80.0, 0, machine=1, start_us=0)
    licensed = Stay(("v", 2), 5, 1, 0.0, 1)
    wants_memory = Stay(("v", 3), 6, 1, 50.0, 0, bound=1)
    facts = {"licenses": (("solver", 1),), "machine_licenses": (1, 1)}
    state = state_of([held, other], [licensed, wants_memory], **facts).at(10)
    why = why_waiting(licensed.key, state)
    # Machine 0 holds the only copy, which its jobs share.
    assert why is not None
    assert (why.machine, why.lacks) == (0, ())
    bound = why_waiting(wants_memory.key, state)
    assert bound is not None
    assert [(one.what, one.needed, one.free) for one in bound.lacks] == [("memory_mb", 50.0, 20.0)]
    assert bound.ahead == (licensed.key,)
    far = Stay(("v", 5), 7, 1, 0.0, 1, bound=1)
    down = {**facts, "outages": ((1, 8, 20),)}
    there = state_of([held], [far], **down)
    why = why_waiting(far.key, there.at(10))
    assert why is not None
    assert [one.what for one in why.lacks] == ["machine", "license solver"]
    assert "down" in " ".join(why.sentences())
    why = why_waiting(far.key, there.at(7))
    assert why is not None
    assert [one.what for one in why.lacks] == ["license solver"]
    assert why_waiting(held.key, there.at(10)) is None
    wide = Stay(("v", 6), 1, 5, 0.0, 0)
    never = why_waiting(wide.key, state_of([], [wide]).at(3))
    assert never is not None
    assert never.machine == -1
    assert "ever" in never.sentences()[1]


def test_a_machine_that_somebody_took_down_is_down_until_it_is_repaired() -> None:
    facts = ClusterFacts("v", "c", "fcfs", (1,), (0.0,), (0,))
    came = Event(3, "v/cluster/c", MESSAGE, "run_job", vo="v", job=1, processors=1)
    taken = Event(5, "v/cluster/c", MESSAGE, "take_down", machine=0)
    repaired = Event(9, "v/cluster/c", MESSAGE, "repair")
    log = ClusterLog(facts, [came, taken, repaired])
    lacks = []
    for time_us in (4, 5, 8, 9):
        why = why_waiting(("v", 1), log.at(time_us))
        assert why is not None
        lacks.append([one.what for one in why.lacks])
    assert lacks == [[], ["machine"], ["machine"], []]


def test_a_machine_of_gangs_that_is_down_takes_its_own_cpus_only() -> None:
    """Which gangs ran on them is not told, so nobody is said to run."""
    facts = ClusterFacts(
        "v", "c", "afcfs", (4,), outages=((0, 5, 9), (1, 6, 9)), gangs=True, cpus_of=(1, 1, 2)
    )
    ran = Stay(("v", 1), 0, 1, 0.0, 0, machine=0, start_us=0)
    waits = Stay(("v", 2), 2, 4, 0.0, 0)
    log = ClusterLog(facts, [])
    log.stays = {one.key: one for one in (ran, waits)}
    said = []
    for time_us in (4, 5, 8, 9):
        why = why_waiting(waits.key, log.at(time_us))
        assert why is not None
        said.append(why.sentences()[1:])
    busy = ["The cluster has 3 CPUs free.", "There runs job 1 of v."]
    assert said == [busy, ["Of its 4 CPUs, 3 are up."], ["Of its 4 CPUs, 2 are up."], busy]
    assert why.sentences()[0] == "It needs 4 CPUs in the cluster."


def test_nobody_is_said_to_run_on_a_machine_that_is_down() -> None:
    ran = Stay(("v", 1), 0, 1, 0.0, 0, machine=0, start_us=0)
    waits = Stay(("v", 2), 2, 4, 0.0, 0)
    why = why_waiting(waits.key, state_of([ran], [waits], outages=((0, 5, 9),)).at(6))
    assert why is not None
    assert why.sentences()[1:] == ["Machine 0, which comes closest, is down."]


def test_those_who_came_before_are_not_said_to_start_before() -> None:
    """Policies start jobs in orders of their own."""
    first, second, third = (Stay(("V", number), number, 9, 0.0, 0) for number in (1, 2, 3))
    log = state_of([], [first, second, third])
    for key, words in (
        (
            second.key,
            "Job 1 of V arrived before it and waits, too; policy easy decides on the order.",
        ),
        (
            third.key,
            "Job 1 of V, job 2 of V arrived before it and wait, too; policy easy decides on the "
            "order.",
        ),
    ):
        why = why_waiting(key, log.at(5))
        assert why is not None
        assert why.sentences()[-1] == words
