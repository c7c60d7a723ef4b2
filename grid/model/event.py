"""What a run tells of itself, if it is asked to: every message handled and every decision."""

from __future__ import annotations

from typing import NamedTuple

from grid.model.time import Time

MESSAGE, DECISION = "message", "decision"


class Event(NamedTuple):
    """One message that an entity handled, or one decision that it took.

    The fields are the columns of events.parquet, which `grid.results.definitions` defines;
    None where one has nothing to say.
    """

    time_us: Time
    entity: str
    kind: str
    event: str
    peer: str | None = None
    vo: str | None = None
    job: int | None = None
    call: str | None = None
    to_vo: str | None = None
    resource: int | None = None
    cluster: str | None = None
    machine: int | None = None
    processors: int | None = None
    ram_mb: float | None = None
    licenses: int | None = None
    estimate_us: Time | None = None
    ttl: int | None = None
    hops: int | None = None
    utility: float | None = None
    waits: bool | None = None
    free_cpus: float | None = None
    age_us: Time | None = None
    load: float | None = None
    state: str | None = None
    preemptions: int | None = None
    restarts: int | None = None


def word_of(message: type) -> str:
    """What the events of a class of messages are called: `ForwardJob` is `forward_job`."""
    word = _WORDS.get(message)
    if word is None:
        letters = (f"_{one.lower()}" if one.isupper() else one for one in message.__name__)
        word = _WORDS[message] = "".join(letters).lstrip("_")
    return word


_WORDS: dict[type, str] = {}
