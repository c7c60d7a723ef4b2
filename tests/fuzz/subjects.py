"""What is fuzzed: for each reader, inputs that are right, and the commands that read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

from tests.fuzz.mutations import NASTY, mutated

CORPUS = Path(__file__).parent / "corpus"
Files = dict[str, bytes]
"""The content of each file by its path in the folder of an input."""
Command = tuple[str, ...]


@dataclass(frozen=True)
class Subject:
    """`files` are what a reader is given, `commands` what is done with them.

    In commands `IN/` stands for the folder of the input and `OUT/` for that of the results.
    """

    files: st.SearchStrategy[Files]
    commands: st.SearchStrategy[Command]


def _always(*commands: str) -> st.SearchStrategy[Command]:
    return st.sampled_from([tuple(command.split()) for command in commands])


def _corpus(*names: str) -> list[bytes]:
    return [(CORPUS / name).read_bytes() for name in names]


def _one(
    name: str, corpus: Sequence[bytes], beside: Files | None = None
) -> st.SearchStrategy[Files]:
    return mutated(corpus).map(lambda data: {**(beside or {}), name: data})


def _one_of(whole: Files) -> st.SearchStrategy[Files]:
    """All files as they are but one, which is changed, gone, or another one's."""

    def changed(name: str) -> st.SearchStrategy[Files]:
        others = {other: data for other, data in whole.items() if other != name}
        other = st.sampled_from(sorted(whole)).map(lambda chosen: {**others, name: whole[chosen]})
        near = mutated([whole[name]]).map(lambda data: {**others, name: data})
        return st.one_of(near, near, near, other, st.just(others))

    return st.sampled_from(sorted(whole)).flatmap(changed)


@cache
def _parquet_logs() -> list[bytes]:
    from grid.workload.logs import read_gwf, read_swf
    from grid.workload.parquet import write_parquet
    from tests.fuzz.judge import private_folder

    with private_folder() as name:
        folder = Path(name)
        write_parquet(read_swf(CORPUS / "log.swf"), folder / "swf.parquet")
        write_parquet(read_gwf(CORPUS / "log.gwf"), folder / "gwf.parquet")
        return [path.read_bytes() for path in sorted(folder.iterdir())]


@cache
def _run_folder() -> Files:
    import grid
    from tests.fuzz.judge import private_folder

    with private_folder() as name:
        grid.run(CORPUS / "scenario.yaml", out=Path(name) / "run")
        return _contents(Path(name))


@cache
def _sweep_folder() -> Files:
    from grid.lab.experiment import load_experiment
    from grid.lab.sweep import Workers, run_sweep
    from tests.fuzz.judge import private_folder

    with private_folder() as name:
        file = CORPUS / "experiment.yaml"
        run_sweep(load_experiment(file), file, Path(name) / "sweep", Workers(in_process=True))
        return _contents(Path(name))


def _contents(folder: Path) -> Files:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(paths)}


WORDS = (
    "run", "check", "sweep", "report", "trace", "schema", "policies", "plugins", "chaos",
    "scenarios", "IN/scenario.yaml", "IN/experiment.yaml", "IN/log.swf", "IN/", "two-vos", "--set",
    "seed=1,2", "vos.0.count=2", "a=b=c", "--seed", "--seeds", "1", "--in-process", "--out",
    "OUT/x", "--placement", "vo", "--live", "--speedup", "--from-s", "--user",
    "--cpus", "--to", "OUT/x.swf", "OUT/x.parquet", "--json", "--quick", "--dry-run", "--", "-",
    "--help", "--version", "--force", "--traceback", "--min-cpus",
)  # fmt: skip
"""No command of these takes minutes, starts Ray, or writes elsewhere by default."""


def _is_bounded(words: Sequence[str]) -> bool:
    """Whether a command starts no Ray and writes only to the folders that it names."""
    named = {word.split("=")[0] for word in words}
    if words[0] in ("run", "sweep", "chaos"):
        return "--in-process" in named and ("--out" in named or words[0] == "chaos")
    return words[0] not in ("init", "verify", "reproduce")


def command_lines() -> st.SearchStrategy[Command]:
    """Command lines of known words in any order, and some unknown ones."""
    nasty = st.sampled_from(NASTY).map(lambda data: data.decode("utf-8", "surrogateescape"))
    word = st.one_of(st.sampled_from(WORDS), st.sampled_from(WORDS), nasty)
    lines = st.lists(word.filter(lambda word: "\0" not in word), min_size=1, max_size=7)
    whole = lines.map(lambda words: (*words, "--in-process", "--out", "OUT/here"))
    return st.one_of(lines.map(tuple), whole).filter(_is_bounded)


SCENARIO = ("scenario.yaml", "faults.yaml", "gangs.yaml")
ALL = {
    name: (CORPUS / name).read_bytes() for name in ("scenario.yaml", "experiment.yaml", "log.swf")
}
SUBJECTS: dict[str, Callable[[], Subject]] = {
    "scenario": lambda: Subject(
        _one("s.yaml", _corpus(*SCENARIO), ALL), _always("check IN/s.yaml"),
    ),
    "experiment": lambda: Subject(
        _one("e.yaml", _corpus("experiment.yaml"), ALL),
        _always("check IN/e.yaml", "sweep IN/e.yaml --dry-run --in-process --out OUT/sweep"),
    ),
    "swf": lambda: Subject(
        _one("log.swf", _corpus("log.swf"), {"traced.yaml": (CORPUS / "traced.yaml").read_bytes()}),
        _always(
            "trace IN/log.swf", "trace IN/log.swf --json --to OUT/log.gwf",
            "trace IN/log.swf --to OUT/log.parquet --interarrival-factor 0.5",
            "run IN/traced.yaml --in-process --quiet --out OUT/run",
        ),
    ),
    "gwf": lambda: Subject(
        _one("log.gwf", _corpus("log.gwf")),
        _always(
            "trace IN/log.gwf", "trace IN/log.gwf --to OUT/log.swf.gz",
            "trace IN/log.gwf --json --to OUT/log.parquet",
        ),
    ),
    "parquet": lambda: Subject(
        _one("log.parquet", _parquet_logs()),
        _always(
            "trace IN/log.parquet --to OUT/log.swf", "trace IN/log.parquet --json --to OUT/log.gwf",
        ),
    ),
    "run": lambda: Subject(
        _one_of(_run_folder()),
        _always(
            "report IN/run --quiet",
            f"run {CORPUS}/scenario.yaml --in-process --quiet --out IN/run",
        ),
    ),
    "sweep": lambda: Subject(
        _one_of(_sweep_folder()),
        _always(
            "report IN/sweep --quiet",
            f"sweep {CORPUS}/experiment.yaml --in-process --quiet --out IN/sweep",
        ),
    ),
    "words": lambda: Subject(st.just(dict(ALL)), command_lines()),
}  # fmt: skip
