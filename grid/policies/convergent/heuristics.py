"""The heuristics of Convergent Scheduling with their weights, and those of plugins.

The heuristics of the papers are in `kernels`. Another one is a function, in any package:

    def narrow(matrix, weight):
        matrix.priority += weight / matrix.processors[:, None]

that the package's pyproject.toml names:

    [project.entry-points."grid.heuristics"]
    narrow = "my_package:narrow"

after which a scenario can give it a weight for `cs2`, `cs_i_p` and the like, and for `flexible`
with `priority: cs2` or `cs2007`: `settings: {weights: {narrow: 3.0}}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from grid.model.arrays import Bools, Floats
from grid.model.errors import InvalidPlugin, expected_name, kind_of
from grid.model.plugins.calls import Call
from grid.model.plugins.registry import Kind, Plugins
from grid.model.plugins.settings import Weight
from grid.model.time import Time
from grid.policies.convergent.matrix import JobMachineMatrix, MatrixBuilder
from grid.policies.interface import ClusterView

Heuristic = Callable[[JobMachineMatrix, float], None]
"""Adds its share, times a weight, to `priority` of a matrix."""
Weights = dict[str, Weight]
"""Weights by the name of a heuristic: of the paper, or of a plugin."""

DEADLINE_MINIMUM = 0.1
DEADLINE_K = 1.3
F1 = ("words", "words_max", "formula")
WORDS, WORDS_MAX, FORMULA = range(3)
"""Readings of C07 f1 and Eq. 1, see `Cs2007Weights`."""
NON_PREEMPTIVE_OVERHEAD = 800.0
"""C07's Delta for versions that do not preempt."""
BANDWIDTH_MBPS = 1000.0
"""Of every link by default: the farm's network is fast and homogeneous."""

CS2_HEURISTICS = {
    "deadline": (
        "CS2 Eq. 2 to 7: favours urgent jobs, on the machines where they are least urgent. Adds "
        "nothing for jobs without a deadline or jobs that are late on every machine (Eq. 6)."
    ),
    "overhead": "CS2 Eq. 8: favours the machine on which a job has run, in proportion to its "
    "completed work.",
    "licenses": "CS2 Eq. 9 to 11: favours jobs whose licenses are in demand. Adds nothing for a "
    "job without licenses.",
    "wait": "CS2 Eq. 12, as in C07: favours short jobs and fast machines.",
    "anti_aging": (
        "CS2 Eq. 13: favours jobs that have waited long relative to their remaining time."
    ),
}
CS2_WEIGHTS = {"deadline": 15.0, "overhead": 40.0, "licenses": 5.0, "wait": 8.0, "anti_aging": 5.0}
"""Found by hand in the paper (CS2 V, footnote 1)."""
CS2007_HEURISTICS = {
    "deadline": (
        "C07 f1 and Eq. 1: favours urgent jobs, on the machines where they are least urgent. The "
        "weight is MAX. Jobs without a deadline have MIN on every machine."
    ),
    "licenses": "C07 w(i): favours jobs that request licenses in demand, especially critical ones.",
    "input": "C07 Transf: favours machines that read the job's input quickly.",
    "wait": "CS2 Eq. 12, as in C07: favours short jobs and fast machines.",
    "overhead": "A fixed value for the assignments of the previous plan: those of running jobs.",
    "anti_aging": "C07: proportional to the time since submission, in seconds.",
}
CS2007_WEIGHTS = {
    "deadline": 10.0, "licenses": 2.5, "input": 3.0, "wait": 4.0, "overhead": 8.0,
    "anti_aging": 0.02,
}  # fmt: skip
"""C07's constants MAX, LI, IN, WM, Delta and AA (a second), found by hand there (footnote 1)."""


class Cs2Weights(NamedTuple):
    """Weights of the heuristics of CS 2.0, in the order in which they are added."""

    deadline: float
    overhead: float
    licenses: float
    wait: float
    anti_aging: float
    suspended: bool
    """Whether Eq. 8 is for suspended jobs too, and not only for running ones."""


class Cs2007Weights(NamedTuple):
    """Weights of the heuristics of C07, in the order in which they are added.

    The formula of f1 and the words around Eq. 1 contradict each other. By the words, the second
    term (MAX - f1) of a machine is the higher, the likelier the job meets its deadline there. By
    the formula, f1 falls back to MIN if the deadline cannot be met, so that the slowest machine
    has the highest second term. `f1` chooses one of them for both terms: WORDS sets f1 to MAX on a
    machine on which the job is late, as CS2 Eq. 4 does; FORMULA sets it to MIN.

    If the job is late on every machine, WORDS leaves d_i = 0. Each machine then gets MIN, which is
    the third case of f1 and the result of the formula; with WORDS_MAX, each gets MAX.
    """

    deadline: float
    licenses: float
    input: float
    wait: float
    overhead: float
    anti_aging: float
    minimum: float
    k: float
    f1: int


@dataclass(frozen=True, slots=True)
class Heuristics:
    """The heuristics of a paper, then those of plugins."""

    weights: Cs2Weights | Cs2007Weights
    plugins: tuple[tuple[Heuristic, float], ...] = ()
    bandwidths_mbps: tuple[float, ...] = (BANDWIDTH_MBPS,)


def cs2_heuristics(given: Weights, plugins: Plugins, *, suspended: bool = True) -> Heuristics:
    """Those of CS 2.0. Raises InvalidPlugin for the name of another heuristic than a plugin's."""
    own, others = _weighed(given, CS2_WEIGHTS, plugins)
    return Heuristics(Cs2Weights(**own, suspended=suspended), others)


def cs2007_heuristics(
    given: Weights,
    plugins: Plugins,
    *,
    minimum: float = DEADLINE_MINIMUM,
    k: float = DEADLINE_K,
    f1: str = F1[WORDS],
    bandwidths_mbps: tuple[float, ...] = (BANDWIDTH_MBPS,),
    overhead: float = CS2007_WEIGHTS["overhead"],
) -> Heuristics:
    """Those of C07; `overhead` is the default of its Delta. Raises as `cs2_heuristics`."""
    own, others = _weighed(given, {**CS2007_WEIGHTS, "overhead": overhead}, plugins)
    weights = Cs2007Weights(**own, minimum=float(minimum), k=float(k), f1=F1.index(f1))
    return Heuristics(weights, others, tuple(bandwidths_mbps))


def _weighed(
    given: Mapping[str, float], default: Mapping[str, float], plugins: Plugins
) -> tuple[dict[str, float], tuple[tuple[Heuristic, float], ...]]:
    """The weights of a paper's heuristics, and plugins with theirs; 0 leaves one out."""
    own = {name: float(given.get(name, weight)) for name, weight in default.items()}
    others: list[tuple[Heuristic, float]] = []
    for name, weight in given.items():
        if name in default:
            continue
        if ":" not in name and name not in plugins.names(HEURISTICS):
            expected = expected_name(name, [*default, *plugins.names(HEURISTICS)], "a heuristic")
            raise InvalidPlugin(repr(name), expected, ("weights", name))
        try:
            heuristic = plugins.make(HEURISTICS, name, {})
        except InvalidPlugin as error:
            path = ("weights", name)
            raise InvalidPlugin(error.found, error.expected, path, error.details) from None
        if weight:
            others.append((heuristic, weight))
    return own, tuple(others)


class HeuristicPriority:
    """The priority of each job of `ClusterView.queue`, from its row of the matrix.

    Both papers give their baselines priorities "computed using the CS heuristics" without saying
    how a row becomes one number. C07 values a job by the `mean` of its row (4.2), and CS 2.0
    matches jobs in the order of their `largest` elements (IV.B): the readings for their baselines.
    """

    def __init__(self, heuristics: Heuristics, row: str) -> None:
        self._heuristics = heuristics
        self._of_mean = row == "mean"
        self._builder = MatrixBuilder()

    def __call__(self, view: ClusterView, now: Time) -> Floats:
        from grid.policies.convergent.kernels import row_values

        matrix = self._builder.matrix(view, self._heuristics, reserved=False)
        values: Floats = row_values(matrix.priority, matrix.eligible, matrix.running, self._of_mean)
        return values


class CheckedHeuristic:
    """A third-party heuristic: it may write to the priority of the matrix and nothing else."""

    def __init__(self, heuristic: Any) -> None:
        self.origin = heuristic.origin
        self._heuristic = heuristic

    def __call__(self, matrix: JobMachineMatrix, weight: float) -> None:
        can_run = matrix.priority > -np.inf
        arrays: dict[str, Any] = {}
        for one in fields(matrix):
            value = getattr(matrix, one.name)
            if isinstance(value, np.ndarray) and one.name != "priority":
                arrays[one.name] = value.view()
                arrays[one.name].flags.writeable = False
        given = replace(matrix, **arrays)
        self._heuristic(given, weight)
        problem = _problem(given.priority, can_run)
        if problem:
            raise self.origin.failed(f"it returned {problem}")
        matrix.priority = np.ascontiguousarray(given.priority, np.float64)


def _problem(priority: Any, can_run: Bools) -> str:
    if np.shape(priority) != can_run.shape:
        return f"priorities of shape {np.shape(priority)}, expected {can_run.shape}"
    if np.isnan(priority).any():
        return "a priority that is not a number"
    if not np.array_equal(priority > -np.inf, can_run) or (priority == np.inf).any():
        return (
            "a priority that changes which machines can run a job: keep -inf for machines that "
            "cannot, and finite numbers for all others"
        )
    return ""


def _answer_problem(answer: Any, *_: object) -> str | None:
    return None if answer is None else f"returned {kind_of(answer)}, expected None"


def _calls(_: object) -> dict[str, Call]:
    return {"__call__": Call("it", ("matrix", "weight"), _answer_problem)}


HEURISTICS = Kind(
    "heuristics",
    "heuristic",
    "adds its weight to the matrix of Convergent Scheduling",
    {},
    _calls,
    given=("matrix", "weight"),
    place="settings.weights of cs2, cs_i_p and their variants",
    adapt=CheckedHeuristic,
)
"""Heuristics of plugins."""
