"""A distributed emulator of grids of virtual organizations on Ray actors.

For notebooks: `load_scenario`, `run`, `sweep`, `load_results`, `load_differences`. Importing this
loads nothing heavy.
Scenarios and experiments are files in YAML, or mappings with the same keys and values.

>>> import grid
>>> scenario = grid.load_scenario("scenarios/two-vos.yaml", ["seed=7"])
>>> run = grid.run(scenario)
>>> run.metrics["grid"]["jobs_completed"], len(run.jobs())
(5, 6)
>>> pool = {"name": "pool", "policy": "easy", "cpus": 4}
>>> jobs = [{"submit_s": 10 * n, "run_s": 60, "cpus": 1 + n % 4} for n in range(8)]
>>> described = {"vos": [{"name": "lab", "clusters": [pool], "workload": {"jobs": jobs}}]}
>>> grid.run(described, set={"seed": 7}).metrics["vos"]["lab"]["jobs_completed"]
8
>>> study = {"name": "study", "scenario": described, "seeds": 2}
>>> study["axes"] = {"vos.lab.clusters.pool.policy": ["fcfs", "easy"]}
>>> done = grid.sweep(study, in_process=True)
>>> done.runs, done.failures
(4, ())
>>> results = grid.load_results(done.folder)
>>> results.column_names
['vos.lab.clusters.pool.policy', 'seed', 'scope', 'metric', 'value']
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grid.compiled_code import keep_apart

if TYPE_CHECKING:
    from grid.config.build import Grid
    from grid.config.schema import Scenario
    from grid.lab.study import load_differences, load_results
    from grid.lab.sweep import Sweep
    from grid.model.errors import InputError, PluginFailed, RunFailed
    from grid.runtime.run import Run

__version__ = "0.1.0"
_IMPORTED = {
    "Grid": "grid.config.build",
    "InputError": "grid.model.errors",
    "PluginFailed": "grid.model.errors",
    "Run": "grid.runtime.run",
    "RunFailed": "grid.model.errors",
    "Scenario": "grid.config.schema",
    "Sweep": "grid.lab.sweep",
    "load_differences": "grid.lab.study",
    "load_results": "grid.lab.study",
}
"""Public types and functions, which are imported when they are first used."""
__all__ = [
    "Grid", "InputError", "PluginFailed", "Run", "RunFailed", "Scenario", "Sweep",
    "load_differences", "load_results", "load_scenario", "run", "sweep",
]  # fmt: skip

keep_apart(Path(__file__).parent)


def __getattr__(name: str) -> Any:
    if name not in _IMPORTED:
        raise AttributeError(f"module 'grid' has no attribute {name!r}")
    return getattr(import_module(_IMPORTED[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_scenario(
    scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario,
    set: Sequence[str] | Mapping[str, Any] = (),
    **parts: Mapping[str, Any],
) -> Scenario:
    """A scenario from a file in YAML, or from a mapping with the same keys and values.

    A file is given by its path, or by a name that `grid scenarios` lists.
    Values are numbers, text, lists, tuples, arrays, mappings and paths. With `set`, parameters are
    changed, or keys by their paths: texts `"seed=7"` as `--set` takes them, or `{"seed": 7}`.
    `parts` are classes and functions to plug in, by kind and name, as for `run`.
    Raises InputError with all that is wrong with it, in the same words for files and mappings.
    """
    from grid.config.load import load_scenario as load

    return load(_meant(scenario, experiment=False), set, parts)


def _meant(given: Any, *, experiment: bool) -> Any:
    """The file that a path or the name of a shipped one means; anything else as it is."""
    if not isinstance(given, str | os.PathLike):
        return given
    from grid.config.shipped import find

    return find(Path(given), experiment=experiment)


def run(
    scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario | Grid,
    *,
    set: Sequence[str] | Mapping[str, Any] = (),
    ray: bool = False,
    placement: str | None = None,
    address: str | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    events: bool = False,
    **parts: Mapping[str, Any],
) -> Run:
    """Run a scenario in this process or, with `ray`, on Ray actors.

    `scenario` and `set` are as for `load_scenario`; `scenario` may also be a Grid built in Python.
    `placement` and `address` are those of `grid run`, for runs on Ray. With `out`, the run's folder
    is also written. `force` allows it to replace the run of another scenario; with `events` it
    includes every message and decision, in events.parquet.

    `parts` are plugins (classes and functions), by kind and by their name in the scenario:
    `policies={"mine": MyPolicy}`, `selections`, `job_generators`, and so on, as listed by `grid
    plugins`. It is an error if the scenario uses no plugin of a given kind.

    The result has the `metrics` (as in metrics.json), the `manifest`, and the table of jobs:
    `jobs()` in pandas, `jobs_table()` in pyarrow. Raises InputError if the input is invalid, and
    RunFailed if the run fails.
    """
    from grid.config.build import Grid
    from grid.config.load import source_of
    from grid.config.plugins import unnamed_objects
    from grid.model.errors import InputError, input_error
    from grid.results.run_folder import check_folder
    from grid.runtime.run import execute, execute_grid, save

    if events and out is None:
        raise input_error("events", "no folder for events.parquet", "`out`, too")
    how: dict[str, Any] = {"in_process": not ray, "placement": placement, "address": address}
    how["events"] = events
    scenario = _meant(scenario, experiment=False)
    if isinstance(scenario, Grid) and parts:
        raise input_error(
            next(iter(parts)), "plugins for a Grid", "Grid(..., plugins=Plugins(...))"
        )
    if isinstance(scenario, Grid) and set:
        raise input_error("set", "settings for a Grid", "none, since a Grid is run as is")
    loaded = scenario if isinstance(scenario, Grid) else load_scenario(scenario, set, **parts)
    if not isinstance(loaded, Grid) and (
        errors := unnamed_objects(parts, [loaded], source_of(scenario))
    ):
        raise InputError(errors)
    if out is not None:
        check_folder(Path(out), scenario=loaded.name, force=force)
    if isinstance(loaded, Grid):
        finished = execute_grid(loaded, **how)
    else:
        finished = execute(loaded, source_of(scenario), **how)
    if out is not None:
        save(finished, Path(out))
    return finished


def sweep(
    experiment: str | os.PathLike[str] | Mapping[str, Any],
    out: str | os.PathLike[str] | None = None,
    *,
    set: Sequence[str] | Mapping[str, Any] = (),
    seeds: int | Sequence[int] | None = None,
    quick: bool = False,
    address: str | None = None,
    cpus: int | None = None,
    in_process: bool = False,
    force: bool = False,
    **parts: Mapping[str, Any],
) -> Sweep:
    """Execute all runs of an experiment that are missing in the folder `out`.

    The experiment is a file in YAML, given by its path or by a name that `grid scenarios` lists, or
    a mapping with the same keys, whose `scenario` may also be a mapping. `set` has settings for all
    runs, as for `load_scenario`. `seeds`, a number of seeds from 1 or a list of them, replaces
    those of the experiment. Runs are Ray tasks, on the cluster at `address` or on `cpus` CPUs of
    this machine; with `in_process` they run one after the other in this process. `out` is
    sweeps/NAME by default; `load_results` reads its table. With `force` it may be the folder of
    another experiment. `parts` are plugins, as for `run`. The result lists failed runs. Raises
    InputError.
    """
    from grid.lab.experiment import load_experiment
    from grid.lab.sweep import Workers, run_sweep

    experiment = _meant(experiment, experiment=True)
    loaded = load_experiment(experiment, quick=quick, overrides=set, seeds=seeds)
    file = None if isinstance(experiment, Mapping) else Path(experiment)
    results = Path(out) if out is not None else Path("sweeps") / loaded.name
    workers = Workers(address, cpus, in_process)
    return run_sweep(loaded, file, results, workers, objects=parts, force=force)
