"""What is written to a journal comes back as it was, and nothing else can be made of it."""

from __future__ import annotations

import json
import pickle
from array import array
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.config import wrapped
from grid.config.load import load_scenario
from grid.kernel import crash_injector
from grid.kernel.entity import random_stream
from grid.model.job import Job, JobState, Option, Requirement, RequirementKind
from grid.model.messages import SubmitJob
from grid.model.records import Violation
from grid.runtime.chaos import faults_of, subject_of
from grid.runtime.codec import OWN, decode, encode
from grid.runtime.sequential import run_sequential

SCENARIOS = sorted((Path(__file__).parents[1] / "runtime" / "fault_scenarios").glob("*.yaml"))

SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**130), 2**130) | st.floats(allow_nan=False)
    | st.text() | st.binary() | st.sampled_from(JobState)
    | st.lists(st.integers(-(2**63), 2**63 - 1)).map(lambda numbers: array("q", numbers))
)  # fmt: skip
KEYS = st.integers() | st.text() | st.tuples(st.text(), st.integers())
PLAIN = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.lists(inner).map(deque)
        | st.dictionaries(KEYS, inner)
        | st.sets(KEYS)
        | st.frozensets(KEYS)
        | st.builds(Violation, st.text(), st.integers(), inner)
    ),
)


@given(PLAIN)
def test_what_is_written_is_read(value: Any) -> None:
    back = decode(encode(value))
    assert back == value
    assert type(back) is type(value)


def test_a_job_is_read_as_it_was() -> None:
    speed = Requirement(RequirementKind.SPEED, (Option(1000.0, 0.3), Option(1e308, 1.0)), 0.5)
    job = Job(
        number=7,
        vo="north",
        user=1,
        submit_us=10,
        processors=2,
        estimate_us=30,
        run_us=40,
        requirements=(speed, speed),
    )
    back = decode(encode(SubmitJob(job)))
    assert back == SubmitJob(job)
    assert back.job.requirements[0] is back.job.requirements[1]
    assert type(back.job.requirements[0].kind) is RequirementKind


def test_two_names_for_one_thing_stay_two_names_for_one_thing() -> None:
    shared = [1]
    whole: dict[str, Any] = {"a": shared, "b": (shared, shared)}
    whole["itself"] = whole
    back = decode(encode(whole))
    back["a"].append(2)
    assert back["b"] == ([1, 2], [1, 2])
    assert back["itself"] is back


def test_a_random_stream_goes_on_where_it_was() -> None:
    stream = random_stream(3, "x")
    stream.random(10)
    state = decode(encode(stream.bit_generator.state))
    expected = stream.random(5).tolist()
    other = random_stream(4, "y")
    other.bit_generator.state = state
    assert other.random(5).tolist() == expected


@pytest.mark.parametrize(
    "tree",
    [
        ["object", "os:system", None],
        ["called", "builtins:eval"],
        ["named", "subprocess:Popen", [["list", ["true"]]]],
        ["nothing", 1],
        ["named", "grid.runtime.live:os.system", ["id"]],
        ["named", "grid.model.job:Job", []],
        ["called", "grid.policies.registry:entry_points"],
        ["called", "grid.model.job:JobKey.__class__"],
        ["called", "grid.policies.interface:np.fromfile"],
        ["object", "grid.kernel.entity:random_stream", {}],
        ["object", "grid.model.job:JobState", None],
        ["enum", "grid.model.job:Job", 1],
        ["object", "grid.protocol.workload_source:WorkloadSource", ["dict", [["__class__", 1]]]],
        ["number", "O", 1],
        ["array", "O", [1], "AAAAAAAAAAA="],
        ["number", "V8", 10**10],  # so many bytes
        ["number", "S1", 10**10],
        ["array", "i4,O", [1], "AAAAAAAAAAA="],
        [
            "object",
            "grid.model.plugins.source:Source",
            ["dict", [["path", "x"], ["text", "import os"]]],
        ],
        ["called", "grid.model.plugins.reference:resolve_reference"],
        ["again", 7],
        ["dict", [[["list", []], 1]]],
        ["tuple", 7],
        [[]],
        [],
    ],
)
def test_nothing_but_what_this_program_writes_is_read(tree: Any) -> None:
    with pytest.raises(ValueError):
        decode(json.dumps(tree))


@pytest.mark.parametrize(
    "value", [lambda: 0, (x for x in ()), object()], ids=["lambda", "generator", "object"]
)
def test_what_cannot_come_back_is_not_written(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        decode(encode([value]))


class _Plain:
    """Stands for `pickle` where the state of an entity is copied."""

    HIGHEST_PROTOCOL = pickle.HIGHEST_PROTOCOL

    @staticmethod
    def dumps(state: Any, _: int) -> str:
        return encode(state)

    @staticmethod
    def loads(text: str) -> Any:
        # Entities of virtual time time their plans.
        return decode(text, (*OWN, "grid.runtime.measurement"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_entities_go_on_from_a_state_that_was_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs with crashes are the same, whether the states in between are pickled or written."""
    subject = subject_of(load_scenario(path), str(path))
    monkeypatch.setattr(wrapped, "INPUTS_A_STATE", 5)
    grids = [faults_of(subject, seed)[0] for seed in range(20)]
    pickled = [run_sequential(grid) for grid in grids]
    monkeypatch.setattr(crash_injector, "pickle", _Plain)
    written = [run_sequential(grid) for grid in grids]
    for before, after in zip(pickled, written, strict=True):
        assert before.messages == after.messages
        for one, other in zip(before.chunks, after.chunks, strict=True):
            columns, others = one.columns(), other.columns()
            assert all((columns[name] == others[name]).all() for name in columns)
