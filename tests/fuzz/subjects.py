"""What is fuzzed: for each reader, inputs that are right, and the commands that read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

from tests.fuzz.mutations import mutated

CORPUS = Path(__file__).parent / "corpus"
Files = dict[str, bytes]
"""The content of each file by its path in the folder of an input."""


@dataclass(frozen=True)
class Subject:
    """`files` are what a reader is given, `commands` what is done with them.

    In commands `IN` stands for the folder of the input and `OUT` for that of the results.
    """

    files: st.SearchStrategy[Files]
    commands: Sequence[Sequence[str]]


def _corpus(*names: str) -> list[bytes]:
    return [(CORPUS / name).read_bytes() for name in names]


def _one(
    name: str, corpus: Sequence[bytes], beside: Files | None = None
) -> st.SearchStrategy[Files]:
    return mutated(corpus).map(lambda data: {**(beside or {}), name: data})


@cache
def parquet_logs() -> list[bytes]:
    """The logs of the corpus as Parquet, and one that is packed to next to nothing."""
    from grid.workload.gwf import read_gwf
    from grid.workload.parquet import write_parquet
    from grid.workload.swf import read_swf
    from tests.fuzz.judge import private_folder

    with private_folder() as name:
        folder = Path(name)
        for path in (CORPUS / "log.swf", CORPUS / "log.gwf"):
            log = read_swf(path) if path.suffix == ".swf" else read_gwf(path)
            write_parquet(log, folder / f"{path.suffix}.parquet")
        return [path.read_bytes() for path in sorted(folder.iterdir())]


TRACED = b"""\
name: traced
workload: {trace: log.swf}
vos_from_trace: {route: partition}
"""
SUBJECTS: dict[str, Callable[[], Subject]] = {
    "swf": lambda: Subject(
        _one("log.swf", _corpus("log.swf")),
        [["trace", "IN/log.swf"], ["trace", "IN/log.swf", "--json", "--to", "OUT/log.gwf"],
         ["trace", "IN/log.swf", "--to", "OUT/log.parquet", "--interarrival-factor", "0.5"]],
    ),
    "gwf": lambda: Subject(
        _one("log.gwf", _corpus("log.gwf")),
        [["trace", "IN/log.gwf"], ["trace", "IN/log.gwf", "--to", "OUT/log.swf.gz"],
         ["trace", "IN/log.gwf", "--json", "--to", "OUT/log.parquet"]],
    ),
    "parquet": lambda: Subject(
        _one("log.parquet", parquet_logs()),
        [["trace", "IN/log.parquet", "--to", "OUT/log.swf"],
         ["trace", "IN/log.parquet", "--json", "--to", "OUT/log.gwf"]],
    ),
}  # fmt: skip
