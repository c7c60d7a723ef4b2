"""A distributed emulator of grids of virtual organizations on Ray actors.

For notebooks: `load_scenario`, `run`, `sweep`, `load_results`. Importing this loads nothing heavy.

>>> import grid
>>> scenario = grid.load_scenario("scenarios/two-vos.yaml", ["seed=7"])
>>> run = grid.run(scenario)
>>> run.metrics["grid"]["jobs_completed"], run.jobs().num_rows
(5, 6)
>>> done = grid.sweep("scenarios/experiments/partial-utility.yaml", quick=True, in_process=True)
>>> done.runs, done.failures
(12, ())
>>> results = grid.load_results(done.folder)
>>> results.column_names
['scheduler', 'seed', 'scope', 'metric', 'value']
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from grid.compiled_code import keep_apart

if TYPE_CHECKING:
    import pyarrow

    from grid.experiment.sweep import Sweep
    from grid.runtime.run import Run
    from grid.scenario.schema import Scenario

__version__ = "0.1.0"
__all__ = ["load_results", "load_scenario", "run", "sweep"]

keep_apart(Path(__file__).parent)


def load_scenario(path: str | Path, overrides: Sequence[str] = ()) -> Scenario:
    """The scenario in the file `path`, changed by `overrides` as `--set` gives them.

    Raises grid.model.errors.InputError with all that is wrong with it.
    """
    from grid.scenario.load import load_scenario as load

    return load(path, overrides)


def run(scenario: Scenario | str | Path, *, ray: bool = False, out: Path | None = None) -> Run:
    """Run a scenario, given as such or as a file, in this process or on Ray.

    What comes back has the `metrics` (as in metrics.json), the `manifest` and a pyarrow table of
    `jobs()`. With `out`, the run's folder is written, too. Raises InputError.
    """
    from grid.runtime.run import execute, save
    from grid.scenario.schema import Scenario

    file = "the scenario"
    if not isinstance(scenario, Scenario):
        file = str(scenario)
        scenario = load_scenario(scenario)
    finished = execute(scenario, file, in_process=not ray)
    if out is not None:
        save(finished, Path(out), scenario.name)
    return finished


def sweep(
    experiment: str | Path,
    folder: str | Path | None = None,
    *,
    quick: bool = False,
    address: str | None = None,
    cpus: int | None = None,
    in_process: bool = False,
) -> Sweep:
    """Do all runs of the experiment in the file `experiment` that `folder` does not have yet.

    They are Ray tasks, on the cluster at `address` or on `cpus` CPUs of this machine; with
    `in_process` one after the other, here. `folder` is sweeps/NAME by default; `load_results` of it
    gives the table. What failed is in what comes back. Raises InputError.
    """
    from grid.experiment.cases import load_experiment
    from grid.experiment.sweep import run_sweep

    loaded = load_experiment(experiment, quick=quick)
    place = Path(folder) if folder is not None else Path("sweeps") / loaded.name
    return run_sweep(
        loaded, Path(experiment), place, address=address, cpus=cpus, in_process=in_process
    )


def load_results(folder: str | Path, *, clock: bool = False) -> pyarrow.Table:
    """The results of the sweep or run in `folder`, a row for each run and metric.

    Columns: one for each axis of the sweep, `seed`, `scope` (`grid` or the name of a VO), `metric`
    and `value`, which is null for a metric that does not apply. With `clock`, what was measured on
    the real clock instead. Raises InputError.
    """
    from grid.experiment.tables import load_results as load

    return load(folder, clock=clock)
