"""The stall detector on hand-made reports."""

from __future__ import annotations

from grid.kernel.progress import LEAST_MESSAGES, ProcessProgress, StallDetector

SPAN_US = 1000


def report(
    changes: int, messages: int, *, is_due: bool = False, kinds: dict[str, int] | None = None
) -> ProcessProgress:
    return ProcessProgress(changes, is_due, (("b/scheduler", "a", 7),), messages, kinds or {})


def test_messages_without_a_change_for_a_span_are_a_stall() -> None:
    detector = StallDetector(SPAN_US)
    assert detector.check(0, [report(3, 10, kinds={"Bid": 1, "Probe": 4})]) is None
    assert not detector.is_due(SPAN_US - 1)
    later = report(3, 10 + LEAST_MESSAGES, kinds={"Bid": 900, "Probe": 4})
    line = detector.check(SPAN_US, [later])
    assert line is not None
    assert "job 7 of a in b" in line
    assert line.endswith(": Bid")


def test_a_change_in_any_process_or_a_running_job_is_progress() -> None:
    detector = StallDetector(SPAN_US)
    busy = 10 * LEAST_MESSAGES
    assert detector.check(0, [report(3, 0), report(1, 0)]) is None
    assert detector.check(SPAN_US, [report(3, busy), report(2, busy)]) is None
    assert detector.check(2 * SPAN_US, [report(3, 2 * busy, is_due=True), report(2, busy)]) is None
    assert detector.check(2 * SPAN_US + 1, [report(3, 9 * busy), report(2, busy)]) is None
    assert detector.check(4 * SPAN_US, [report(3, 9 * busy), report(2, busy)]) is not None


def test_few_messages_are_a_jump_of_the_clock() -> None:
    detector = StallDetector(SPAN_US)
    assert detector.check(0, [report(3, 0)]) is None
    assert detector.check(10 * SPAN_US, [report(3, LEAST_MESSAGES - 1)]) is None
    assert not StallDetector(None).is_due(10**15)
