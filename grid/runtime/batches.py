"""What processes of a windowed run send each other, as bytes.

Pickle, but for what it takes long for: a frozen dataclass with slots takes it a call of Python for
each object, and a job has a dozen of those in its requirements.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

import numpy as np

from grid.kernel.event import Envelope, Post
from grid.model.job import Job, Option, Requirement, RequirementKind, setters
from grid.runtime.safe_times import PlainPost

_NAMES = [field.name for field in fields(Job) if field.name != "requirements"]
_values = attrgetter(*_NAMES)
_KINDS = {kind.value: kind for kind in RequirementKind}


_new = object.__new__
_FILL_IN = setters(Job, _NAMES)
_fill_in_requirements, *_ = setters(Job, ["requirements"])
_fill_in_kind, _fill_in_options, _fill_in_weight = setters(
    Requirement, ["kind", "options", "weight"]
)
_fill_in_value, _fill_in_utility = setters(Option, ["value", "utility"])


def _job(values: Sequence[Any], requirements: Sequence[Any]) -> Job:
    job = _new(Job)
    for fill_in, value in zip(_FILL_IN, values, strict=True):
        fill_in(job, value)
    wanted = []
    for kind, weight, options in requirements:
        found = []
        for value, utility in options:
            option = _new(Option)
            _fill_in_value(option, value)
            _fill_in_utility(option, utility)
            found.append(option)
        one = _new(Requirement)
        _fill_in_kind(one, _KINDS[kind])
        _fill_in_options(one, tuple(found))
        _fill_in_weight(one, weight)
        wanted.append(one)
    _fill_in_requirements(job, tuple(wanted))
    return job


def _plain(job: Job) -> tuple[Any, ...]:
    wanted = [
        (int(one.kind), one.weight, [(option.value, option.utility) for option in one.options])
        for one in job.requirements
    ]
    return _job, (_values(job), wanted)


def packed(envelopes: Sequence[Envelope]) -> bytes:
    """Envelopes for one process."""
    file = io.BytesIO()
    pickler = pickle.Pickler(file, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = {Job: _plain}
    pickler.dump(envelopes)
    return file.getvalue()


def unpacked(batch: bytes) -> list[Envelope]:
    """What was packed."""
    envelopes: list[Envelope] = pickle.loads(batch)
    return envelopes


def plain_posts(posts: Sequence[Post]) -> tuple[PlainPost, ...]:
    """Posts of plain values only."""
    return tuple(
        [(publisher, time, rows.shape[1], rows.tobytes()) for publisher, time, rows in posts]
    )


def posts_of(plain: Sequence[PlainPost]) -> Iterator[Post]:
    """The posts again."""
    for publisher, time, columns, values in plain:
        yield publisher, time, np.frombuffer(values).reshape(-1, columns)
