"""What decisions of VOs went by and led to: figures of what entities counted (`VoFigure`)."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from grid.model.messages import BETWEEN_VOS, MESSAGES
from grid.model.records import VoFigure

BYTES_A_NUMBER = 8
_SUBJECTS: dict[str, list[str]] = {"jobs": [], "places": [], "information": ["Snapshot"]}
for _kind, _name in BETWEEN_VOS.items():
    _SUBJECTS[MESSAGES[_kind].subject].append(_name)
"""What messages between VOs are about. A snapshot is a message to each VO that hears it."""


def sums_of(counted: Sequence[VoFigure], vo: int | None) -> dict[str, float]:
    """What entities of VO number `vo` counted, or those of all, added up in one order."""
    sums: dict[str, float] = {}
    for one in sorted(counted):
        if vo is None or one.vo == vo:
            before = sums.get(one.figure, 0)
            most = one.figure == "herd.most"
            sums[one.figure] = max(before, one.value) if most else before + one.value
    return sums


def decision_figures(sums: Mapping[str, float], jobs: int) -> dict[str, int | float | None]:
    """The figures of `grid.results.definitions`, where users submitted so many jobs."""
    figures: dict[str, int | float | None] = {
        "information_age_mean": _mean(sums, "age.sum", "age.count"),
        "information_error_mean": _mean(sums, "error.sum", "error.count"),
        "misjudged_arrivals": int(sums.get("misjudged", 0)),
        "refusals": int(sums.get("refused", 0)),
        "not_admitted": int(sums.get("not_admitted", 0)),
        "herd_mean": _mean(sums, "herd.vos", "herd.words"),
        "herd_largest": int(sums.get("herd.most", 0)),
        "leases": int(sums.get("leases", 0)),
        "leases_lost": int(sums.get("leases_lost", 0)),
        "places_cancelled": int(sums.get("cancelled", 0)),
        "input_sent_mb": float(sums.get("transfers_mb", 0)),
        "input_wasted_mb": float(sums.get("transfers_wasted_mb", 0)),
    }
    messages = size = 0.0
    for subject, kinds in _SUBJECTS.items():
        of_it = sum(sums.get(f"messages.{kind}", 0) for kind in kinds)
        size += sum(_bytes_of(sums, kind) for kind in kinds)
        messages += of_it
        figures[f"messages_of_{subject}_a_job"] = of_it / jobs if jobs else None
    figures["messages_a_job"] = messages / jobs if jobs else None
    figures["message_bytes_a_job"] = size / jobs if jobs else None
    return figures


def _mean(sums: Mapping[str, float], total: str, count: str) -> float | None:
    return sums[total] / sums[count] if sums.get(count) else None


def _bytes_of(sums: Mapping[str, float], kind: str) -> float:
    fixed = fixed_numbers().get(kind, 0)
    numbers = sums.get(f"messages.{kind}", 0) * fixed + sums.get(f"cells.{kind}", 0)
    return BYTES_A_NUMBER * numbers


@cache
def fixed_numbers() -> dict[str, int]:
    """How many numbers and names each kind of message has, its tables and lists aside."""
    return {name: _numbers(kind) for kind, name in BETWEEN_VOS.items()}


def _numbers(hint: Any) -> int:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return max(map(_numbers, parts))
    if origin is tuple:
        return 0 if Ellipsis in parts else sum(map(_numbers, parts))
    kind = origin or hint
    if kind is type(None):
        return 0
    if isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "_fields")):
        return sum(map(_numbers, get_type_hints(kind).values()))
    # Tables are counted apart, by what is in them.
    return 0 if getattr(kind, "__module__", "").startswith("numpy") else 1
