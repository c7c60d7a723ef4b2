"""Invalid scenarios, with the file, line and field of their error."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

RIGHT = """\
name: base
seed: 7
parameters: {lat: 0.1, who: north}
network:
  latency_s: ${lat}
  links: []
protocol:
  ttl: 3
vos:
  - name: ${who}
    clusters:
      - name: farm
        policy: fcfs
        licenses: [{name: solver, copies: 2}]
        machines:
          - count: 2
            cpus: 4
            licenses: [solver]
    workload:
      jobs:
        - number: 1
          run_s: 60
          cpus: 2
          requirements:
            - kind: speed
              options: [{value: 1000}]
  - name: south
    clusters:
      - cpus: 8
"""
"""A valid scenario, of which most of the others are edits."""

ALIAS_BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10)
)
ALIAS_LADDER = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 5000))


@dataclass(frozen=True)
class Wrong:
    """The content of a file, the overrides, and the error that is reported.

    `line` None: the message names no line; `field` empty: it names no field.
    """

    name: str
    content: str | bytes
    line: int | None
    field: str
    overrides: tuple[str, ...] = ()

    def write(self, folder: Path) -> Path:
        path = folder / "wrong.yaml"
        data = self.content.encode() if isinstance(self.content, str) else self.content
        path.write_bytes(data)
        return path

    def shown(self, path: Path) -> str:
        """The beginning of the error line."""
        where = str(path) if self.line is None else f"{path}:{self.line}"
        if self.overrides and self.line is None:
            given = self.overrides[-1]
            where = f"--set {given if given.isprintable() else repr(given)}"[:100]
        return f"{where}: {self.field}: found" if self.field else f"{where}: found"


def edited(old: str, new: str) -> str:
    """The valid scenario with one edit."""
    assert RIGHT.count(old) == 1, old
    return RIGHT.replace(old, new)


def option(kind: str, value: str) -> str:
    return edited("speed\n              options: [{value: 1000}]", f"{kind}\n{value}")


CPUS = "vos.0.clusters.0.machines.0.cpus"
DEEP = f"{'0.' * 16}…"
JOB = "vos.0.workload.jobs.0"

NO_YAML = [
    Wrong("empty file", "", 1, ""),
    Wrong("binary file", b"\x7fELF\x02\x01\x01\x00\xff\xfe\x00", 1, ""),
    Wrong("control character", "name: a\nseed: \x01\n", 2, ""),
    Wrong("two documents", "name: a\n---\nname: b\n", 2, ""),
    Wrong("tab", "name: a\nnetwork:\n\tlatency_s: 1\n", 3, ""),
    Wrong("unclosed quote", 'seed: 1\nname: "a\nvos: []\n', 2, ""),
    Wrong("unclosed bracket", "name: a\nvos: [1, 2\nseed: 1\n", 2, ""),
    Wrong("100,000 brackets", "[" * 100000, 1, DEEP),
    Wrong("300,000 values", "vos:\n" + "- 1\n" * 300000, 200000, "vos.199998"),
    Wrong("more than 4 MiB", "#" * (4 * 1024 * 1024 + 1), None, ""),
    Wrong("alias bomb", ALIAS_BOMB, 6, "a5.0"),
    Wrong("alias ladder", ALIAS_LADDER, 64, "a63.0"),
    Wrong("alias of itself", "name: a\nvos: &v [*v]\n", 2, "vos.0"),
    Wrong("alias of nothing", "name: *who\n", 1, "name"),
]  # fmt: skip

NO_PLAIN_DATA = [
    Wrong("duplicate key", edited("seed: 7", "seed: 7\nseed: 8"), 3, "seed"),
    Wrong("custom tag", edited("name: base", "name: !!python/name:os.system x"), 1, "name"),
    Wrong("NaN", edited("ttl: 3", "ttl: .nan"), 8, "protocol.ttl"),
    Wrong("leading zero", edited("cpus: 4", "cpus: 010"), 17, CPUS),
    Wrong("5,000 digits", edited("seed: 7", "seed: " + "9" * 5000), 2, "seed"),
]  # fmt: skip

NO_SUCH_KEY = [
    Wrong("unknown key", edited("cpus: 4", "cpu: 4"), 17, f"{CPUS[:-1]}"),
    Wrong("a key of another section", edited("seed: 7", "ttl: 7"), 2, "ttl"),
    Wrong("merge of text", edited("cpus: 4", "<<: cpus"), 17, f"{CPUS[:-4]}<<"),
    Wrong("control character in a key", '"a\\nb": 1\n', 1, "'a\\nb'"),
    Wrong("missing key", edited("run_s: 60", "submit_s: 60"), 21, f"{JOB}.run_s"),
    Wrong("key of a named section",
        edited("      jobs:", "      attributes: {resources: {gpus: {amounts: [1], amount: 1}}}\n      jobs:"),  # noqa: E501
        20, "vos.0.workload.attributes.resources.gpus.amount"),
    Wrong("VO without a name", edited("name: south", "count: 2"), 27, "vos.1.name"),
    Wrong("neither kind of VO", "name: a\n", 1, ""),
]  # fmt: skip

WRONG_TYPE = [
    Wrong("text for a number", edited("cpus: 4", "cpus: four"), 17, CPUS),
    Wrong("YAML 1.1 base 60", edited("run_s: 60", "run_s: 1:30"), 22, f"{JOB}.run_s"),
    Wrong("name with a space", edited("name: base", "name: a b"), 1, "name"),
    Wrong("nothing for a section", edited("  ttl: 3\n", ""), 7, "protocol"),
    Wrong("list for a policy", edited("policy: fcfs", "policy: [fcfs]"), 13,
        "vos.0.clusters.0.policy"),
    Wrong("an edge to a VO that is not there",
        edited("ttl: 3", "information: {name: edges, settings: {edges: [[0, 1], [1, 7]]}}"), 8,
        "protocol.information.settings.edges.1"),
    Wrong("unknown word", edited("ttl: 3", "forwarding: wait"), 8, "protocol.forwarding"),
]  # fmt: skip

WRONG_SIZE = [
    Wrong("negative", edited("cpus: 4", "cpus: -4"), 17, CPUS),
    Wrong("admission of a VO that is not there",
        edited("    clusters:\n      - cpus: 8", "    admission: {name: limited, settings: {from_vos: [nort]}}\n    clusters:\n      - cpus: 8"),  # noqa: E501
        28, "vos.1.admission.settings.from_vos"),
    Wrong("utility above one", option("speed", "              options: [{value: 1, utility: 2}]"),
        26, f"{JOB}.requirements.0.options.0.utility"),
    Wrong("machines in all", edited("count: 2", "count: 1000000"), 9, "vos"),
    Wrong("VOs in all",
        "name: a\nvos:\n" + "".join(f"  - {{name: {name}, count: 10000, clusters: [{{cpus: 1}}], workload: {{jobs: []}}}}\n" for name in "abc"),  # noqa: E501
        2, "vos"),
]  # fmt: skip

WRONG_NAMES = [
    Wrong("VO twice", edited("name: south", "name: north"), 27, "vos.1.name"),
    Wrong("VO of all", edited("name: south", "name: grid"), 27, "vos.1.name"),
    Wrong("link to nobody", edited("[]", "[{between: [north, sorth], latency_s: 1}]"), 6,
        "network.links.0.between.1"),
    Wrong("unknown policy", edited("policy: fcfs", "policy: fcsf"), 13, "vos.0.clusters.0.policy"),
    Wrong("setting that cannot be by itself",
        edited("policy: fcfs", "policy: {name: batsim, settings: {command: x}}"), 13,
        "vos.0.clusters.0.policy.settings.command"),
    Wrong("unknown setting of a generator",
        edited("- cpus: 8", "- cpus: 8\n    workload:\n      generator: partial_utility\n      settings:\n        usrs: 5"),  # noqa: E501
        33, "vos.1.workload.settings.usrs"),
    Wrong("a law that a generator does not know",
        edited("- cpus: 8", "- cpus: 8\n    workload:\n      generator: stochastic\n      settings:\n        jobs: 5\n        arrivals: {distribution: expo, mean_s: 1}\n        work: {distribution: fixed, mean_s: 1}"),  # noqa: E501
        34, "vos.1.workload.settings.arrivals.distribution"),
    Wrong("unknown key of a distribution",
        edited("- cpus: 8", "- cpus: 8\n    workload:\n      generator: stochastic\n      settings:\n        jobs: 5\n        work: {distribution: fixed, mean: 1}"),  # noqa: E501
        34, "vos.1.workload.settings.work.mean"),
    Wrong("a key of the top level where few others are",
        edited("links: []", "links: [{between: [north, south], latency_s: 1, vos: 1}]"), 6,
        "network.links.0.vos"),
    Wrong("gangs on machines that are switched off",
        edited("- cpus: 8", "- policy: afcfs\n        cpus: 8\n        switch_off: {after_s: 60}"),
        29, "vos.1.clusters.0.machines"),
    Wrong("license of nobody", edited("[solver]", "[silver]"), 18, f"{CPUS[:-4]}licenses.0"),
    Wrong("license twice",
        edited("[{name: solver, copies: 2}]", "[{name: solver, copies: 2}, {name: solver, copies: 1}]"),  # noqa: E501
        14, "vos.0.clusters.0.licenses.1.name"),
]  # fmt: skip

WRONG_JOBS = [
    Wrong("larger than any machine", edited("cpus: 2", "cpus: 9"), 23, f"{JOB}.cpus"),
    Wrong("larger than its own cluster",
        edited("cpus: 2", "cpus: 8").replace("    workload:\n", "    workload:\n      entry_point: cluster\n"),  # noqa: E501
        24, f"{JOB}.cpus"),
    Wrong("number twice",
        edited("        - number: 1", "        - {number: 1, run_s: 5}\n        - number: 1"), 22,
        f"{JOB[:-1]}1.number"),
    Wrong("negative requirement", option("ram", "              options: [{value: -5}]"), 26,
        f"{JOB}.requirements.0.options.0.value"),
    Wrong("resource that no machine has", edited("cpus: 2", "resources: {gpus: 1}"), 23,
        f"{JOB}.resources.gpus"),
    Wrong("drawn resource that no machine has",
        edited("    workload:\n", "    workload:\n      attributes: {resources: {gpus: {amounts: [1]}}}\n"),  # noqa: E501
        20, "vos.0.workload.attributes.resources.gpus"),
    Wrong("resource of machines and cluster",
        edited("licenses: [solver]", "resources: {a: 1}").replace("policy: fcfs", "resources: {a: 1}"),  # noqa: E501
        18, "vos.0.clusters.0.machines.0.resources.a"),
    Wrong("key as the name of a resource", edited("licenses: [solver]", "resources: {ram_mb: 1}"),
        18, "vos.0.clusters.0.machines.0.resources.ram_mb"),
    Wrong("negative resource", edited("licenses: [solver]", "resources: {gpus: -1}"),
        18, "vos.0.clusters.0.machines.0.resources.gpus"),
    Wrong("reservation of no machine", edited("policy: fcfs", "reservations: [{from_s: 1, to_s: 2, machines: [m7]}]"),  # noqa: E501
        13, "vos.0.clusters.0.reservations.0.machines.0"),
    Wrong("reservation of more CPUs than a machine has", edited("policy: fcfs", "reservations: [{from_s: 1, to_s: 2, cpus: 5000}]"),  # noqa: E501
        13, "vos.0.clusters.0.reservations.0.cpus"),
    Wrong("reservation for a VO that does not exist", edited("policy: fcfs", "reservations: [{from_s: 1, to_s: 2, vos: [v7]}]"),  # noqa: E501
        13, "vos.0.clusters.0.reservations.0.vos.0"),
    Wrong("reservation of no CPUs", edited("policy: fcfs", "reservations: [{from_s: 1, to_s: 2, cpus: 0}]"),  # noqa: E501
        13, "vos.0.clusters.0.reservations.0.cpus"),
    Wrong("reservation that ends before it begins", edited("policy: fcfs", "reservations: [{from_s: 2, to_s: 1}]"),  # noqa: E501
        13, "vos.0.clusters.0.reservations.0"),
    Wrong("requirement of nothing", edited("kind: speed", "kind: sped"), 25,
        f"{JOB}.requirements.0.kind"),
    Wrong("two sources of jobs", edited("jobs:", "trace: wrong.yaml\n      jobs:"), 19,
        "vos.0.workload"),
    Wrong("jobs of a whole grid", edited("seed: 7", "workload: {jobs: [{run_s: 1}]}"), 2,
        "workload.jobs"),
    Wrong("missing trace", edited("seed: 7", "workload: {trace: nosuch.swf}"), 2, "workload.trace"),
    Wrong("NUL in a trace's path", edited("seed: 7", 'workload: {trace: "a\\0b"}'), 2,
        "workload.trace"),
]  # fmt: skip

WRONG_PARAMETERS = [
    Wrong("unknown parameter", edited("ttl: 3", "ttl: ${hops}"), 8, "protocol.ttl"),
    Wrong("unclosed reference", edited("ttl: 3", "ttl: ${lat"), 8, "protocol.ttl"),
    Wrong("parameter of a wrong type", edited("ttl: 3", "ttl: ${who}"), 8, "protocol.ttl"),
    Wrong("list of parameters", edited("{lat: 0.1, who: north}", "[lat, who]"), 3, "parameters"),
    Wrong("parameter of a parameter", edited("{lat: 0.1,", '{lat: "${who}",'), 3, "parameters.lat"),
    Wrong("unused parameter", edited("{lat: 0.1,", "{lat: 0.1, latt: 1,"), 3, "parameters.latt"),
    Wrong("name of a parameter", edited("{lat: 0.1,", "{lat: 1, a.b: 1,"), 3, "parameters.a.b"),
    Wrong("--set without a value", RIGHT, None, "", ("lat",)),
    Wrong("--set of nothing known", RIGHT, None, "latt", ("latt=5",)),
    Wrong("--set past a list", RIGHT, None, "vos.2", ("vos.2.name=x",)),
    Wrong("--set below a number", RIGHT, None, "seed.a", ("seed.a=1",)),
    Wrong("--set of a wrong type", RIGHT, None, "network.latency_s", ("lat=fast",)),
    Wrong("--set of broken YAML", RIGHT, None, "lat", ("lat=[1, ",)),
    Wrong("--set of 100,000 brackets", RIGHT, None, f"seed.{DEEP}", ("seed=" + "[" * 100000,)),
    Wrong("--set of a deep path", RIGHT, None, f"vos.{DEEP[2:]}", ("vos" + ".0" * 999 + "=1",)),
]  # fmt: skip

WRONG_SCENARIOS = [
    *NO_YAML,
    *NO_PLAIN_DATA,
    *NO_SUCH_KEY,
    *WRONG_TYPE,
    *WRONG_SIZE,
    *WRONG_NAMES,
    *WRONG_JOBS,
    *WRONG_PARAMETERS,
]
