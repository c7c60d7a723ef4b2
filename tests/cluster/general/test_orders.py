"""Jobs in an order, as arrays: what a sorted list of pairs gives."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from grid.cluster.general.orders import FIRST_ROOM, MANY, InOrder

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 3 * FIRST_ROOM)),
        st.tuples(st.just("remove"), st.integers(0, 40)),
        st.tuples(st.just("remove many"), st.integers(1, MANY + 20)),
        st.tuples(st.just("copy"), st.just(0)),
    ),
    max_size=120,
)


@given(STEPS, st.integers(0, 2 * FIRST_ROOM))
def test_as_a_sorted_list(steps: list[tuple[str, int]], at_first: int) -> None:
    order = InOrder()
    expected: dict[int, int] = {}

    def add(key: int) -> None:
        if key not in expected:
            expected[key] = key * 7
            order.add(key, key * 7)

    for key in range(at_first):
        add(key)
    for what, number in steps:
        here = sorted(expected)
        if what == "add":
            add(number)
        elif what == "remove" and here:
            key = here[number % len(here)]
            del expected[key]
            order.remove(key)
        elif what == "remove many":
            # Every other one, from the last: they need not leave in their order.
            leaving = here[-1 : -2 * number : -2]
            for key in leaving:
                del expected[key]
            order.remove_all(leaving)
        elif what == "copy":
            order = pickle.loads(pickle.dumps(order))
        assert order.keys == sorted(expected)
        assert order.slots.tolist() == [expected[key] for key in sorted(expected)]
