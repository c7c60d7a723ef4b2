"""Reading of scenarios: scalars, parameters, `--set`, traces, and the resolved text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.config.load import load_scenario, resolved_yaml
from grid.config.schema import Scenario
from grid.config.yaml_tree import read_tree, resolve
from grid.model.errors import InputError
from grid.model.fields import PluginRef
from tests.config.wrong_scenarios import RIGHT, edited

ROOT = Path(__file__).parents[2]
SCENARIOS = sorted((ROOT / "scenarios").glob("*.yaml"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "scenario.yaml"


def load(file: Path, text: str, *overrides: str) -> Scenario:
    file.write_text(text)
    return load_scenario(file, overrides)


SCALARS = {
    "1": 1, "-17": -17, "+5": 5, "0x1F": 31, "0o17": 15, "1.5": 1.5, ".5": 0.5, "1e3": 1000,
    "1e-3": 0.001, "2.5E+3": 2500.0, "true": True, "False": False, "null": None, "~": None,
    "": None,
}  # fmt: skip
IN_YAML_1_1 = ("1:30", "1_000", "0b11", "yes", "no", "on", "off", "y", "2005-11-20", "=", "<<")
"""Numbers, booleans and the like in YAML 1.1 only."""
TEXTS = {text: text for text in (*IN_YAML_1_1, "1.2.3", "e5", "-", ".", "nan")}


@pytest.mark.parametrize(("text", "value"), (SCALARS | TEXTS).items())
def test_plain_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


@pytest.mark.parametrize("text", ["010", "-007", "00", "08.5", "1e999", "9" * 401])
def test_ambiguous_scalars_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="number"):
        resolve(text)


def test_an_alias_is_a_copy(file: Path) -> None:
    text = edited("clusters:\n      - cpus: 8", "clusters: &pool\n      - cpus: 8")
    text += "  - name: west\n    clusters: *pool\n"
    scenario = load(file, text, "vos.2.clusters.0.policy=easy")
    south, west = scenario.vos[1:]
    assert (south.clusters[0].policy.name, west.clusters[0].policy.name) == ("fcfs", "easy")
    assert west.clusters[0].cpus == 8


def test_a_parameter_keeps_its_type_unless_it_is_within_text(file: Path) -> None:
    text = edited("{lat: 0.1, who: north}", "{lat: 2, who: north, on: true, version: 1.10}")
    text = text.replace("run_s: 60", 'run_s: 60\n          checkpointable: "${on}"')
    text = text.replace("cpus: 4", "cpus: ${lat}\n            cpu_type: ${who}-${version}-${on}")
    scenario = load(file, text)
    vo = scenario.vos[0]
    assert vo.workload.jobs[0].checkpointable is True
    machines = vo.clusters[0].machines
    assert (machines[0].cpus, machines[0].cpu_type) == (2, "north-1.10-true")


def test_set_changes_a_parameter_or_any_key(file: Path) -> None:
    scenario = load(
        file,
        RIGHT,
        "lat=2e-1",
        "vos.1.name=${who}-2",
        "who=east",
        "seed=8",
        "seed=9",
        "protocol.forwarding=reject",
        "vos.1.clusters.0.policy={name: easy}",
        "network.links=[{between: [east, east-2], latency_s: 3}]",
    )
    assert scenario.network.latency_s == 0.2
    assert scenario.seed == 9
    assert scenario.protocol.forwarding.name == "reject"
    assert scenario.protocol.ttl == 3
    assert [vo.name for vo in scenario.vos] == ["east", "east-2"]
    expected = PluginRef("easy")
    assert scenario.vos[1].clusters[0].policy == expected
    assert scenario.network.links[0].latency_s == 3


def test_entries_of_lists_are_set_by_name_and_all_at_once(file: Path) -> None:
    text = "vos: [{name: a, clusters: [{cpus: 1}, {name: b, cpus: 2}], workload: {jobs: []}},"
    text += " {name: xl, clusters: [{cpus: 3}]}]"
    overrides = ("vos.xl.selection=binary", "vos.a.clusters.b.cpus=7", "vos.*.clusters.*.mips=5")
    vos = load(file, text, *overrides).vos
    assert vos is not None and [vo.selection.name for vo in vos] == ["partial", "binary"]
    clusters = [cluster for vo in vos for cluster in vo.clusters]
    assert [(cluster.cpus, cluster.mips) for cluster in clusters] == [(1, 5), (7, 5), (3, 5)]
    with pytest.raises(InputError) as wrong:
        load(file, text, "vos.c.selection=binary")
    assert "a, xl" in wrong.value.errors[0].expected


def test_a_matrix_of_latencies_is_a_link_for_each_pair(file: Path) -> None:
    def pairs(network: str) -> dict[tuple[str, str], int]:
        scenario = load(file, RIGHT, "lat=0.1", f"network={network}")
        return {pair: latency_us for _, pair, latency_us in scenario.network.pairs()}

    links = pairs("{links: [{between: [north, south], latency_s: 3}]}")
    assert pairs("{latency_matrix_s: {north: {south: 3}}}") == links
    assert links == {("north", "south"): 3_000_000}
    for wrong in ("north: {d: 1}", "north: {north: 1}", "north: {south: 1}, south: {north: 2}"):
        with pytest.raises(InputError) as error:
            pairs(f"{{latency_matrix_s: {{{wrong}}}}}")
        assert error.value.errors[0].field.startswith("network.latency_matrix_s.")


def test_included_files_are_merged_and_errors_name_them(file: Path) -> None:
    folder = file.parent / "parts"
    folder.mkdir()
    (folder / "platform.yaml").write_text(
        "include: links.yaml\nprotocol: {ttl: 5, forwarding: reject}\n"
        "vos: [{name: a, clusters: [{cpus: 1}]}]\n"
    )
    (folder / "links.yaml").write_text("network: {latency_s: 2}\nprotocol: {ttl: 9}\n")
    (folder / "jobs.yaml").write_text("workload: {jobs: []}\nprotocol: {tll: 1}\n")
    text = "include: [parts/platform.yaml, parts/jobs.yaml]\nprotocol: {ttl: 7}\n"
    with pytest.raises(InputError) as wrong:
        load(file, text)
    first = wrong.value.errors[0]
    assert (first.file, first.line) == (str(folder / "jobs.yaml"), 2)
    (folder / "jobs.yaml").write_text(
        "vos: [{name: b, clusters: [{cpus: 2}], workload: {jobs: []}}]"
    )
    scenario = load(file, text)
    assert (scenario.protocol.ttl, scenario.protocol.forwarding.name) == (7, "reject")
    assert scenario.network.latency_s == 2
    assert scenario.vos is not None and scenario.vos[0].name == "b"
    assert load_scenario(resolved(file, scenario)) == scenario


@pytest.mark.parametrize("text", ["include: nothing.yaml", "include: scenario.yaml"])
def test_files_that_cannot_be_included_are_errors(file: Path, text: str) -> None:
    with pytest.raises(InputError) as wrong:
        load(file, f"name: a\n{text}\n")
    first = wrong.value.errors[0]
    assert (first.line, first.field) == (2, "include")


def resolved(file: Path, scenario: Scenario) -> Path:
    path = file.with_name("resolved.yaml")
    path.write_text(resolved_yaml(scenario))
    return path


def test_overrides_are_texts_or_values_by_name(file: Path) -> None:
    texts = load(file, RIGHT, "lat=0.2", "protocol.forwarding=reject", "network.links=[]")
    file.write_text(RIGHT)
    given = {"lat": np.float64(0.2), "protocol.forwarding": "reject", "network.links": ()}
    assert load_scenario(file, given) == texts
    assert load_scenario(file, "lat=0.2").network == texts.network


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({3: 4}, "found 3"),
        ({"lat": [1]}, "lat: found a list"),
        ({"protocol": {"ttl": object()}}, "protocol.ttl: found an object of type object"),
        ({"ttl": 5}, "ttl: found an unknown parameter or key, expected protocol.ttl"),
        ([("lat", 5)], "found ['lat', 5]"),
        (5, "found 5"),
    ],
)
def test_invalid_overrides_from_python_are_errors(file: Path, overrides: Any, says: str) -> None:
    file.write_text(RIGHT)
    with pytest.raises(InputError) as caught:
        load_scenario(file, overrides)
    (error,) = caught.value.errors
    assert says in str(error) and error.file.startswith("--set")


@pytest.mark.parametrize(
    ("stem", "name"), [("two-vos", "two-vos"), ("a b", "a-b"), (".x", "x"), ("ü", "scenario")]
)
def test_the_name_comes_from_the_file(tmp_path: Path, stem: str, name: str) -> None:
    assert load(tmp_path / f"{stem}.yaml", edited("name: base\n", "")).name == name


def test_traces_are_looked_up_here_and_then_next_to_the_scenario(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    (tmp_path / "log.swf").write_text("")
    text = edited("- cpus: 8", "- cpus: 8\n    workload: {trace: log.swf}")

    def trace() -> str | None:
        scenario = load(file, text)
        return scenario.vos[1].workload.trace

    assert trace() == str(tmp_path / "log.swf")
    (here / "log.swf").write_text("")
    assert trace() == str(here / "log.swf")


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_each_shipped_scenario_resolves_to_itself(path: Path, file: Path, tmp_path: Path) -> None:
    trace = tmp_path / "log.swf"
    trace.write_text("")
    named = [f"trace={trace}"] if "\n  trace:" in path.read_text() else []
    # Paths of plugins' files are absolute in the resolved text.
    text = resolved_yaml(load_scenario(path, named))
    assert resolved_yaml(load(file, text)) == text


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["1e3", "0o7", "010", "0x1", "089", ".inf", "null", "", "~", "1:30", "- a", "a: b", "#", "true",
     "=", "<<", "*a", "&a", "!a", "%a", "@", "`", " a ", "a\n\nb\n", "\x85", "\ufeff", "'", '"',
     "1_0", "2005-11-20", "+1", "? a", "-", "---", "...", "\t", "\\", "[", "}"]
)  # fmt: skip
VALUES = st.recursive(
    TEXT
    | st.booleans()
    | st.none()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXT, VALUES, max_size=4), TEXT, st.floats(1e-6, 1e9), st.booleans())
def test_any_scenario_resolves_to_itself(
    settings: dict[str, Any], cpu_type: str, seconds: float, checkpointable: bool
) -> None:
    scenario = Scenario.model_validate(
        {
            "name": "drawn",
            "network": {"latency_s": seconds},
            "protocol": {"snapshots": {}},
            "vos": [
                {
                    "name": "a",
                    "clusters": [
                        {
                            "machines": [{"cpu_type": cpu_type}],
                            "policy": {"name": "fcfs", "settings": settings},
                        }
                    ],
                    "workload": {"jobs": [{"run_s": seconds, "checkpointable": checkpointable}]},
                }
            ],
        }
    )
    again, problems = read_tree(resolved_yaml(scenario), "drawn.yaml")
    assert not problems
    assert Scenario.model_validate(again.plain()) == scenario
