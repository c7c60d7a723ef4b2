"""Seeds and settings of the command line: those of a sweep, or the axes of an experiment."""

from __future__ import annotations

from pathlib import Path

import pytest

import grid
from grid.cli.options import seeds_of
from grid.lab.experiment import expand, experiment_of
from grid.model.errors import InputError

TWO_VOS = Path(__file__).parents[2] / "scenarios" / "two-vos.yaml"


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("10", 10), ("0", None), ("7,", None), ("101-103", [101, 102, 103]), ("0-0", [0]),
     ("3,9-10,5", [3, 9, 10, 5]), ("3-1", None), ("1-10001", None), ("", None), ("-1", None),
     ("1-2-3", None), ("²", None), ("1e3", None), ("9" * 19 + "-" + "9" * 19, None)],
)  # fmt: skip
def test_seeds_from_the_command_line(text: str, seeds: int | list[int] | None) -> None:
    if seeds is None:
        with pytest.raises(InputError, match=r"--seeds: found .*, expected (the |seeds |1 to )"):
            seeds_of(text)
    else:
        assert seeds_of(text) == seeds


def test_settings_with_several_values_are_axes() -> None:
    settings = ["protocol.ttl=0,2", "vos.0.selection=binary,partial", "network={latency_s: 1}"]
    made = experiment_of(TWO_VOS, [*settings, "protocol.forwarding=queue"], 3)
    assert made.axes == {"protocol.ttl": (0, 2), "vos.0.selection": ("binary", "partial")}
    assert made.set == {"protocol.forwarding": "queue", "network": {"latency_s": 1}}
    cases, wrong = expand(made, None)
    assert (len(cases), wrong) == (12, [])
    assert {case.scenario.protocol.ttl for case in cases} == {0, 2}
    assert {case.seed for case in cases} == {1, 2, 3}
    with pytest.raises(grid.InputError, match=r"protocol\.ttl: found 0,1, and then 1,2"):
        experiment_of(TWO_VOS, ["protocol.ttl=0,1", "protocol.ttl=1,2"])
