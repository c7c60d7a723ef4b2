"""The order of runs: all of them once, and no two at once that would compile the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grid.lab.agenda import Agenda, Kind

kinds_of_runs = st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abc")), max_size=30)


def test_two_workers_compile_different_experiments() -> None:
    """GM's first run compiles for long; meanwhile all of EG is done, first kinds first."""
    gm, eg = (0, "afcfs"), (1, "easy")
    kinds = [gm, eg, (0, "lgfs"), (1, "tabu"), gm, eg]
    agenda = Agenda(kinds)
    assert agenda.next() == 0
    order = []
    while (place := agenda.next()) not in (2, 4):
        assert place is not None
        order.append(place)
        agenda.ended(place)
    assert order == [1, 3, 5]
    # Nothing else is left, so the other worker does not wait for the first to end.
    assert place == 2


def test_runs_go_ahead_once_every_kind_has_run() -> None:
    agenda = Agenda([(0, "a"), (0, "a"), (0, "a")])
    assert agenda.next() == 0
    assert agenda.is_careful
    agenda.ended(0)
    assert not agenda.is_careful


@given(kinds_of_runs, st.integers(1, 4), st.randoms(use_true_random=False))
def test_every_run_is_begun_once(kinds: list[Kind], workers: int, chance: object) -> None:
    agenda = Agenda(kinds)
    running: list[int] = []
    seen: list[int] = []
    while True:
        while len(running) < workers and (place := agenda.next()) is not None:
            running.append(place)
            seen.append(place)
        if not running:
            break
        ended = running.pop(chance.randrange(len(running)))  # type: ignore[attr-defined]
        agenda.ended(ended)
    assert sorted(seen) == list(range(len(kinds)))
