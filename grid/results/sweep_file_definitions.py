"""What the keys of the files mean from which a sweep goes on. `*` stands for any name."""

from __future__ import annotations

from grid.results.column_definitions import Columns

SWEEP_KEYS: Columns = {
    "name": ("", "Name of the experiment."),
    "code": ("", "A hash of the sources on which results depend. Runs of another are done anew."),
    "version": ("", "Version of the emulator."),
    "sources": ("", "A hash of all its sources; `grid --version` prints that of an installation."),
    "versions.*": ("", "Versions of Python and of the libraries that a result may depend on."),
    "logs.*": ("", "SHA-256 of each log."),
    "axes.*": ("", "The values of each axis, or their labels."),
    "seeds": ("", "The seeds."),
    "level": ("0 to 1", "Level of the confidence intervals."),
    "compare": ("", "The axis whose values are compared."),
    "repeated_over": ("", "The axis whose values are repetitions; null: none."),
    "metrics": ("", "The metrics that the experiment names."),
    "meanings.*": ("", "What metrics of your own mean."),
    "bounds.*": ("", "Their least and their largest value, as far as they say so; null: none."),
    "measured": ("", "The times between which measured jobs were submitted; empty: all jobs are."),
    "cases": ("", "Each run: the values of its axes, its seed, and its KEY."),
    "absent": (
        "",
        "Combinations that the scenario refuses, with the reason. They have no run. Only "
        "`grid reproduce` leaves some out; `grid sweep` then runs nothing.",
    ),
}
"""Of a sweep's sweep.json. A run is in the sweep's tables if `cases` names it: files of earlier
settings may lie beside it."""

RUN_KEYS: Columns = {
    "scenario.*": ("", "The scenario with all defaults filled in, as in a run's scenario.yaml."),
    "seed": ("", "Seed of the run."),
    "digest": ("", "SHA-256 of the results, as in the manifest of the same run by itself."),
    "jobs.*": ("jobs", "As in manifest.json."),
    "messages": ("", "Messages that entities handled."),
    "metrics.grid.*": ("", "The metrics of the grid; those of each VO are in `metrics.vos`."),
    "metrics.vos.*": ("", "The metrics of a VO."),
    "more.*": ("", "Metrics that only sweeps have."),
    "quantiles.wait_s": (
        "s",
        "Percentiles 0 to 100 of the waits of measured jobs that ran, each the wait of a job.",
    ),
    "quantiles.slowdown": (
        "",
        "Percentiles 0 to 100 of the slowdowns of measured jobs that completed.",
    ),
    "flows": ("jobs", "Triples: position of a VO, of the VO that ran its jobs, and how many."),
    "courses.*": ("", "Points of the curves over time that the report draws."),
    "key": ("", "The file's own name."),
    "checksum": ("", "SHA-256 of all the rest of the file."),
}
"""Of a sweep's `runs/KEY.json`, what came of a run. `clock/KEY.json` has what it cost:
`cpu_seconds`, `wall_seconds` and `plan_seconds` of manifest.json, and a checksum. Tables and
reports are made of these files each time: whoever doubts a table sweeps in a copy of the folder,
and compares. A checksum finds accidents, not forgery: against that helps to run again, since the
digest of a run is the same everywhere."""
