"""Times as texts, for a file of which they would else be the half of what it takes to write."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Ints
from grid.model.compiled import kernel

PLACES = 6
_LONGEST = 21
"""Characters of a text: a sign, 13 digits, a point and six more."""


@kernel()
def decimal_texts(times_us: Ints) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Microseconds as seconds with six decimal places, one text after the other in ASCII.

    Text i is at offsets[i] to before offsets[i + 1]; there may be room behind the last.
    """
    count = len(times_us)
    offsets = np.zeros(count + 1, np.int32)
    texts = np.empty(count * _LONGEST, np.uint8)
    digits = np.empty(_LONGEST, np.uint8)
    end = 0
    for i in range(count):
        time_us = times_us[i]
        if time_us < 0:
            texts[end] = 45
            end += 1
        # Unsigned, for division by a number that is known is a multiplication then.
        left = np.uint64(-time_us if time_us < 0 else time_us)
        used = 0
        while used <= PLACES or left > np.uint64(0):
            if used == PLACES:
                digits[used] = 46
                used += 1
            rest = left // np.uint64(10)
            digits[used] = np.uint8(np.uint64(48) + left - rest * np.uint64(10))
            left = rest
            used += 1
        for place in range(used):
            texts[end + place] = digits[used - 1 - place]
        end += used
        offsets[i + 1] = end
    return offsets, texts
