"""What processes send each other comes to them as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grid.model.job import Job, Option, Requirement, RequirementKind
from grid.model.messages import ForwardJob, PredecessorEnded
from grid.runtime.batches import packed, plain_posts, posts_of, unpacked

REQUIREMENTS = st.lists(
    st.builds(
        Requirement,
        st.sampled_from(RequirementKind),
        st.lists(st.builds(Option, st.floats(0, 9), st.floats(0, 1)), max_size=3).map(tuple),
        st.floats(0.1, 2),
    ),
    max_size=3,
).map(tuple)


def job(requirements: tuple[Requirement, ...], **more: Any) -> Job:
    fields: dict[str, Any] = {"user": 3, "submit_us": 7, "processors": 2, "estimate_us": 10**12}
    return Job(**fields, **more, number=5, vo="a", run_us=9, requirements=requirements)


@given(REQUIREMENTS, st.floats(0, 9))
def test_a_job_is_the_same_on_the_other_side(
    requirements: tuple[Requirement, ...], input_mb: float
) -> None:
    sent = job(requirements, input_mb=input_mb)
    envelopes: list[Any] = [
        (12, 1, 2, 3, ForwardJob(sent, 0, 4, 1, 0, 0.5, wait=True)),
        (13, 1, 2, 4, PredecessorEnded(("a", 5))),
    ]
    came = unpacked(packed(envelopes))
    assert came == envelopes
    assert type(came[0][4]) is ForwardJob
    assert type(came[0][4].job.processors) is int
    assert [type(one.kind) for one in came[0][4].job.requirements] == [
        RequirementKind for _ in requirements
    ]


def test_posts_are_the_same_on_the_other_side() -> None:
    posts = [(3, 17, np.arange(6.0).reshape(2, 3)), (0, 18, np.array([[np.inf, np.nan]]))]
    came = list(posts_of(plain_posts(posts)))
    for sent, one in zip(posts, came, strict=True):
        assert one[:2] == sent[:2]
        np.testing.assert_array_equal(one[2], sent[2])
