"""What a logical process has for others."""

from __future__ import annotations

from dataclasses import dataclass, field

from grid.kernel.board import Post
from grid.kernel.event import Envelope


@dataclass(slots=True)
class Outbox:
    """Envelopes by position of the receiver, and posts for all."""

    envelopes: list[Envelope] = field(default_factory=list)
    posts: list[Post] = field(default_factory=list)
