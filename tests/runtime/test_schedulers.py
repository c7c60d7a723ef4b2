"""Schedulers as processes: those of pybatsim, a served policy, and those that go wrong."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

import grid
from grid.model.errors import InputError, PluginFailed
from grid.runtime.run import Run

pytest.importorskip("zmq", reason="needs the extra `batsim`")

PYBATSIM = Path(sys.executable).with_name("pybatsim")
needs_pybatsim = pytest.mark.skipif(
    importlib.util.find_spec("batsim") is None or not PYBATSIM.exists(),
    reason="needs pybatsim, which is no dependency",
)


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Schedulers of pybatsim write a log where they are started."""
    monkeypatch.chdir(tmp_path)


def pool(policy: Any, count: int = 40) -> dict[str, Any]:
    """One pool of 16 processors, jobs whose widths are powers of two."""
    jobs = [
        {"submit_s": 7 * n, "run_s": 20 + 37 * n % 190, "estimate_s": 220, "cpus": 2 ** (n * n % 5)}
        for n in range(1, count + 1)
    ]
    cluster = {"name": "pool", "cpus": 16, "policy": policy}
    vo = {
        "name": "lab",
        "clusters": [cluster],
        "workload": {"entry_point": "cluster", "jobs": jobs},
    }
    return {"name": "asked", "seed": 1, "vos": [vo]}


def asks(command: str, **settings: Any) -> dict[str, Any]:
    return {"name": "batsim", "settings": {"command": command, **settings}}


def pybatsim(scheduler: str) -> dict[str, Any]:
    return asks(f"{shlex.quote(str(PYBATSIM))} {scheduler} -s {{endpoint}} -t 0 -v error")


def served(policy: str) -> dict[str, Any]:
    code = "from grid.cli.app import main; main()"
    python = f"{shlex.quote(sys.executable)} -P -c {shlex.quote(code)}"
    # It may have to compile first.
    command = f"{python} batsim-server {policy} --endpoint {{endpoint}}"
    return asks(command, patience_s=300.0)


def starts(run: Run) -> dict[int, float]:
    table = run.jobs_table()
    return dict(zip(table["job_id"].to_pylist(), table["starting_time"].to_pylist(), strict=True))


START = """def start(job, alloc):
    data = {'job_id': job, 'alloc': alloc}
    event = {'timestamp': message['now'], 'type': 'EXECUTE_JOB', 'data': data}
    if rounds > 1: answer['events'].append(event)
"""


def script(tmp_path: Path, body: str) -> str:
    """A scheduler: what it does with the text of a message, and `socket` at hand."""
    file = tmp_path / "scheduler.py"
    file.write_text(
        "import json, sys, time, zmq\n"
        "socket = zmq.Context().socket(zmq.REP)\n"
        "socket.bind(sys.argv[1])\n"
        "rounds = 0\n"
        "while True:\n"
        "    message = json.loads(socket.recv())\n"
        "    rounds += 1\n"
        "    answer = {'now': message['now'], 'events': []}\n"
        + "".join(f"    {line}\n" for line in body.splitlines())
        + "    socket.send_string(json.dumps(answer))\n"
    )
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(file))} {{endpoint}}"


@needs_pybatsim
def test_schedulers_of_pybatsim_next_to_policies() -> None:
    """FCFS, EASY and a filling one of pybatsim, each in a VO, and jobs that go from VO to VO."""
    jobs = {
        "generator": "stochastic",
        "settings": {
            "jobs": 25,
            "load": 0.9,
            "arrivals": {"distribution": "exponential"},
            "work": {"distribution": "exponential", "mean_s": 100},
            "sizes": [{"cpus": 1, "share": 2}, {"cpus": 4, "share": 1}],
        },
    }
    policies = {
        "fcfs": pybatsim("schedFcfs"),
        "easy": pybatsim("easyBackfill"),
        "filler": pybatsim("schedFiller"),
        "ours": "easy",
    }
    vos = [
        {
            "name": name,
            "clusters": [{"name": "pool", "cpus": 8, "policy": policy}],
            "workload": jobs,
        }
        for name, policy in policies.items()
    ]
    run = grid.run({"name": "mixed", "seed": 3, "vos": vos})
    assert run.metrics["grid"]["jobs_completed"] == 100
    assert run.metrics["grid"]["jobs_forwarded"] > 0
    timings = run.manifest["schedulers"]
    assert list(timings) == ["easy/pool", "fcfs/pool", "filler/pool"]
    assert all(one["messages"] > 20 and one["total"] >= one["max"] > 0 for one in timings.values())
    assert (
        run.manifest["digest"]
        == grid.run({"name": "mixed", "seed": 3, "vos": vos}).manifest["digest"]
    )


@pytest.mark.thorough
@needs_pybatsim
@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_a_scheduler_on_ray_decides_as_in_one_process() -> None:
    scenario = pool(pybatsim("schedFcfs"), 20)
    here, there = grid.run(scenario), grid.run(scenario, ray=True)
    assert there.manifest["digest"] == here.manifest["digest"]
    assert there.manifest["schedulers"]["lab/pool"]["messages"] > 20


def test_a_served_policy_starts_the_same_jobs() -> None:
    assert starts(grid.run(pool(served("easy"), 25))) == starts(grid.run(pool("easy", 25)))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("if rounds == 3: sys.exit('no more')", "ended with code 1 before the run did: 'no more'"),
        ("if rounds == 2: time.sleep(60)", "did not reply within 0.5 s"),
        ("answer = 'yes'", "replied 'yes', expected an object with now and events"),
        ("if rounds == 2: socket.send(b'{'); continue", "replied b'{', expected JSON"),
        ("pass", "policy batsim never started 5 jobs"),
        (START + "start('grid!0', '99')", "starts job grid!0 on resources '99', expected numbers"),
        (START + "start(f'grid!{rounds}', '0')", "starts job grid!2, which is not waiting here"),
        (
            START + "start('grid!0', '0-1'); start('grid!0', '0-1')",
            "cluster lab/pool: the scheduler",
        ),
    ],
    ids=["dies", "slow", "nonsense", "no-json", "idle", "outside", "no-such-job", "twice"],
)
def test_a_scheduler_that_goes_wrong_ends_the_run_with_a_line(
    tmp_path: Path, body: str, said: str
) -> None:
    patience = 0.5 if "sleep" in body else 30.0
    scenario = pool(asks(script(tmp_path, body), patience_s=patience), 5)
    with pytest.raises(Exception, match="lab") as failed:
        grid.run(scenario)
    assert said in str(failed.value)
    assert "\n" not in str(failed.value)


def test_a_command_that_is_not_there() -> None:
    with pytest.raises(PluginFailed):
        grid.run(pool(asks("no-such-scheduler {endpoint}"), 2))


def test_a_live_run_has_no_schedulers(tmp_path: Path) -> None:
    from grid.config.load import load_scenario
    from grid.runtime.clock import Pace
    from grid.runtime.run import Live, execute

    scenario = load_scenario(pool(asks("x {endpoint}"), 2))
    with pytest.raises(InputError, match="found batsim in a live run"):
        execute(scenario, "scenario", live=Live(Pace(1.0, 0.0, 10.0), tmp_path))


def test_a_restored_conversation_is_replayed(tmp_path: Path) -> None:
    """As when a run on Ray goes back to a checkpoint."""
    import pickle

    from grid.policies.batsim.policy import Scheduler
    from grid.runtime.schedulers import Conversation

    command = script(tmp_path, "answer['rounds'] = rounds")
    first = Conversation("lab/pool", Scheduler(command, "", 30.0))
    message: dict[str, Any] = {"now": 1.0, "events": []}
    assert [first.ask(message)["rounds"] for _ in range(3)] == [1, 2, 3]
    copied = pickle.loads(pickle.dumps(first))
    assert copied.ask(message)["rounds"] == 4
    assert first.ask(message)["rounds"] == 4
    changed = script(tmp_path, "answer['rounds'] = -rounds")
    again = pickle.loads(pickle.dumps(first))
    assert changed == command
    with pytest.raises(PluginFailed, match="replied differently to the same input"):
        again.ask(message)
    for one in (first, copied, again):
        one.close()
