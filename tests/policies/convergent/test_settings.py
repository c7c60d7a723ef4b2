"""Settings of the policies: what they do, and what is said of wrong ones."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import pytest

from grid.policies.interface import Plan
from grid.policies.registry import make_policy
from tests.policies.convergent.clusters import random_view, view_of, waiting

CS2 = ("cs2", "cs2_cs", "cs2_td", "cs2_cs_td")
CS2007 = ("cs_i_p", "cs_i_np", "cs_ni_p", "cs_ni_np")


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("fcfs", {"x": 1}, "x: found an unknown setting"),
        ("flexible", {"age_factor": float("nan")}, "age_factor: found nan"),
        ("flexible", {"age_factor": 1e308}, r"age_factor: found 1e\+308, expected at most"),
        ("flexible", {"priority": "cs2", "k": 2.0}, "`k` only with the priority eg"),
        ("flexible", {"priority": "cs2", "f1": "words"}, "`f1` only with the priority cs2007"),
        ("flexible", {"row": "mean"}, "`row` only with the priorities cs2007 and cs2"),
        ("cs2", {"weights": {"speed": 1}}, "found 'speed', expected a heuristic: deadline"),
        ("cs2", {"weights": {"wait": "8"}}, "weights.wait: found '8', expected a valid number"),
        ("cs2", {"weights": 3}, "weights: found 3, expected a mapping"),
        ("cs2", {"period_s": 10}, "period_s: found an unknown setting"),
        ("cs_i_p", {"bandwidths_mbps": [0]}, "bandwidths_mbps.0: found 0, expected at least"),
        ("tabu", {"iterations": 1.5}, "iterations: found 1.5"),
        ("eg_edf", {"iterations": 5}, "iterations: found an unknown setting"),
        ("eg_edf", {"repair": "nothing"}, "repair: found 'nothing', expected 'moves' or 'times'"),
        ("esay", {}, "found 'esay', expected a policy .did you mean easy"),
    ],
)
def test_wrong_settings(name: str, settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_policy(name, settings)


@pytest.mark.parametrize("name", CS2)
def test_time_driven_variants_wake_at_every_period(name: str) -> None:
    view = view_of(12, [waiting()], [100.0])
    plan = make_policy(name, {}).plan(view, view.now)
    if name.endswith("td"):
        assert plan == Plan(wake_us=20_000_000, made=False)
    else:
        assert plan == Plan(start=[(0, 0)])


@pytest.mark.parametrize("name", [*CS2, *CS2007])
def test_a_copy_of_a_policy_makes_the_same_plans(name: str) -> None:
    """States of clusters are copied and sent; what stands in buffers is not part of them."""
    policy = make_policy(name, {})
    first = random_view(1, one_a_machine=True)
    policy.plan(first, first.now)
    copies = [copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))]
    view = random_view(2, one_a_machine=True)
    plans = [one.plan(view, view.now) for one in (policy, *copies)]
    assert plans[0] == plans[1] == plans[2]
    assert len(pickle.dumps(policy)) < 2000


def test_making_a_policy_imports_no_compiled_code() -> None:
    """A scenario with settings is checked by making its policies."""
    code = (
        "import sys; from grid.policies.registry import make_policy;"
        "make_policy('cs2', {'weights': {'wait': 3}}); make_policy('cs_i_p', {'matching': 'mis'});"
        "print(sorted({'numba', 'scipy'} & set(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"
