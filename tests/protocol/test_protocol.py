"""Golden transcripts of the protocol: every message of a small grid, in order, with its time.

Messages take 1 ms inside a VO and 50 ms between VOs; jobs run for ten seconds.
"""

from __future__ import annotations

from typing import Any

from tests.config.grids import grid_of, transcript, vo

SILENT = {
    "snapshot_period_s": None,
    "snapshot_load_limit": None,
    "snapshot_jobs_limit": None,
}
"""No status snapshots: a VO takes others for idle."""


LINUX_OR_MACOS = [
    {
        "kind": "operating_system",
        "options": [{"value": "linux", "utility": 1.0}, {"value": "macos", "utility": 0.5}],
    }
]


def job(submit_s: float, **more: Any) -> dict[str, Any]:
    return {"submit_s": submit_s, "run_s": 10, **more}


def two_clusters() -> dict[str, Any]:
    return {
        "name": "a",
        "clusters": [
            {"name": "x", "cpus": 2, "resource": "cluster"},
            {"name": "y", "cpus": 4, "resource": "cluster"},
        ],
        "workload": {"jobs": [job(1, cpus=2), job(2)]},
    }


def lines(text: str) -> list[str]:
    return [
        f"{time:>9} {rest}"
        for time, _, rest in (line.strip().partition(" ") for line in text.strip().splitlines())
    ]


def test_a_job_is_accepted_by_its_own_vo() -> None:
    """PU Alg. 2: the best resource is local; Alg. 1: the table hears of start and end."""
    grid = grid_of(vos=[vo("a", 1, [job(1)]), vo("b", 1)])
    assert transcript(grid, directory=True) == lines("""
    1001000 a/source -> a/scheduler: submit 1
    1002000 a/scheduler -> a/information: what is free for 1?
    1003000 a/information -> a/scheduler: for 1: assigned 0/1, 0/1
    1004000 a/scheduler -> a/resources: assign 1 to 0
    1005000 a/resources -> a/cluster/c: run 1 on cluster 0 machine 0
    1005000 a/resources -> a/information: assigned [1.0]
    1005000 a/resources -> a/scheduler: assigned 1
    11006000 a/cluster/c -> a/resources: 1 ended, state 3
    11007000 a/resources -> a/information: assigned [0.0]
    11007000 a/resources -> a/scheduler: 1 ended, state 3
    """)


def test_a_job_is_forwarded_once() -> None:
    """Its own VO is busy: the best free resource is another VO's, and it runs there."""
    grid = grid_of(protocol=SILENT, vos=[vo("a", 1, [job(1), job(2)]), vo("b", 1)])
    assert transcript(grid) == lines("""
    1001000 a/source -> a/scheduler: submit 1
    1002000 a/scheduler -> a/information: what is free for 1?
    1003000 a/information -> a/scheduler: for 1: assigned 0/1, 0/1
    1004000 a/scheduler -> a/resources: assign 1 to 0
    1005000 a/resources -> a/cluster/c: run 1 on cluster 0 machine 0
    1005000 a/resources -> a/scheduler: assigned 1
    2001000 a/source -> a/scheduler: submit 2
    2002000 a/scheduler -> a/information: what is free for 2?
    2003000 a/information -> a/scheduler: for 2: assigned 1/1, 0/1
    2053000 a/scheduler -> b/scheduler: forward 2 to resource 0, ttl 3
    2054000 b/scheduler -> b/resources: assign 2 to 0
    2055000 b/resources -> b/cluster/c: run 2 on cluster 0 machine 0
    2055000 b/resources -> b/scheduler: assigned 2
    11006000 a/cluster/c -> a/resources: 1 ended, state 3
    11007000 a/resources -> a/scheduler: 1 ended, state 3
    12056000 b/cluster/c -> b/resources: 2 ended, state 3
    12057000 b/resources -> b/scheduler: 2 ended, state 3
    12107000 b/scheduler -> a/scheduler: 2 done here, hops 1
    """)


def test_vos_know_each_other_from_the_beginning() -> None:
    """A job that is too wide for its VO comes at once, before any message between VOs."""
    grid = grid_of(protocol=SILENT, vos=[vo("a", 1, [job(0, cpus=2)]), vo("b", 2)])
    assert transcript(grid, directory=True)[:6] == lines("""
    1000 a/source -> a/scheduler: submit 1
    2000 a/scheduler -> a/information: what is free for 1?
    3000 a/information -> a/scheduler: for 1: assigned 0/1, 0/2
    53000 a/scheduler -> b/scheduler: forward 1 to resource 0, ttl 3
    54000 b/scheduler -> b/resources: assign 1 to 0
    55000 b/resources -> b/cluster/c: run 1 on cluster 0 machine 0
    """)


def test_stale_information_is_refused_and_the_job_goes_on() -> None:
    """b, the best for the job, has another since a last heard of it; b finds c, the next best."""
    grid = grid_of(
        protocol=SILENT,
        vos=[
            vo("a", 1, [job(1), job(2, requirements=LINUX_OR_MACOS)], system="solaris"),
            vo("b", 1, [job(1)], system="linux"),
            vo("c", 1, system="macos"),
        ],
    )
    assert transcript(grid) == lines("""
    1001000 a/source -> a/scheduler: submit 1
    1001000 b/source -> b/scheduler: submit 1
    1002000 a/scheduler -> a/information: what is free for 1?
    1002000 b/scheduler -> b/information: what is free for 1?
    1003000 a/information -> a/scheduler: for 1: assigned 0/1, 0/1, 0/1
    1003000 b/information -> b/scheduler: for 1: assigned 0/1, 0/1, 0/1
    1004000 a/scheduler -> a/resources: assign 1 to 0
    1004000 b/scheduler -> b/resources: assign 1 to 0
    1005000 a/resources -> a/cluster/c: run 1 on cluster 0 machine 0
    1005000 a/resources -> a/scheduler: assigned 1
    1005000 b/resources -> b/cluster/c: run 1 on cluster 0 machine 0
    1005000 b/resources -> b/scheduler: assigned 1
    2001000 a/source -> a/scheduler: submit 2
    2002000 a/scheduler -> a/information: what is free for 2?
    2003000 a/information -> a/scheduler: for 2: assigned 1/1, 0/1, 0/1
    2053000 a/scheduler -> b/scheduler: forward 2 to resource 0, ttl 3
    2054000 b/scheduler -> b/resources: assign 2 to 0
    2055000 b/resources -> b/scheduler: refused 2
    2056000 b/scheduler -> b/information: what is free for 2?
    2057000 b/information -> b/scheduler: for 2: assigned 0/1, 1/1, 0/1
    2107000 b/scheduler -> c/scheduler: forward 2 to resource 0, ttl 2
    2108000 c/scheduler -> c/resources: assign 2 to 0
    2109000 c/resources -> c/cluster/c: run 2 on cluster 0 machine 0
    2109000 c/resources -> c/scheduler: assigned 2
    11006000 a/cluster/c -> a/resources: 1 ended, state 3
    11006000 b/cluster/c -> b/resources: 1 ended, state 3
    11007000 a/resources -> a/scheduler: 1 ended, state 3
    11007000 b/resources -> b/scheduler: 1 ended, state 3
    12110000 c/cluster/c -> c/resources: 2 ended, state 3
    12111000 c/resources -> c/scheduler: 2 ended, state 3
    12161000 c/scheduler -> a/scheduler: 2 done here, hops 2
    """)


def test_a_job_whose_ttl_is_spent_fails() -> None:
    """With a TTL of one the job may be handed on once; the VO that it reaches is busy."""
    grid = grid_of(
        protocol={**SILENT, "ttl": 1, "forwarding": "forward"},
        vos=[vo("a", 1, [job(1), job(2)]), vo("b", 1, [job(1)])],
    )
    assert transcript(grid) == lines("""
    1001000 a/source -> a/scheduler: submit 1
    1001000 b/source -> b/scheduler: submit 1
    1002000 a/scheduler -> a/information: what is free for 1?
    1002000 b/scheduler -> b/information: what is free for 1?
    1003000 a/information -> a/scheduler: for 1: assigned 0/1, 0/1
    1003000 b/information -> b/scheduler: for 1: assigned 0/1, 0/1
    1004000 a/scheduler -> a/resources: assign 1 to 0
    1004000 b/scheduler -> b/resources: assign 1 to 0
    1005000 a/resources -> a/cluster/c: run 1 on cluster 0 machine 0
    1005000 a/resources -> a/scheduler: assigned 1
    1005000 b/resources -> b/cluster/c: run 1 on cluster 0 machine 0
    1005000 b/resources -> b/scheduler: assigned 1
    2001000 a/source -> a/scheduler: submit 2
    2002000 a/scheduler -> a/information: what is free for 2?
    2003000 a/information -> a/scheduler: for 2: assigned 1/1, 0/1
    2053000 a/scheduler -> b/scheduler: forward 2 to resource 0, ttl 1
    2054000 b/scheduler -> b/resources: assign 2 to 0
    2055000 b/resources -> b/scheduler: refused 2
    2056000 b/scheduler -> b/information: what is free for 2?
    2057000 b/information -> b/scheduler: for 2: assigned 0/1, 1/1
    2107000 b/scheduler -> a/scheduler: 2 failed, state 4, hops 1
    11006000 a/cluster/c -> a/resources: 1 ended, state 3
    11006000 b/cluster/c -> b/resources: 1 ended, state 3
    11007000 a/resources -> a/scheduler: 1 ended, state 3
    11007000 b/resources -> b/scheduler: 1 ended, state 3
    """)


def test_a_full_grid_queues_the_job_at_the_best_resource() -> None:
    """`forwarding: queue`, nothing is free in the only VO."""
    grid = grid_of(vos=[vo("a", 1, [job(1), job(2)])])
    assert transcript(grid) == lines("""
    1001000 a/source -> a/scheduler: submit 1
    1002000 a/scheduler -> a/information: what is free for 1?
    1003000 a/information -> a/scheduler: for 1: assigned 0/1
    1004000 a/scheduler -> a/resources: assign 1 to 0
    1005000 a/resources -> a/cluster/c: run 1 on cluster 0 machine 0
    1005000 a/resources -> a/scheduler: assigned 1
    2001000 a/source -> a/scheduler: submit 2
    2002000 a/scheduler -> a/information: what is free for 2?
    2003000 a/information -> a/scheduler: for 2: assigned 1/1
    2004000 a/scheduler -> a/resources: assign 2 to 0, queue it
    2005000 a/resources -> a/cluster/c: run 2 on cluster 0 machine 0
    2005000 a/resources -> a/scheduler: assigned 2
    11006000 a/cluster/c -> a/resources: 1 ended, state 3
    11007000 a/resources -> a/scheduler: 1 ended, state 3
    21006000 a/cluster/c -> a/resources: 2 ended, state 3
    21007000 a/resources -> a/scheduler: 2 ended, state 3
    """)


def test_a_full_grid_rejects_the_job() -> None:
    """`forwarding: reject`, nothing is free in the only VO."""
    grid = grid_of(protocol={"forwarding": "reject"}, vos=[vo("a", 1, [job(1), job(2)])])
    assert transcript(grid) == lines("""
    1001000 a/source -> a/scheduler: submit 1
    1002000 a/scheduler -> a/information: what is free for 1?
    1003000 a/information -> a/scheduler: for 1: assigned 0/1
    1004000 a/scheduler -> a/resources: assign 1 to 0
    1005000 a/resources -> a/cluster/c: run 1 on cluster 0 machine 0
    1005000 a/resources -> a/scheduler: assigned 1
    2001000 a/source -> a/scheduler: submit 2
    2002000 a/scheduler -> a/information: what is free for 2?
    2003000 a/information -> a/scheduler: for 2: assigned 1/1
    11006000 a/cluster/c -> a/resources: 1 ended, state 3
    11007000 a/resources -> a/scheduler: 1 ended, state 3
    """)


def test_the_grid_dispatcher_asks_before_it_sends() -> None:
    """GM Eq. 2: the job goes to the less loaded cluster; the first one is decided by lot."""
    grid = grid_of(vos=[two_clusters()])
    assert transcript(grid) == lines("""
    1001000 a/source -> a/scheduler: submit 1
    1002000 a/scheduler -> a/information: what is free for 1?
    1003000 a/information -> a/scheduler: for 1: assigned 0/2, 0/4
    1004000 a/scheduler -> a/resources: assign 1 to 0
    1005000 a/resources -> a/dispatcher: run 1 on cluster 0 machine -1
    1005000 a/resources -> a/scheduler: assigned 1
    1006000 a/dispatcher -> a/cluster/x: load, for 1?
    1006000 a/dispatcher -> a/cluster/y: load, for 1?
    1007000 a/cluster/x -> a/dispatcher: load 0
    1007000 a/cluster/y -> a/dispatcher: load 0
    1008000 a/dispatcher -> a/cluster/y: run 1 on cluster 1 machine -1
    1008000 a/dispatcher -> a/resources: 1 went to cluster 1
    2001000 a/source -> a/scheduler: submit 2
    2002000 a/scheduler -> a/information: what is free for 2?
    2003000 a/information -> a/scheduler: for 2: assigned 0/2, 2/4
    2004000 a/scheduler -> a/resources: assign 2 to 0
    2005000 a/resources -> a/dispatcher: run 2 on cluster 0 machine -1
    2005000 a/resources -> a/scheduler: assigned 2
    2006000 a/dispatcher -> a/cluster/x: load, for 2?
    2006000 a/dispatcher -> a/cluster/y: load, for 2?
    2007000 a/cluster/x -> a/dispatcher: load 0
    2007000 a/cluster/y -> a/dispatcher: load 0.5
    2008000 a/dispatcher -> a/cluster/x: run 2 on cluster 0 machine -1
    2008000 a/dispatcher -> a/resources: 2 went to cluster 0
    11009000 a/cluster/y -> a/resources: 1 ended, state 3
    11010000 a/resources -> a/scheduler: 1 ended, state 3
    12009000 a/cluster/x -> a/resources: 2 ended, state 3
    12010000 a/resources -> a/scheduler: 2 ended, state 3
    """)


def test_the_grid_dispatcher_asks_no_cluster_whose_machines_are_chosen() -> None:
    """The table of resources says on which machine each of its jobs is."""
    with_machines = two_clusters()
    with_machines["clusters"].insert(0, {"name": "w", "machines": [{"cpus": 1}, {"cpus": 1}]})
    with_machines["workload"] = {"jobs": [job(1, cpus=2)]}
    assert transcript(grid_of(vos=[with_machines])) == lines("""
    1001000 a/source -> a/scheduler: submit 1
    1002000 a/scheduler -> a/information: what is free for 1?
    1003000 a/information -> a/scheduler: for 1: assigned 0/1, 0/1, 0/2, 0/4
    1004000 a/scheduler -> a/resources: assign 1 to 2
    1005000 a/resources -> a/dispatcher: run 1 on cluster 1 machine -1
    1005000 a/resources -> a/scheduler: assigned 1
    1006000 a/dispatcher -> a/cluster/x: load, for 1?
    1006000 a/dispatcher -> a/cluster/y: load, for 1?
    1007000 a/cluster/x -> a/dispatcher: load 0
    1007000 a/cluster/y -> a/dispatcher: load 0
    1008000 a/dispatcher -> a/cluster/y: run 1 on cluster 2 machine -1
    1008000 a/dispatcher -> a/resources: 1 went to cluster 2
    11009000 a/cluster/y -> a/resources: 1 ended, state 3
    11010000 a/resources -> a/scheduler: 1 ended, state 3
    """)
