"""Runs on Ray survive process faults or end with one line; see `scripts/inject-faults`."""

from __future__ import annotations

import pytest

from scripts import fault_injection


@pytest.mark.ray
@pytest.mark.parametrize(
    ("kind", "fault", "expected"),
    [
        ("windowed", "interrupts", "exit 130"),
        pytest.param(
            "windowed",
            "control",
            # Actors send to each other directly, and may end before its absence is noticed.
            ("exit 1, one line", "the same digest"),
            marks=pytest.mark.thorough,
        ),
        pytest.param("live", "control", "exit 1, one line", marks=pytest.mark.thorough),
        pytest.param("live", "term-group", "exit 130", marks=pytest.mark.thorough),
        pytest.param("windowed", "stopped-actor", "the same digest", marks=pytest.mark.thorough),
    ],
)
def test_a_run_survives_or_ends_in_one_line(
    kind: str, fault: str, expected: str | tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fault_injection, "STOP_SECONDS", 3.0)
    # A run may have ended before the fault is injected.
    for number in range(5):
        outcome = fault_injection.inject(kind, fault, number)
        if "core_worker.cc" in outcome:  # Its raylet ended first, and Ray ended the process.
            continue
        if outcome.startswith("WRONG") or outcome.startswith(expected):
            break
    assert outcome.startswith(expected)
