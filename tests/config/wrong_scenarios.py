"""Scenarios with something wrong, and where and what the one who wrote them is to be told."""

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
"""Nothing is wrong with this one; most of the others are edits of it."""

ALIAS_BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10)
)
ALIAS_LADDER = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 5000))


@dataclass(frozen=True)
class Wrong:
    """A file's content, what `--set` gives, and a mistake that is to be reported.

    `line` None: the message names no line; `field` empty: it names no field.
    """

    name: str
    content: str | bytes
    line: int | None
    field: str
    says: str
    overrides: tuple[str, ...] = ()

    def write(self, folder: Path) -> Path:
        path = folder / "wrong.yaml"
        data = self.content.encode() if isinstance(self.content, str) else self.content
        path.write_bytes(data)
        return path

    def shown(self, path: Path) -> str:
        """How the line of the message begins."""
        where = str(path) if self.line is None else f"{path}:{self.line}"
        if self.overrides and self.line is None:
            given = self.overrides[-1]
            where = f"--set {given if given.isprintable() else repr(given)}"[:100]
        return f"{where}: {self.field}: found" if self.field else f"{where}: found"


def edited(old: str, new: str) -> str:
    """The right scenario with one place changed."""
    assert RIGHT.count(old) == 1, old
    return RIGHT.replace(old, new)


def option(kind: str, value: str) -> str:
    return edited("speed\n              options: [{value: 1000}]", f"{kind}\n{value}")


CPUS = "vos.0.clusters.0.machines.0.cpus"
DEEP = f"{'0.' * 16}…"
JOB = "vos.0.workload.jobs.0"

NO_YAML = [
    Wrong("empty file", "", 1, "", "an empty file"),
    Wrong("only comments", "# nothing\n", 2, "", "an empty file"),
    Wrong("only null", "~\n", 1, "", "found nothing, expected a mapping"),
    Wrong("binary file", b"\x7fELF\x02\x01\x01\x00\xff\xfe\x00", 1, "", "expected UTF-8 text"),
    Wrong("latin-1 on line 2", b"name: a\nseed: \xe9\n", 2, "", "the byte 0xe9"),
    Wrong("UTF-16", RIGHT.encode("utf-16"), 1, "", "expected UTF-8 text"),
    Wrong("control character", "name: a\nseed: \x01\n", 2, "", "a control character"),
    Wrong("NUL", "name: a\x00\n", 1, "", "a control character"),
    Wrong("list", "- a\n- b\n", 1, "", "a list, expected a mapping"),
    Wrong("text", "just text\n", 1, "", "'just text', expected a mapping"),
    Wrong("two documents", "name: a\n---\nname: b\n", 2, "", "a second document"),
    Wrong("tab", "name: a\nnetwork:\n\tlatency_s: 1\n", 3, "", "a tab"),
    Wrong("unclosed quote", 'seed: 1\nname: "a\nvos: []\n', 2, "", "a quote that is never closed"),
    Wrong("unclosed bracket", "name: a\nvos: [1, 2\nseed: 1\n", 2, "", "in brackets"),
    Wrong("bare parameter", "name: a\nprotocol: {ttl: ${ttl}}\n", 2, "", 'in quotes, as "${ttl}"'),
    Wrong("colon in text", "name: a\nseed: b: c\n", 2, "", "mapping values are not allowed"),
    Wrong("stray bracket", "name: a\n]\n", 2, "", "broken YAML"),
    Wrong("100,000 brackets", "[" * 100_000, 1, DEEP, "nested too deep"),
    Wrong(
        "100,000 brackets under a key",
        "vos: " + "[" * 100_000,
        1,
        f"vos.{DEEP[2:]}",
        "nested too deep",
    ),
    Wrong("100,000 dashes", "- " * 100_000, 1, DEEP, "nested too deep"),
    Wrong("100,000 braces", "{" * 100_000, 1, "", "a key that is no text"),
    Wrong("300,000 values", "vos:\n" + "- 1\n" * 300_000, 199_999, "vos.199997", "too many values"),
    Wrong("more than 4 MiB", "#" * (4 * 1024 * 1024 + 1), None, "", "a larger file"),
    Wrong("alias bomb", ALIAS_BOMB, 6, "a5.0", "too many values"),
    Wrong("alias ladder", ALIAS_LADDER, 64, "a63.0", "nested too deep"),
    Wrong("alias of itself", "name: a\nvos: &v [*v]\n", 2, "vos.0", "the alias *v"),
    Wrong("alias of nothing", "name: *who\n", 1, "name", "the alias *who"),
    Wrong("100,000 tag directives", "%TAG !a! b\n" * 100_000, 1, "", "%TAG"),
    Wrong("list as key", "name: a\n? [x]\n: b\n", 2, "", "a key that is no text"),
]

NO_PLAIN_DATA = [
    Wrong("duplicate key", edited("seed: 7", "seed: 7\nseed: 8"), 3, "seed", "first on line 2"),
    Wrong("duplicate inner key", edited("cpus: 4", "count: 4"), 17, f"{CPUS[:-4]}count", "again"),
    Wrong("custom tag", edited("name: base", "name: !!python/name:os.system x"), 1, "name", "tag"),
    Wrong("core tag", edited("seed: 7", "seed: !!int '7'"), 2, "seed", "a value without a tag"),
    Wrong("NaN", edited("ttl: 3", "ttl: .nan"), 8, "protocol.ttl", "a finite number"),
    Wrong("infinity", edited("run_s: 60", "run_s: -.inf"), 22, f"{JOB}.run_s", "a finite number"),
    Wrong("huge exponent", edited("run_s: 60", "run_s: 1e999"), 22, f"{JOB}.run_s", "smaller"),
    Wrong("leading zero", edited("cpus: 4", "cpus: 010"), 17, CPUS, "without leading zeros"),
    Wrong("5,000 digits", edited("seed: 7", "seed: " + "9" * 5000), 2, "seed", "40 characters"),
]

NO_SUCH_KEY = [
    Wrong("unknown key", edited("cpus: 4", "cpu: 4"), 17, f"{CPUS[:-1]}", "expected cpus"),
    Wrong("unknown key at the top", edited("protocol:", "protocols:"), 7, "protocols", "protocol"),
    Wrong("nothing like it", edited("seed: 7", "zzz: 7"), 2, "zzz", "expected one of name, seed"),
    Wrong("a key of another section", edited("seed: 7", "ttl: 7"), 2, "ttl", "it in protocol"),
    Wrong(
        "a key of the top level",
        edited("ttl: 3", "faults: 3"),
        8,
        "protocol.faults",
        "expected it at the top level",
    ),
    Wrong(
        "a key of two other sections",
        edited("ttl: 3", "policy: easy"),
        8,
        "protocol.policy",
        "expected it in vos.*.clusters.* or in vos_from_trace",
    ),
    Wrong("a huge number", edited("seed: 7", "seed: 1e30"), 2, "seed", "found 1e+30, expected"),
    Wrong(
        "like one that stands elsewhere",
        edited("    workload:", "    cluster:"),
        19,
        "vos.0.cluster",
        "expected clusters",
    ),
    Wrong("merge key", edited("cpus: 4", "<<: {cpus: 4}"), 17, f"{CPUS[:-4]}<<", "an unknown key"),
    Wrong("control character in a key", '"a\\nb": 1\n', 1, "'a\\nb'", "an unknown key"),
    Wrong("missing key", edited("run_s: 60", "submit_s: 60"), 21, f"{JOB}.run_s", "nothing"),
    Wrong("VO without a name", edited("name: south", "count: 2"), 27, "vos.1.name", "nothing"),
    Wrong("VO without clusters", "name: a\nvos:\n  - name: b\n", 3, "vos.0.clusters", "nothing"),
    Wrong("no VO", "name: a\nvos: []\n", 2, "vos", "an empty list, expected at least 1"),
    Wrong("neither kind of VO", "name: a\n", 1, "", "exactly one of `vos` and `vos_from_trace`"),
]

WRONG_TYPE = [
    Wrong("text for a number", edited("cpus: 4", "cpus: four"), 17, CPUS, "an integer"),
    Wrong("number in quotes", edited("cpus: 4", "cpus: '4'"), 17, CPUS, "'4', expected a whole"),
    Wrong("fraction", edited("cpus: 4", "cpus: 4.5"), 17, CPUS, "4.5, expected an integer"),
    Wrong("boolean for a number", edited("cpus: 4", "cpus: true"), 17, CPUS, "true, expected"),
    Wrong("YAML 1.1 number", edited("cpus: 4", "cpus: 1_000"), 17, CPUS, "'1_000'"),
    Wrong("YAML 1.1 base 60", edited("run_s: 60", "run_s: 1:30"), 22, f"{JOB}.run_s", "'1:30'"),
    Wrong("nan as text", edited("run_s: 60", "run_s: nan"), 22, f"{JOB}.run_s", "a number"),
    Wrong("yes", edited("run_s: 60", "run_s: 60\n          checkpointable: yes"), 23,
          f"{JOB}.checkpointable", "'yes', expected true or false"),
    Wrong("number for a name", edited("name: base", "name: 5"), 1, "name", "5, expected text"),
    Wrong("name with a space", edited("name: base", "name: a b"), 1, "name", "a name: at most 64"),
    Wrong("number for a section", edited("ttl: 3", "ttl: 3\nworkload: 4"), 9, "workload", "4"),
    Wrong("nothing for a section", edited("  ttl: 3\n", ""), 7, "protocol", "nothing"),
    Wrong("mapping for a list", "name: a\nvos: {name: b}\n", 2, "vos", "expected a list"),
    Wrong("number for machines", edited("- cpus: 8", "- machines: 8"), 29,
          "vos.1.clusters.0.machines", "8, expected a list or a mapping"),
    Wrong("list for a policy", edited("policy: fcfs", "policy: [fcfs]"), 13,
          "vos.0.clusters.0.policy", "a list, expected a mapping or text"),
    Wrong("number for a policy's name", edited("policy: fcfs", "policy: {name: 5}"), 13,
          "vos.0.clusters.0.policy.name", "5, expected text"),
    Wrong("a lease that is over too soon",
          edited("ttl: 3", "forwarding: {name: reserve, settings: {lease_s: 0.005}}"), 8,
          "protocol.forwarding.settings.lease_s", "expected more than 0.005 s"),
    Wrong("an edge to a VO that is not there",
          edited("ttl: 3", "information: {name: edges, settings: {edges: [[0, 1], [1, 7]]}}"), 8,
          "protocol.information.settings.edges.1", "VO 7, expected at most 1"),
    Wrong("unknown word", edited("ttl: 3", "forwarding: wait"), 8, "protocol.forwarding", "reject"),
    Wrong("one end of a link", edited("links: []", "links: [{between: [south], latency_s: 1}]"), 6,
          "network.links.0.between.1", "nothing"),
]  # fmt: skip

WRONG_SIZE = [
    Wrong("negative", edited("cpus: 4", "cpus: -4"), 17, CPUS, "-4, expected at least 1"),
    Wrong("zero", edited("cpus: 4", "cpus: 0"), 17, CPUS, "0, expected at least 1"),
    Wrong("measured until before it begins",
          edited("  ttl: 3\n", "  ttl: 3\nmetrics: {submitted_from_s: 9, submitted_until_s: 9}\n"),
          9, "metrics", "`submitted_until_s` above `submitted_from_s`"),
    Wrong("admission of a VO that is not there",
          edited("    clusters:\n      - cpus: 8",
                 "    admission: {name: limited, settings: {from_vos: [nort]}}\n"
                 "    clusters:\n      - cpus: 8"),
          28, "vos.1.admission.settings.from_vos", "'nort', expected the name of a VO, such as n"),
    Wrong("negative time", edited("run_s: 60", "run_s: -1"), 22, f"{JOB}.run_s", "0.000001"),
    Wrong("huge", edited("cpus: 4", "cpus: 1" + "0" * 30), 17, CPUS, "at most 1000000"),
    Wrong("huge time", edited("run_s: 60", "run_s: 1e30"), 22, f"{JOB}.run_s", "at most 10"),
    Wrong("no speed", edited("cpus: 4", "mips: 0"), 17, f"{CPUS[:-4]}mips", "at least 1"),
    Wrong("utility above one", option("speed", "              options: [{value: 1, utility: 2}]"),
          26, f"{JOB}.requirements.0.options.0.utility", "2, expected at most 1"),
    Wrong("machines in all", edited("count: 2", "count: 1000000"), 9, "vos", "1000001 machines"),
    Wrong("CPUs in all", edited("cpus: 4", "cpus: 1000000").replace("t: 2", "t: 11"), 9, "vos",
          "11000008 CPUs in all"),
    Wrong("VOs in all", "name: a\nvos:\n" + "".join(
        f"  - {{name: {name}, count: 10000, clusters: [{{cpus: 1}}],"
        " workload: {jobs: []}}\n" for name in "abc"),
          2, "vos", "30000 VOs in all"),
]  # fmt: skip

WRONG_NAMES = [
    Wrong("VO twice", edited("name: south", "name: north"), 27, "vos.1.name", "'north' again"),
    Wrong("VO of all", edited("name: south", "name: grid"), 27, "vos.1.name", "'grid', expected"),
    Wrong("VO twice by count", edited("name: south", "name: north1\n"
          "    clusters: [{cpus: 1}]\n  - name: north\n    count: 2"), 29,
          "vos.2.name", "'north1' again"),
    Wrong("cluster twice", edited("- cpus: 8", "- cpus: 8\n      - cpus: 9"), 30,
          "vos.1.clusters.1.name", "'cluster' again"),
    Wrong("link to nobody", edited("[]", "[{between: [north, sorth], latency_s: 1}]"), 6,
          "network.links.0.between.1", "'sorth', expected the name of a VO, such as south"),
    Wrong("link to itself", edited("[]", "[{between: [south, south], latency_s: 1}]"), 6,
          "network.links.0.between", "'south' twice"),
    Wrong("unknown policy", edited("policy: fcfs", "policy: fcsf"), 13, "vos.0.clusters.0.policy",
          "'fcsf', expected a policy, such as fcfs"),
    Wrong("unknown policy with settings", edited("policy: fcfs", "policy: {name: nosuch}"), 13,
          "vos.0.clusters.0.policy.name", "'nosuch', expected a policy"),
    Wrong("unknown generator of machines",
          edited("- cpus: 8", "- machines: {generator: nosuch, count: 3}"), 29,
          "vos.1.clusters.0.machines.generator", "'nosuch', expected a generator of machines"),
    Wrong("unknown generator of jobs",
          edited("- cpus: 8", "- cpus: 8\n    workload: {generator: nosuch}"), 30,
          "vos.1.workload.generator", "'nosuch', expected a generator of jobs"),
    Wrong("settings that do not go together",
          edited("policy: fcfs", "policy: batsim"), 13, "vos.0.clusters.0.policy.settings.command",
          "neither, expected a command or an endpoint"),
    Wrong("setting that cannot be by itself",
          edited("policy: fcfs", "policy: {name: batsim, settings: {command: x}}"), 13,
          "vos.0.clusters.0.policy.settings.command", "'x', expected a command with {endpoint}"),
    Wrong("setting of a policy that has none",
          edited("policy: fcfs", "policy: {name: fcfs, settings: {depth: 4}}"), 13,
          "vos.0.clusters.0.policy.settings.depth",
          "found a setting, expected none, for fcfs has no settings"),
    Wrong("unknown setting of a generator",
          edited("- cpus: 8", "- cpus: 8\n    workload:\n"
          "      generator: partial_utility\n      settings:\n        usrs: 5"), 33,
          "vos.1.workload.settings.usrs", "an unknown key, expected users"),
    Wrong("a law that a generator does not know",
          edited("- cpus: 8", "- cpus: 8\n    workload:\n      generator: stochastic\n"
          "      settings:\n        jobs: 5\n        arrivals: {distribution: expo, mean_s: 1}\n"
          "        work: {distribution: fixed, mean_s: 1}"), 34,
          "vos.1.workload.settings.arrivals.law", "'expo', expected one of exponential, fixed"),
    Wrong("a mapping without its law",
          edited("- cpus: 8", "- cpus: 8\n    workload:\n      generator: stochastic\n"
          "      settings:\n        jobs: 5\n        arrivals: {mean_s: 1}\n"
          "        work: {distribution: fixed, mean_s: 1}"), 34,
          "vos.1.workload.settings.arrivals.law", "found nothing, expected a value"),
    Wrong("wrong setting of a generator of machines",
          edited("- cpus: 8", "- machines:\n          generator: partial_utility\n"
          "          count: 3\n          settings: {speeds_mips: fast}"), 32,
          "vos.1.clusters.0.machines.settings.speeds_mips", "expected a list"),
    Wrong("a key of the top level where few others are",
          edited("links: []", "links: [{between: [north, south], latency_s: 1, vos: 1}]"), 6,
          "network.links.0.vos", "it at the top level; here, one of between, latency_s"),
    Wrong("gangs on machines that are switched off",
          edited("- cpus: 8", "- policy: afcfs\n        cpus: 8\n"
          "        switch_off: {after_s: 60}"), 29, "vos.1.clusters.0.machines",
          "found machines with switch_off, expected none, for gang policy afcfs takes no account"),
    Wrong("switched off, and no word when",
          edited("cpus: 4", "cpus: 4\n            switch_off: {boot_s: 5}"), 18,
          f"{CPUS[:-4]}switch_off.after_s", "nothing"),
    Wrong("speed-beside-machines",
          edited("policy: fcfs", "policy: fcfs\n        mips: 2000"), 12,
          "vos.0.clusters.0", "`mips` in each entry of `machines`"),
    Wrong("switched off beside a list of machines",
          edited("policy: fcfs", "policy: fcfs\n        switch_off: {after_s: 60}"), 12,
          "vos.0.clusters.0", "`switch_off` in each entry of `machines`"),
    Wrong("license of nobody", edited("[solver]", "[silver]"), 18, f"{CPUS[:-4]}licenses.0",
          "such as solver"),
    Wrong("license twice", edited("[{name: solver, copies: 2}]",
          "[{name: solver, copies: 2}, {name: solver, copies: 1}]"), 14,
          "vos.0.clusters.0.licenses.1.name", "'solver' again"),
]  # fmt: skip

WRONG_JOBS = [
    Wrong("memory that no machine gives", edited("run_s: 60", "run_s: 60\n          ram_mb: 5"), 23,
          f"{JOB}.ram_mb", "found 5, expected none, for no machine of the grid gives its ram_mb"),
    Wrong("larger than any machine", edited("cpus: 2", "cpus: 9"), 23,
          f"{JOB}.processors", "9, expected at most 8"),
    Wrong("larger than its own cluster", edited("cpus: 2", "cpus: 8").replace(
        "    workload:\n", "    workload:\n      entry_point: cluster\n"), 24, f"{JOB}.processors",
          "8, expected at most 4"),
    Wrong("into one of two clusters", edited("      - name: farm", "      - cpus: 3\n"
          "      - name: farm").replace("jobs:", "entry_point: cluster\n      jobs:"), 21,
          "vos.0.workload.entry_point", "a VO of 2 clusters"),
    Wrong("number twice", edited("        - number: 1", "        - {number: 1, run_s: 5}\n"
          "        - number: 1"), 22, f"{JOB[:-1]}1.number", "1 again"),
    Wrong("number of a numberless job", edited("        - number: 1", "        - number: 2\n"
          "          run_s: 5\n        -"), 24, f"{JOB[:-1]}1.number", "2 again"),
    Wrong("text for a speed", option("speed", "              options: [{value: linux}]"), 26,
          f"{JOB}.requirements.0.options.0.value", "'linux', expected a number"),
    Wrong("number for a system", option("operating_system", "              options: [{value: 3}]"),
          26, f"{JOB}.requirements.0.options.0.value", "3.0, expected one of linux"),
    Wrong("negative requirement", option("ram", "              options: [{value: -5}]"), 26,
          f"{JOB}.requirements.0.options.0.value", "-5.0, expected at least 0"),
    Wrong("two sources of jobs", edited("jobs:", "trace: wrong.yaml\n      jobs:"), 19,
          "vos.0.workload", "exactly one of `trace`"),
    Wrong("jobs of a whole grid", edited("seed: 7", "workload: {jobs: [{run_s: 1}]}"), 2,
          "workload.jobs", "a trace or a generator"),
    Wrong("missing trace", edited("seed: 7", "workload: {trace: nosuch.swf}"), 2, "workload.trace",
          "'nosuch.swf': no such file"),
    Wrong("folder for a trace", edited("seed: 7", "workload: {trace: .}"), 2, "workload.trace",
          "'.': a folder"),
    Wrong("NUL in a trace's path", edited("seed: 7", 'workload: {trace: "a\\0b"}'), 2,
          "workload.trace", "'a\\x00b'"),
    Wrong("trace with an endless name", edited("seed: 7", f"workload: {{trace: {'a' * 5000}}}"), 2,
          "workload.trace", "'aaaaa"),
    Wrong("trace of a VO", edited("- cpus: 8", "- cpus: 8\n"
          "    workload: {trace: nosuch.swf}"), 30, "vos.1.workload.trace", "no such file"),
]  # fmt: skip

WRONG_PARAMETERS = [
    Wrong("unknown parameter", edited("ttl: 3", "ttl: ${hops}"), 8, "protocol.ttl", "lat, who"),
    Wrong("nameless parameter", edited("ttl: 3", 'ttl: "${}"'), 8, "protocol.ttl", "lat, who"),
    Wrong("unclosed reference", edited("ttl: 3", "ttl: ${lat"), 8, "protocol.ttl", "lat, who"),
    Wrong("parameter of a wrong type", edited("ttl: 3", "ttl: ${who}"), 8, "protocol.ttl",
          "'north', expected an integer"),
    Wrong("parameter within text", edited("name: base", "name: a ${lat}"), 1, "name", "'a 0.1'"),
    Wrong("list of parameters", edited("{lat: 0.1, who: north}", "[lat, who]"), 3, "parameters",
          "a list, expected a mapping"),
    Wrong("list for a parameter", edited("{lat: 0.1,", "{lat: [1],"), 3, "parameters.lat",
          "a list, expected one value"),
    Wrong("parameter of a parameter", edited("{lat: 0.1,", '{lat: "${who}",'), 3, "parameters.lat",
          "without `${`"),
    Wrong("unused parameter", edited("{lat: 0.1,", "{lat: 0.1, latt: 1,"), 3, "parameters.latt",
          "a parameter that nothing uses, expected ${latt} in a value of the scenario "
          "(did you mean the parameter lat?)"),
    Wrong("unused parameter like a key", edited("{lat: 0.1,", "{lat: 0.1, sed: 1,"), 3,
          "parameters.sed", "(did you mean the key seed?)"),
    Wrong("mistyped use of a parameter", edited("latency_s: ${lat}", "latency_s: ${latt}"), 5,
          "network.latency_s", "'${latt}', expected the name of a parameter, such as lat"),
    Wrong("name of a parameter", edited("{lat: 0.1,", "{lat: 1, a.b: 1,"), 3, "parameters.a.b",
          "a name of letters"),
    Wrong("--set without a value", RIGHT, None, "", "expected name=value", ("lat",)),
    Wrong("--set without a name", RIGHT, None, "", "expected name=value", ("=5",)),
    Wrong("--set of nothing known", RIGHT, None, "latt", "expected lat", ("latt=5",)),
    Wrong("--set of no key", RIGHT, None, "protocol.tll", "expected ttl", ("protocol.tll=5",)),
    Wrong("--set of no section", RIGHT, None, "nett.a", "no such", ("nett.a=5",)),
    Wrong("--set past a list", RIGHT, None, "vos.2", "below 2", ("vos.2.name=x",)),
    Wrong("--set by name in a list", RIGHT, None, "vos.north", "below 2", ("vos.north=x",)),
    Wrong("--set below a number", RIGHT, None, "seed.a", "found 7", ("seed.a=1",)),
    Wrong("--set of a wrong type", RIGHT, None, "network.latency_s", "'fast'", ("lat=fast",)),
    Wrong("--set of a wrong key", RIGHT, None, "protocol.ttl", "'x'", ("protocol.ttl=x",)),
    Wrong("--set of a list", RIGHT, None, "lat", "one value", ("lat=[1, 2]",)),
    Wrong("--set of NaN", RIGHT, None, "lat", "a finite number", ("lat=.nan",)),
    Wrong("--set of broken YAML", RIGHT, None, "lat", "in brackets", ("lat=[1, ",)),
    Wrong("--set of 100,000 brackets", RIGHT, None, f"seed.{DEEP}", "deep",
          ("seed=" + "[" * 100_000,)),
    Wrong("--set of two documents", RIGHT, None, "lat", "a second document", ("lat=1\n---\n2",)),
    Wrong("--set of a deep path", RIGHT, None, f"vos.{DEEP[2:]}", "at most 64",
          ("vos" + ".0" * 999 + "=1",)),
    Wrong("--set of a key twice", RIGHT, None, "protocol.ttl", "again",
          ("protocol={ttl: 1, ttl: 2}",)),
    Wrong("--set of nothing", RIGHT, None, "seed", "found nothing", ("seed=",)),
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
