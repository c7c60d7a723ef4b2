"""Classes that stand in the script that runs: other processes get them by value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import grid
from grid.model.errors import PluginFailed

SCRIPT = """from __future__ import annotations

from typing import Annotated

from pydantic import Field

from grid.policies.interface import Plan


class Most:
    def __init__(self, *, most: Annotated[int, Field(ge=1)] = 2):
        self.most = most

    def plan(self, view, now):
        plan = Plan()
        for slot in view.queue.tolist()[: self.most]:
            machine = view.fastest(slot)
            if machine >= 0:
                view.take(slot, machine)
                plan.start.append((slot, machine))
        return plan


class Fails:
    def plan(self, view, now):
        raise ValueError("no plan")
"""


def of_script(path: Path, name: str) -> Any:
    """A class as it is where the file is run, and not imported."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(SCRIPT, str(path), "exec", dont_inherit=True), names)
    return names[name]


def run(made: Any, **how: Any) -> str:
    jobs = [{"run_s": 10, "cpus": number} for number in (1, 2, 2)]
    policy = {"name": "mine", "settings": {"most": 1}} if made.__name__ == "Most" else "mine"
    cluster = {"policy": policy, "machines": [{"count": 2, "cpus": 2}]}
    vo = {"name": "one", "clusters": [cluster], "workload": {"jobs": jobs}}
    done = grid.run({"name": "small", "vos": [vo]}, policies={"mine": made}, **how)
    return str(done.manifest["digest"])


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_a_class_of_a_script_whose_annotations_are_text_runs_on_ray(tmp_path: Path) -> None:
    most = of_script(tmp_path / "script.py", "Most")
    assert run(most, ray=True, placement="2") == run(most)


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_a_class_of_a_script_is_named_with_its_own_file_on_ray(tmp_path: Path) -> None:
    fails = of_script(tmp_path / "script.py", "Fails")
    with pytest.raises(PluginFailed, match=r"script\.py:26: policy mine: plan raised ValueError"):
        run(fails, ray=True, placement="2")
