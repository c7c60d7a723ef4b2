"""External migration: transcripts of what the dispatchers say, and what holds under any faults.

Messages take 1 ms, and the tasks of a gang a second from one cluster to another.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from grid.kernel.faults import Faults, LinkFaults, Outage, disjoint
from grid.model.job import Job
from grid.model.platform import MachineOutage
from grid.model.time import SECOND_US
from grid.policies.gang_policy import GangPolicy
from tests.cluster.gang.gang_checks import reservations
from tests.protocol.migrating import LATENCY, Losing, gang_job, play, policy

RULES = policy(external_migration_s=1, ask_every_s=60, answer_within_s=0.05)
SIZES = {"a": 2, "b": 2}
BUSY = (gang_job(0, 2, 10.0), gang_job(1, 2, 4.0, 1.0))
"""The first gang takes both processors, so the second one waits, and asks at once."""


def told(
    b: list[Job],
    faults: Losing | None = None,
    sizes: dict[str, int] = SIZES,
    rules: GangPolicy = RULES,
) -> list[str]:
    hearing, clusters = play(sizes, {"a": BUSY, "b": b}, rules, faults)
    assert not any(reservations(cluster) for cluster in clusters.values())
    assert set(hearing.ended.values()) == {1}
    return [line for line in hearing.lines if "user" not in line]


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


def test_granted() -> None:
    assert told([]) == lines("""
        1.001 a -> b: (2) room for 2?
        1.002 b -> a: (2) kept
        1.003 a -> b: (2) here is 1
        1.004 b -> a: (2) I have it
        6.003 b: 1 ran from 2.003
        10 a: 0 ran from 0
    """)


def test_step_2_to_the_letter_sends_nothing_from_a_cluster_that_is_all_busy() -> None:
    literal = policy(
        external_migration_s=1, ask_every_s=60, answer_within_s=0.05, migrates="idle_heads"
    )
    assert told([], rules=literal) == lines("""
        10 a: 0 ran from 0
        14 a: 1 ran from 10
    """)
    # With a third processor, which is idle and has a task of the second gang, it is as before.
    three = {"a": 3, "b": 2}
    assert told([], sizes=three, rules=literal) == told([], sizes=three)
    assert "1.001 a -> b: (2) room for 2?" in told([], sizes=three, rules=literal)


def test_refused_and_asked_again_after_a_while() -> None:
    """b is busy until 70 s. a asks at 1 s; its gang starts at 10 s, before it would ask again."""
    assert told([gang_job(2, 2, 70.0)]) == lines("""
        1.001 a -> b: (2) room for 2?
        1.002 b -> a: (2) no
        10 a: 0 ran from 0
        14 a: 1 ran from 10
        70 b: 2 ran from 0
    """)


def test_the_question_is_lost() -> None:
    assert told([], Losing(1_000_000)) == lines("""
        1.051 a -> b: (2) never mind
        10 a: 0 ran from 0
        14 a: 1 ran from 10
    """)


def test_the_answer_is_lost() -> None:
    """It is timed out, and the next cluster is asked."""
    assert told([], Losing(1_001_000), {**SIZES, "c": 2}) == lines("""
        1.001 a -> b: (3) room for 2?
        1.051 a -> b: (3) never mind
        1.051 a -> c: (6) room for 2?
        1.052 c -> a: (6) kept
        1.053 a -> c: (6) here is 1
        1.054 c -> a: (6) I have it
        6.053 c: 1 ran from 2.053
        10 a: 0 ran from 0
    """)


def test_the_answer_and_the_cancellation_are_lost() -> None:
    """b lets go by itself: its own gang finds both processors free."""
    assert told([gang_job(2, 2, 3.0, 1.02)], Losing(1_001_000, 1_050_000)) == lines("""
        1.001 a -> b: (2) room for 2?
        1.021 b -> a: (3) room for 2?
        1.022 a -> b: (3) no
        4.051 b: 2 ran from 1.051
        10 a: 0 ran from 0
        14 a: 1 ran from 10
    """)


def test_the_gang_is_lost_on_the_way() -> None:
    """It is sent again. Its reservation is over by then, and the tasks still take their second."""
    assert told([], Losing(1_002_000)) == lines("""
        1.001 a -> b: (2) room for 2?
        1.002 b -> a: (2) kept
        1.053 a -> b: (2) here is 1
        1.054 b -> a: (2) I have it
        6.053 b: 1 ran from 2.053
        10 a: 0 ran from 0
    """)


def test_the_confirmation_is_lost() -> None:
    """The gang comes twice and is taken once."""
    assert told([], Losing(1_003_000)) == lines("""
        1.001 a -> b: (2) room for 2?
        1.002 b -> a: (2) kept
        1.003 a -> b: (2) here is 1
        1.053 a -> b: (2) here is 1
        1.054 b -> a: (2) I have it
        6.003 b: 1 ran from 2.003
        10 a: 0 ran from 0
    """)


def test_a_priority_job_crosses_the_gang() -> None:
    """It takes a processor that is kept; the gang, and nobody else, follows it there."""
    other = [gang_job(2, 1, 3.0, 1.0015), gang_job(3, 2, 1.0, 1.5)]
    assert told(other) == lines("""
        1.001 a -> b: (2) room for 2?
        1.002 b -> a: (2) kept
        1.003 a -> b: (2) here is 1
        1.004 b -> a: (2) I have it
        1.501 b -> a: (3) room for 2?
        1.502 a -> b: (3) no
        4.0015 b: 2 ran from 1.0015
        8.0015 b: 1 ran from 4.0015
        9.0015 b: 3 ran from 8.0015
        10 a: 0 ran from 0
    """)


def test_the_gang_starts_at_home_while_it_is_waited_for() -> None:
    jobs = (gang_job(0, 2, 1.0015), BUSY[1])
    hearing, clusters = play(SIZES, {"a": jobs}, RULES)
    assert hearing.lines[2:] == lines("""
        1.001 a -> b: (2) room for 2?
        1.0015 a: 0 ran from 0
        1.002 b -> a: (2) kept
        1.003 a -> b: (2) never mind
        5.0015 a: 1 ran from 1.0015
    """)
    assert reservations(clusters["b"]) == 0


def test_two_ask_each_other() -> None:
    assert told([gang_job(2, 2, 10.0), gang_job(3, 2, 4.0, 1.0)]) == lines("""
        1.001 b -> a: (3) room for 2?
        1.001 a -> b: (2) room for 2?
        1.002 b -> a: (2) no
        1.002 a -> b: (3) no
        10 a: 0 ran from 0
        10 b: 2 ran from 0
        14 a: 1 ran from 10
        14 b: 3 ran from 10
    """)


@pytest.mark.parametrize(
    ("down_us", "start"),
    [
        # Before the gang comes, and until its tasks are there: nothing is kept for it any more.
        ((1_002_500, 1_600_000), "6.003 b: 1 ran from 2.003"),
        # Before it comes, and for longer.
        ((1_002_500, 3_000_000), "7 b: 1 ran from 3"),
        # While its tasks are under way.
        ((1_003_500, 3_000_000), "7 b: 1 ran from 3"),
    ],
)
def test_a_machine_of_a_reservation_goes_down(down_us: tuple[int, int], start: str) -> None:
    hearing, clusters = play(SIZES, {"a": BUSY}, RULES, down={"b": [MachineOutage(1, *down_us)]})
    assert "1.003 a -> b: (2) here is 1" in hearing.lines
    assert start in hearing.lines
    assert clusters["b"].figures()["migrations_external"] == 1
    assert not reservations(clusters["b"])


Streams = dict[str, list[Job]]


def random_streams(chance: random.Random) -> tuple[dict[str, int], Streams]:
    """Two or three clusters, most of the work in the first."""
    sizes = {name: chance.randint(2, 5) for name in "abc"[: chance.randint(2, 3)]}
    jobs: Streams = {name: [] for name in sizes}
    for number in range(chance.randint(5, 15)):
        name = chance.choice([*sizes, "a", "a"])
        size = chance.randint(1, sizes[name])
        submit_s = chance.choice((0.0, 0.5, 1.0, 2.0, 3.0, 6.0)) + chance.randint(0, 3) / 1000
        jobs[name].append(gang_job(number, size, chance.randint(1, 30) / 10, submit_s))
    return sizes, jobs


def random_rules(chance: random.Random):  # type: ignore[no-untyped-def]
    """Answers are waited for about as long as they take, so that both may come first."""
    return policy(
        migrates=chance.choice(("heads", "queued", "idle_heads")),
        local_migration_s=chance.choice((0, 0.3)),
        external_migration_s=chance.choice((0, 0.001, 0.5)),
        ask_every_s=chance.choice((0.05, 0.3, 1)),
        answer_within_s=chance.choice((0.001, 0.003, 0.02)),
        aging=chance.choice((0, 1, 64)),
        release=chance.choice(("task", "gang")),
    )


def random_link(chance: random.Random) -> LinkFaults:
    share = (0.0, 0.1, 0.5)
    return LinkFaults(
        chance.choice(share), chance.choice(share), chance.choice(share), 10 * LATENCY
    )


def random_outages(chance: random.Random, machines: int) -> list[MachineOutage]:
    down = []
    for machine in range(machines):
        starts = [int(chance.uniform(0, 8 * SECOND_US)) for _ in range(chance.randint(0, 2))]
        for one in disjoint([Outage(at, at + 10 ** chance.randint(0, 6)) for at in starts]):
            down.append(MachineOutage(machine, one.start_us, one.end_us))
    return down


def survive(seed: int, *, crashes: bool) -> int:
    """A random VO under random faults: every job ends once. How many gangs moved."""
    chance = random.Random(seed)
    sizes, jobs = random_streams(chance)
    faults = Faults(seed, random_link(chance), heal_us=10 * SECOND_US)
    outages = None
    if crashes:
        instants = [int(chance.uniform(0, 8 * SECOND_US)) for _ in range(chance.randint(1, 8))]
        down = [Outage(at, at + int(chance.uniform(1, SECOND_US))) for at in instants]
        outages = {name: disjoint(down[place :: len(sizes)]) for place, name in enumerate(sizes)}
    rules, mips = random_rules(chance), (1000.0, 750.0, 1500.0)
    machines = {name: random_outages(chance, size) for name, size in sizes.items()}
    hearing, clusters = play(sizes, jobs, rules, faults, mips, outages, machines)
    everyone = Counter(job.key for stream in jobs.values() for job in stream)
    assert (hearing.told if crashes else hearing.ended) == everyone
    assert not any(reservations(cluster) for cluster in clusters.values())
    return sum(int(cluster.figures()["migrations_external"]) for cluster in clusters.values())


@pytest.mark.parametrize("crashes", [False, True])
def test_no_gang_is_lost_or_doubled_and_no_reservation_is_left(crashes: bool) -> None:
    """Messages are lost, delayed and doubled, machines go down; dispatchers die half-way, too."""
    assert sum(survive(seed, crashes=crashes) for seed in range(40)) > 40
