"""What holds in every grid: jobs are conserved, a TTL only falls, forwarding ends."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from grid.config.wrapped import entities_of
from grid.kernel.entity import Context
from grid.kernel.process import LogicalProcess
from grid.model.job import FINAL_STATES
from grid.model.job_results import columns_of, in_order
from grid.model.messages import ForwardJob
from grid.model.time import NEVER
from grid.protocol.registry import FORWARDING
from grid.results.checkers import check
from tests.config.grids import grid_of, vo

JOBS = st.lists(
    st.fixed_dictionaries(
        {
            "submit_s": st.integers(0, 20),
            "run_s": st.integers(1, 15),
            "cpus": st.integers(1, 4),
        }
    ),
    max_size=12,
)


class Watched:
    """A Local Scheduler that keeps the forwards it received."""

    def __init__(self, entity: Any, forwards: list[ForwardJob]) -> None:
        self.entity, self.forwards = entity, forwards

    def start(self, ctx: Context) -> None:
        self.entity.start(ctx)

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        if isinstance(message, ForwardJob):
            self.forwards.append(message)
        self.entity.handle(ctx, sender, message)

    def timeout(self, ctx: Context, timer: str) -> None:
        self.entity.timeout(ctx, timer)


@settings(max_examples=60, deadline=None)
@given(
    jobs=st.lists(JOBS, min_size=2, max_size=4),
    cpus=st.lists(st.integers(1, 4), min_size=4, max_size=4),
    ttl=st.integers(0, 4),
    forwarding=st.sampled_from(sorted(FORWARDING.own)),
    avoid_loops=st.booleans(),
    detail=st.sampled_from(["full", "summary"]),
    period_s=st.one_of(st.none(), st.integers(1, 10)),
    policy=st.sampled_from(["fcfs", "easy"]),
    resource=st.sampled_from(["machine", "cluster"]),
)
def test_every_job_ends_once_and_its_ttl_only_falls(
    jobs: list[list[dict[str, Any]]],
    cpus: list[int],
    ttl: int,
    forwarding: str,
    avoid_loops: bool,
    detail: str,
    period_s: int | None,
    policy: str,
    resource: str,
) -> None:
    grid = grid_of(
        protocol={
            "ttl": ttl,
            "forwarding": forwarding,
            "avoid_loops": avoid_loops,
            "snapshot_detail": detail,
            "snapshot_period_s": period_s,
        },
        vos=[
            vo(
                f"v{number}",
                size,
                mine,
                clusters=[
                    {
                        "name": f"c{cluster}",
                        "policy": policy,
                        "resource": resource,
                        "machines": [{"cpus": size, "count": 2}],
                    }
                    for cluster in range(1 + number % 2)
                ],
            )
            for number, (size, mine) in enumerate(zip(cpus, jobs, strict=False))
        ],
    )
    forwards: list[ForwardJob] = []
    entities = {
        name: Watched(entity, forwards) for name, entity in entities_of(grid, grid.names).items()
    }
    process = LogicalProcess(entities, grid.network, grid.seed, grid.first_rows())
    process.start()
    process.advance(NEVER)
    results = in_order([columns_of(process.records)])
    assert check(results, grid.directory, sum(map(len, jobs))) == []
    assert all(state in FINAL_STATES for state in results.outcome.state)
    assert results.placement.hops.max(initial=0) <= ttl
    left: dict[Any, int] = {}
    for forward in forwards:
        assert len(set(forward.barred)) == len(forward.barred)
        assert not avoid_loops or len(forward.barred) == forward.hops
        before = left.get(forward.job.key, ttl + 1)
        assert 0 < forward.ttl < before
        assert forward.hops == ttl + 1 - forward.ttl
        left[forward.job.key] = forward.ttl
