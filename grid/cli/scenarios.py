"""`grid scenarios`, `grid init`, `grid twin`, `grid check` and `grid schema`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from grid.cli.endings import ExitCode, endings, lines_of, wrong
from grid.model.errors import ErrorLine, InputError

if TYPE_CHECKING:
    from grid.config.shipped import Shipped

TWIN = "twin"


def scenarios() -> None:
    """List the shipped scenarios and experiments.

    Their names can be used instead of files: grid run NAME, grid sweep NAME, grid init NAME.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from grid.config.shipped import all_shipped

    console = Console()
    if not console.is_terminal:
        console.width = 1000
    for title, experiment in (("scenarios (grid run)", False), ("experiments (grid sweep)", True)):
        table = Table(box=box.SIMPLE if console.is_terminal else None, show_header=False)
        for one in all_shipped():
            if one.is_experiment == experiment:
                table.add_row(one.name, one.about)
        console.print(title)
        console.print(table)


def init(
    name: str, folder: Path | None = None, slurm_conf: Path | None = None, sacct: Path | None = None
) -> None:
    """Copy a shipped scenario, or an experiment with its scenario, to a folder.

    `grid init twin` writes the scenario of a site from its slurm.conf and sacct records.
    """
    if (slurm_conf is None) != (sacct is None) or (name == TWIN) != (sacct is not None):
        wrong(["grid init twin requires --slurm-conf and --sacct; other names accept neither."])
    if slurm_conf is not None and sacct is not None:
        _init_twin(folder or Path(TWIN), slurm_conf, sacct)
        return
    chosen = _shipped(name)
    folder = folder or Path(chosen.name)
    if folder.exists() and not folder.is_dir():
        wrong([f"{folder}: found a file, expected a folder or a new path"])
    with endings(folder=folder):
        from grid.config.shipped import copies

        texts = copies(chosen)
        _write_new(folder, texts)
    command = "sweep" if chosen.is_experiment else "run"
    typer.echo(f"next: grid {command} {folder / chosen.path.name}")


def _write_new(folder: Path, texts: dict[str, str]) -> None:
    """Write new files to a folder, which is created if need be."""
    there = [folder / name for name in texts if (folder / name).exists()]
    if there:
        wrong([f"{path}: found an existing file, expected a new one" for path in there])
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        wrong([f"{folder}: found {error.strerror}, expected a folder that can be created"])
    for file, text in texts.items():
        (folder / file).write_text(text, encoding="utf-8")
        typer.echo(folder / file)


def _init_twin(folder: Path, slurm_conf: Path, sacct: Path) -> None:
    from grid.integrations.twin import read_slurm_conf, twin_scenario

    with endings(folder=folder):
        _write_new(folder, {"twin.yaml": twin_scenario(read_slurm_conf(slurm_conf), sacct)})
    typer.echo(f"next: grid run {folder / 'twin.yaml'} --out {folder / 'run'}")
    typer.echo(f"      grid twin compare {folder / 'run'} {sacct}")


def twin(action: Literal["compare"], run: Path, records: Path) -> None:  # noqa: ARG001
    """Compare a run of a site's twin with the site's records, and plot both queues.

    The table shows mean waits by partition and by number of CPUs, for the jobs that started in
    both. The figure is twin.svg in the folder of the run.
    """
    from rich.console import Console
    from rich.table import Table

    from grid.integrations.twin import compare, lines_of, queue_svg

    with endings():
        found = compare(run, records)
        (run / "twin.svg").write_bytes(queue_svg(found))
    head, *rows = lines_of(found)
    table = Table(box=None)
    for number, title in enumerate(head):
        table.add_column(title, justify="right" if number else "left")
    for row in rows:
        table.add_row(*row)
    Console(width=None if Console().is_terminal else 200).print(table)
    typer.echo(
        f"utilization: site {100 * found.real_utilization:.1f} %, "
        f"twin {100 * found.twin_utilization:.1f} %"
    )
    if found.only_real or found.only_twin:
        typer.echo(f"jobs that started only at the site: {found.only_real}, only in the twin: "
                   f"{found.only_twin}")  # fmt: skip
    typer.echo(f"figure: {run / 'twin.svg'}")


def _shipped(name: str) -> Shipped:
    from grid.config.shipped import all_shipped
    from grid.model.errors import expected_name

    known = {f"experiments/{one.name}": one for one in all_shipped() if one.is_experiment}
    known |= {one.name: one for one in reversed(all_shipped())}
    if name not in known:
        expected = expected_name(name, known, "a shipped scenario or experiment")
        wrong([f"NAME: found {name[:64]!r}, expected {expected}"])
    return known[name]


def check(
    files: list[Path],
    overrides: list[str] | None = None,
    traceback: bool = False,
    as_json: bool = False,
) -> None:
    """Check scenarios and experiments, and report up to five errors.

    Constraints between keys are checked once each key is valid by itself. All combinations of an
    experiment are checked. Plugin files are imported, and their classes instantiated, which
    executes their top-level code. Logs are not read; `grid run` checks them before the run.
    """
    errors: list[ErrorLine] = []
    valid: list[dict[str, Any]] = []
    for file in files:
        try:
            valid += [_checked(path, list(overrides or [])) for path in _meant(file)]
        except InputError as error:
            errors += error.errors
    errors = list(dict.fromkeys(errors))
    if as_json:
        fields = "file", "line", "field", "found", "expected"
        rows = [{name: getattr(one, name) for name in fields} for one in errors]
        typer.echo(json.dumps({"valid": valid, "errors": rows}, indent=2))
        raise typer.Exit(ExitCode.WRONG_INPUT if errors else ExitCode.DONE)
    for one in valid:
        runs = f" of {one['runs']:,} runs" if "runs" in one else ""
        typer.echo(f"{one['file']}: {one['name']} is a valid {one['kind']}{runs}")
    if errors:
        wrong(lines_of(InputError(errors), traceback=traceback))


def _meant(file: Path) -> list[Path]:
    """The file, or those that are shipped under that name: a scenario, an experiment, or both."""
    from grid.config.shipped import find, look_for

    found = [look_for(file, experiment=experiment) for experiment in (False, True)]
    known = [path for path in dict.fromkeys(found) if path is not None]
    return [file] if file in known else known or [find(file, experiment=False)]


def _checked(path: Path, overrides: list[str]) -> dict[str, Any]:
    """What a valid file contains. Raises InputError."""
    from grid.config.load import load_scenario

    if not _is_experiment(path):
        name = load_scenario(path, overrides).name
        return {"file": str(path), "kind": "scenario", "name": name}
    from grid.lab.experiment import expand, load_experiment

    experiment = load_experiment(path, overrides=overrides)
    cases, refused = expand(experiment, path)
    errors = dict.fromkeys(one for _, error in refused for one in error.errors)
    if errors:
        raise InputError(list(errors))
    kind = {"kind": "experiment", "name": experiment.name, "runs": len(cases)}
    return {"file": str(path), **kind}


def _is_experiment(path: Path) -> bool:
    """Whether the file has the keys of an experiment; False if it cannot be read."""
    from grid.config.load import MAX_BYTES
    from grid.config.text_file import read_text
    from grid.config.yaml_tree import read_tree

    try:
        root, _ = read_tree(read_text(path, MAX_BYTES, "YAML"), str(path))
    except InputError:
        return False
    keys: Any = root.value if isinstance(root.value, dict) else {}
    return "scenario" in keys and "vos" not in keys


def schema(kind: str = "scenario") -> None:
    """Print the JSON Schema of scenarios or of experiments, for editors."""
    if kind == "scenario":
        from grid.config.json_schema import json_schema

        printed = json_schema()
    elif kind == "experiment":
        from grid.lab.experiment import ExperimentSection

        printed = ExperimentSection.model_json_schema()
    else:
        wrong([f"kind: found {kind!r}, expected scenario or experiment"])
    typer.echo(json.dumps(printed, indent=2))
