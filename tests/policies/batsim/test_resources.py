"""Sets of resources, as text and as bit masks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.policies.batsim.messages import lowest, mask_of, text_of


@given(st.sets(st.integers(0, 199), min_size=1))
def test_a_mask_is_written_as_it_is_read(numbers: set[int]) -> None:
    mask = sum(1 << number for number in numbers)
    assert mask_of(text_of(mask), 200) == mask
    assert mask_of(" ".join(map(str, sorted(numbers))), 200) == mask
    assert lowest(mask, len(numbers)) == mask
    assert lowest(mask, 1) == 1 << min(numbers)


def test_intervals() -> None:
    assert text_of(0b1011_0111) == "0-2 4-5 7"
    assert mask_of("0-2,4-5,7", 8) == mask_of("0-2 4-5 7", 8) == 0b1011_0111
    assert text_of(0) == ""


@pytest.mark.parametrize("text", ["", "0-", "3-1", "-1", "8", "a", "0  1", "1 2 ", "0-99999999999"])
def test_what_is_no_set_of_resources(text: str) -> None:
    with pytest.raises(ValueError, match="resources"):
        mask_of(text, 8)
