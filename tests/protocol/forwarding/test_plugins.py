"""Third-party forwarding and admission policies that call for bids, pull work and refuse jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import grid
from grid.model.errors import InputError, RunFailed

POLICIES = """
from typing import Annotated

from pydantic import Field

from grid.protocol.forwarding import Ask, Award, Destination
from grid.protocol.forwarding.pulling import PullFrom


def nearest(question, *, lease_s: Annotated[float, Field(gt=0)] = 5.0):
    '''Asks VO after VO, in order, and follows the first that reserves CPUs.'''
    local = question.local_choice()
    if local.free >= 0:
        return Destination(local.free, False)
    for number, bid in enumerate(question.bids):
        if bid.held:
            return Award(number)
    others = [vo for vo in sorted(set(question.table.columns.vo.tolist())) if vo != question.vo]
    left = [vo for vo in others if vo not in question.asked]
    if left and not question.own_only:
        return Ask((left[0],), 10_000_000, lease_us=round(lease_s * 1e6))
    return Destination(local.own, True)


class FromTheFirst:
    '''Always asks VO 0 for work.'''

    def __call__(self, question):
        return Destination(question.local_choice().own, True, late=True)

    def idle(self, idle):
        return PullFrom(-1 if idle.vo == 0 or idle.asked else 0, 1_000_000)


def short_ones(request, *, most_s: float = 15.0):
    return request.job.estimate_us <= most_s * 1e6


def says_yes(request):
    return "yes"


def asks_no_vo(question):
    return Ask((), None)


def takes_no_bid(question):
    return Award(0)


def goes_back(question):
    others = question.table.columns.vo != question.vo
    return Destination(int(others.argmax()), False)


def goes_and_asks(question):
    return Ask((0,), 1_000_000) if question.hops else goes_back(question)
"""


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(POLICIES)
    monkeypatch.chdir(tmp_path)


def executed(policy: Any, admission: Any = "all", **protocol: Any) -> list[str]:
    """The VOs where the three jobs of `a` ran."""

    def vo(name: str, jobs: list[dict[str, Any]]) -> dict[str, Any]:
        section: dict[str, Any] = {"name": name, "clusters": [{"machines": [{"cpus": 1}]}]}
        return section | {"admission": admission, "workload": {"jobs": jobs}}

    jobs = [{"submit_s": s, "run_s": 10 + 10 * (s == 3)} for s in (1, 2, 3)]
    vos = [vo("a", jobs), vo("b", jobs[:1]), vo("c", jobs[2:])]
    done = grid.run({"name": "own", "protocol": {"forwarding": policy, **protocol}, "vos": vos})
    found = done.jobs()
    of_a: list[str] = found[found.vo == "a"].sort_values("job_id").executed_vo.tolist()
    return of_a


def test_a_policy_that_calls_for_bids_finds_the_only_free_vo() -> None:
    assert executed({"name": "mine.py:nearest", "settings": {"lease_s": 2.0}})[1] == "c"


def test_a_policy_that_pulls_work_receives_it() -> None:
    assert executed("mine.py:FromTheFirst") != ["a", "a", "a"]


def test_an_admission_policy_refuses_long_jobs() -> None:
    admission = {"name": "mine.py:short_ones", "settings": {"most_s": 5.0}}
    assert executed("mine.py:nearest", admission) == ["a", "a", "a"]


@pytest.mark.parametrize(
    ("policy", "admission", "message", "protocol"),
    [
        ("asks_no_vo", "all", "asks no VO", {}),
        ("takes_no_bid", "all", "returned bid 0", {}),
        ("nearest", "mine.py:says_yes", "returned 'yes'", {}),
        ("goes_back", "all", "returned row 0, of VO 0", {"avoid_loops": True}),
        ("goes_and_asks", "all", "asks VO 0", {"avoid_loops": True}),
    ],
)
def test_a_wrong_answer_names_file_and_value(
    policy: str, admission: str, message: str, protocol: dict[str, Any]
) -> None:
    with pytest.raises((InputError, RunFailed)) as failed:
        executed(f"mine.py:{policy}", admission, **protocol)
    assert message in str(failed.value)
    assert "mine.py:" in str(failed.value)
