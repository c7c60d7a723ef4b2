"""`grid verify`: the emulator agrees with mathematics, and planted errors are found."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from grid.cli.app import app
from grid.lab.verify.cases import CASES, Effort
from grid.lab.verify.verify import Figure, verify

PLANTED = Path(__file__).parent / "planted.py"
SMALL = {
    "mmc": (Effort(20, 50_000),),
    "mg1": (Effort(20, 50_000),),
    "rigid-capacity": (Effort(20, 4_000),),
    "loss": (Effort(20, 1_000),),
    "loss-by-size": (Effort(20, 1_000),),
    # At a load of 0.9 so few jobs do not reach the steady state.
    "shorter-of-two": (Effort(12, 600), "load=0.5"),
    "until-idle": (Effort(10, 300), "load=0.5"),
    "retries": (Effort(12, 500),),
    "steal": (Effort(10, 300), "load=0.5"),
    "random-routing": (Effort(6, 600), "load=0.5"),
    "round-robin": (Effort(6, 600), "load=0.5"),
    "power-of-d": (Effort(6, 600), "load=0.5"),
    "least-loaded": (Effort(6, 600), "load=0.5"),
    # A load of 0.5 of each server.
    "old-information": (CASES["old-information"].quick, "gap_s=1000"),
    "old-least-loaded": (Effort(12, 500),),
    "old-two-of-three": (Effort(12, 500),),
    "own-dispatches": (Effort(12, 500),),
    "gossip": (Effort(8, 40), "others=11"),
    "gossip-of-pairs": (Effort(8, 40), "others=11"),
}

LONG = (
    "rigid-capacity", "shorter-of-two", "until-idle", "steal", "old-information", "retries",
    "loss-by-size", "old-least-loaded", "old-two-of-three", "gossip-of-pairs",
)  # fmt: skip
THOROUGH = pytest.mark.thorough
EACH = [pytest.param(name, marks=THOROUGH) if name in LONG else name for name in SMALL]


def figures(name: str, *settings: str, effort: Effort | None = None) -> list[Figure]:
    case = CASES[name]
    return verify(case, settings, effort or case.quick)


@pytest.mark.parametrize("name", [case.name for case in CASES.values() if case.exact])
def test_exact_cases_are_exact(name: str) -> None:
    assert {one.verdict(full=True) for one in figures(name)} == {"exact"}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("one-server", ("load=1.5", "seed=9")),
        ("rigid-jobs", ("cpus=40", "load=0.9", "vos.0.clusters.0.mips=1730")),
        ("two-vos", ("within=0.000001", "between=7")),
    ],
)
def test_exact_cases_are_exact_at_other_values(name: str, settings: tuple[str, ...]) -> None:
    assert {one.verdict(full=True) for one in figures(name, *settings)} == {"exact"}


@pytest.mark.parametrize("name", EACH)
def test_steady_states_agree(name: str) -> None:
    effort, *settings = SMALL[name]
    found = figures(name, *settings, effort=effort)
    assert {one.verdict(full=False) for one in found} == {"agrees"}
    assert all(one.error > 0 for one in found)


def test_servers_that_are_one_percent_slower_are_found() -> None:
    planted = f"vos.0.workload.generator={PLANTED}:slower_servers"
    (found,) = figures("mmc", planted, effort=Effort(20, 100_000))
    assert found.verdict(full=False) == "differs"


@pytest.mark.parametrize("name", ["one-server", "many-servers", "rigid-jobs"])
def test_another_order_of_service_is_found(name: str) -> None:
    planted = f"vos.0.clusters.0.policy={PLANTED}:LastComeFirstServed"
    differing = [one.verdict(full=True) for one in figures(name, planted, "jobs=2000")]
    assert differing == ["differs", "differs"]


OUTAGE = "{vo: vo, cluster: server, machine: 0, at_s: 100, for_s: 50}"


@pytest.mark.parametrize(
    "setting",
    [
        "vos.0.clusters.0.estimate_factor=0.5",
        f"faults={{heal_s: 1000, machine_outages: [{OUTAGE}]}}",
    ],
)
def test_wrong_run_times_are_found(setting: str) -> None:
    """All are killed half way, or one starts again and delays the others."""
    assert {one.verdict(full=True) for one in figures("one-server", setting)} == {"differs"}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "planted"),
    [
        ("power-of-d", "random"),
        ("least-loaded", "random"),
        ("round-robin", "random"),
        ("random-routing", "least_loaded"),
    ],
)
def test_wrong_routing_is_found(name: str, planted: str) -> None:
    (found,) = figures(name, f"vos.0.selection={planted}", "load=0.5", effort=Effort(6, 600))
    assert found.verdict(full=False) == "differs"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("period_s", "planted"),
    [
        (1000, "vos.0.selection={name: power_of_d, settings: {d: 2, ties: first}}"),
        (4000, f"vos.0.selection={PLANTED}:OnePeriodOlder"),
        (1000, "protocol.snapshots.period_s=null"),
    ],
)
def test_wrong_ties_and_snapshots_are_found(period_s: int, planted: str) -> None:
    right = ["gap_s=1000", f"period_s={period_s}"]
    wrong = verify(CASES["old-information"], [*right, planted], Effort(12, 1_000))
    assert "differs" in {one.verdict(full=False) for one in wrong}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "planted",
    ["protocol.information.settings.times=periodic", f"protocol.information={PLANTED}:NearGossip"],
)
def test_wrong_gossip_is_found(planted: str) -> None:
    """An order that is the same in every period leaves 3 % less of the variance than a new one."""
    (found,) = verify(CASES["gossip"], ["others=11", planted], Effort(10, 200))
    assert found.verdict(full=False) == "differs"


@pytest.mark.parametrize(
    ("name", "setting", "error"),
    [
        ("mmc", "load=1.2", "--set: found a load of 1.2, expected one below 1, "),
        (
            "mg1",
            "vos.0.clusters.0.cpus=2",
            "--set: found 'vos.0.clusters.0.cpus', expected a param",
        ),
        ("old-information", "servers=4", "--set: found 4 servers, expected 2 or 3, "),
        ("least-loaded", "machines=300", "--set: found a Markov chain of more than "),
    ],
)
def test_scenarios_without_theory_are_refused(name: str, setting: str, error: str) -> None:
    done = CliRunner().invoke(app, ["verify", "--quick", "--case", name, "--set", setting])
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].startswith(error)
    assert not done.stdout


def test_a_wrong_latency_is_found() -> None:
    slower = "network.links=[{between: [north, south], latency_s: 3.000001}]"
    differing = {one.name for one in figures("two-vos", slower) if one.verdict(True) == "differs"}
    assert differing == {"assignments that differ", "starts that differ", "ends that differ"}


def test_a_full_verification_requires_precision() -> None:
    figure = Figure("mmc", "mean wait, s", 1.0, 1.02, 0.01, 10, False)
    assert figure.verdict(full=False) == "agrees"
    assert figure.verdict(full=True) == "not precise enough"
    assert Figure("mmc", "", 1.0, float("nan"), 0.1, 10, False).verdict(False) == "differs"
    assert Figure("mmc", "", 1.0, 1.1, 0.0, 1, False).verdict(False) == "differs"


def test_the_command_prints_rows_and_writes_the_page(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    words = ["verify", "--quick", "--case", "two-vos", "--case", "one-server", "--cpus", "1"]
    done = CliRunner().invoke(app, [*words, "--page", str(page)])
    assert done.exit_code == 0, done.output
    assert done.stdout.count(" exact\n") == 5
    assert done.stdout.endswith("5 of 5 values agree with theory.\n")
    assert "| one-server | starts that differ | 0 | 0 |" in page.read_text()
    assert "Not run" not in page.read_text()
