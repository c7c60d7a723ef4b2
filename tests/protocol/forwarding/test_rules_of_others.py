"""Rules of forwarding and admission in a file of a user's own, with a conversation of their own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import grid
from grid.model.errors import InputError, RunFailed
from tests.config.grids import vo

RULES = """
from typing import Annotated

from pydantic import Field

from grid.protocol.forwarding import Ask, Award, Destination
from grid.protocol.forwarding.pulling import PullFrom


def nearest(question, *, lease_s: Annotated[float, Field(gt=0)] = 5.0):
    '''Asks VO after VO, in order, and follows the first that holds a place.'''
    home = question.local_choice()
    if home.free >= 0:
        return Destination(home.free, False)
    for number, bid in enumerate(question.bids):
        if bid.held:
            return Award(number)
    others = [vo for vo in sorted(set(question.table.columns.vo.tolist())) if vo != question.vo]
    left = [vo for vo in others if vo not in question.asked]
    if left and not question.own_only:
        return Ask((left[0],), 10_000_000, lease_us=round(lease_s * 1e6))
    return Destination(home.own, True)


class FromTheFirst:
    '''Always asks VO 0 for work.'''

    def __call__(self, question):
        return Destination(question.local_choice().own, True, late=True)

    def idle(self, idle):
        return PullFrom(-1 if idle.vo == 0 or idle.asked else 0, 1_000_000)


def short_ones(request, *, most_s: float = 15.0):
    return request.job.estimate_us <= most_s * 1e6


def asks_for_ever(question):
    return Ask((1,), 1)


def asks_nobody(question):
    return Ask((), None)


def asks_strangers(question):
    return Ask((7,), 1)


def takes_no_bid(question):
    return Award(0)


def goes_back(question):
    others = question.table.columns.vo != question.vo
    return Destination(int(others.argmax()), False)


def asks_the_first(question):
    return Ask((0,), 1_000_000)


def there_and_asks(question):
    return asks_the_first(question) if question.hops else goes_back(question)


def nobody(request):
    return False


def says_yes(request):
    return "yes"
"""


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(RULES)
    monkeypatch.chdir(tmp_path)


def run(rule: Any, admission: Any = "all", **protocol: Any) -> Any:
    def vo(name: str, jobs: list[dict[str, Any]]) -> dict[str, Any]:
        section: dict[str, Any] = {"name": name, "clusters": [{"machines": [{"cpus": 1}]}]}
        return section | {"admission": admission, "workload": {"jobs": jobs}}

    jobs = [{"submit_s": s, "run_s": 10 + 10 * (s == 3)} for s in (1, 2, 3)]
    vos = [vo("a", jobs), vo("b", jobs[:1]), vo("c", jobs[2:])]
    done = grid.run({"name": "own", "protocol": {"forwarding": rule, **protocol}, "vos": vos})
    return {(job["vo"], job["job_id"]): job for job in done.jobs().to_dict("records")}


def places(jobs: Any) -> list[str]:
    return [jobs["a", number]["executed_vo"] for number in (1, 2, 3)]


def test_a_rule_that_asks_finds_the_only_vo_with_a_place() -> None:
    assert places(run({"name": "mine.py:nearest", "settings": {"lease_s": 2.0}}))[1] == "c"


def test_a_rule_that_fetches_work_gets_it() -> None:
    assert places(run("mine.py:FromTheFirst")) != ["a", "a", "a"]


def test_a_rule_of_admission_refuses_long_jobs() -> None:
    admission = {"name": "mine.py:short_ones", "settings": {"most_s": 5.0}}
    assert places(run("mine.py:nearest", admission)) == ["a", "a", "a"]


@pytest.mark.parametrize(
    ("rule", "admission", "said"),
    [
        ("asks_nobody", "all", "asks nobody, and waits for nothing"),
        ("asks_strangers", "all", "asks VO 7"),
        ("asks_for_ever", "all", "asks_for_ever: asks 10,000 times for job 1 of a"),
        ("takes_no_bid", "all", "gave bid 0"),
        ("nearest", "mine.py:says_yes", "gave 'yes', expected True or False"),
    ],
)
def test_a_wrong_answer_is_told_in_one_line(rule: str, admission: str, said: str) -> None:
    with pytest.raises((InputError, RunFailed)) as failed:
        run(f"mine.py:{rule}", admission)
    assert said in str(failed.value)
    assert "mine.py:" in str(failed.value)


@pytest.mark.parametrize(
    ("page", "part", "key", "figure"),
    [
        ("dissemination.md", "Star", "information", "messages_of_information_a_job"),
    ],
)
def test_parts_of_the_pages_do_what_the_pages_say(
    page: str, part: str, key: str, figure: str, tmp_path: Path
) -> None:
    """In one process here; rules and overlays of files go to Ray actors as all parts do."""
    text = (Path(__file__).parents[3] / "docs" / "explanation" / page).read_text("utf-8")
    blocks = re.findall(r"```\{code-block\} python\n:caption: \S+\n(.*?)```", text, re.DOTALL)
    (code,) = [one for one in blocks if part in one]
    (tmp_path / "my_parts.py").write_text(code)
    jobs = [{"submit_s": 2 * n, "run_s": 30} for n in range(8)]
    scenario = {
        "name": "pages",
        "protocol": {key: f"{tmp_path / 'my_parts.py'}:{part}", "snapshot_period_s": 5},
        "vos": [vo("a", 1, jobs), vo("b", 1), vo("c", 1), vo("d", 1)],
    }
    found = grid.run(scenario).metrics["grid"]
    assert found[figure] > 0
    assert found["jobs_forwarded"] > 0


def test_a_rule_sends_no_job_back_to_a_vo_that_it_may_not_enter_again() -> None:
    with pytest.raises(RunFailed, match=r"gave row 0, of VO 0, to which this job may not go"):
        run("mine.py:goes_back", avoid_loops=True)


def test_a_rule_sends_no_job_to_a_vo_that_has_refused_it() -> None:
    with pytest.raises(RunFailed, match=r"gave row 1, of VO 1, to which this job may not go"):
        run("mine.py:goes_back", "mine.py:nobody", when_refused="next")


def test_a_rule_asks_no_vo_that_the_job_may_not_enter() -> None:
    with pytest.raises(RunFailed, match=r"asks VO 0, to which this job may not go"):
        run("mine.py:there_and_asks", avoid_loops=True)
