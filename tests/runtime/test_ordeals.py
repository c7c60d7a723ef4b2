"""A few of the ordeals once each, which `scripts/ordeal` repeats; and what judges them."""

from __future__ import annotations

import pytest

from scripts import ordeals
from scripts.ordeals import ordeal


@pytest.mark.ray
@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("windowed", "interrupts", "exit 130"),
        # Actors send to each other directly, and may end before its absence is noticed.
        ("windowed", "control", ("exit 1, one line", "the same digest")),
        pytest.param("live", "control", "exit 1, one line", marks=pytest.mark.thorough),
        pytest.param("live", "term-group", "exit 130", marks=pytest.mark.thorough),
        pytest.param("windowed", "stopped-actor", "the same digest", marks=pytest.mark.thorough),
    ],
)
def test_a_run_survives_or_ends_in_one_line(
    kind: str, name: str, expected: str | tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordeals, "STOP_SECONDS", 3.0)
    # A run may have ended, and well, before it was put to the test.
    for number in range(5):
        verdict = ordeal(kind, name, number)
        if verdict.startswith("WRONG") or verdict.startswith(expected):
            break
    assert verdict.startswith(expected)
