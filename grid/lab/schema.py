"""The shape of an experiment file: a scenario, what varies, and how often it is repeated."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from grid.config.sections import Section
from grid.model.fields import Name, Seed

MAX_RUNS = 100_000

Label = Annotated[str, Field(min_length=1, max_length=200)]
Key = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,127}$")]
Plain = str | int | float | bool | None
Settings = dict[Key, Any]
"""Values by the name of a parameter or the path of a key, as `grid run --set` takes them."""

Values = Annotated[tuple[Any, ...], Field(min_length=1)]
Labelled = Annotated[dict[Label, Settings], Field(min_length=1)]
Axis = Values | Labelled
"""Either values of the key that the axis is named after, or a label for several settings each."""

Repetitions = Annotated[int, Field(ge=1, le=10_000, strict=True)]
SeedList = Annotated[tuple[Seed, ...], Field(min_length=1)]


class QuickSection(Section):
    """What `--quick` has instead: fewer seeds, other settings, fewer values of an axis."""

    seeds: Repetitions | SeedList | None = Field(
        default=None, description="How many seeds, from 1, or which. Default: as without --quick."
    )
    set: Settings = Field(
        default_factory=dict, description="Settings for all runs, added to those of `set`."
    )
    axes: dict[Key, Axis] = Field(
        default_factory=dict, description="Other values for some of the axes."
    )


Prose = Annotated[str, Field(min_length=1, max_length=4000)]


class AnswerSection(Section):
    """What the page of a study says of the results: which value of an axis is best, and where."""

    metric: Label = Field(description="The figure that decides.")
    better: Literal["less", "more"] = Field(description="Which of it is better.")
    best_of: Key = Field(description="The axis whose values are held against each other.")
    along: Key | None = Field(
        default=None, description="The axis along which the best value may change. Default: none."
    )
    among: Annotated[tuple[Plain, ...], Field(min_length=1)] | None = Field(
        default=None, description="The values that are held against each other. Default: all."
    )

    def axes(self) -> tuple[str, ...]:
        """The axes that it names."""
        return (self.best_of,) if self.along is None else (self.best_of, self.along)


class OldBoardsSection(Section):
    """The theory of boards that are told once in a period, beside what was measured."""

    choices: Key = Field(description="The axis of how many servers are drawn.")
    load: Key = Field(description="The axis of the load of a server.")
    period_s: Key = Field(description="The axis of the board's period, in seconds.")
    work_s: Annotated[float, Field(gt=0, le=1e9, strict=True)] = Field(
        description="Mean run time of a job."
    )


class StudySection(Section):
    """What makes an experiment a study: its page is written by `grid sweep --page`."""

    title: Label = Field(description="The page's title.")
    question: Prose = Field(description="What is asked, and who asked it.")
    set_up: Prose = Field(description="The grid, its jobs, and what varies.")
    hangs_on: Prose = Field(description="What the answer depends on, and what it does not say.")
    answers: Annotated[tuple[AnswerSection, ...], Field(min_length=1)] = Field(
        description="What is read off the results."
    )
    old_boards: OldBoardsSection | None = Field(
        default=None, description="Mitzenmacher's theory beside the mean response time."
    )

    def axes(self) -> tuple[str, ...]:
        """The axes that its answers and its theory name."""
        of_answers = [name for answer in self.answers for name in answer.axes()]
        theory = self.old_boards
        of_theory = [] if theory is None else [theory.choices, theory.load, theory.period_s]
        return tuple(dict.fromkeys([*of_answers, *of_theory]))


class ExperimentSection(Section):
    """Every combination of the axes' values, each with every seed, is a run of the scenario."""

    name: Name = Field(description="Names the sweep and its folder.")
    scenario: str | dict[str, Any] = Field(
        description="Path of the scenario, from the folder of this file; or a name that "
        "`grid scenarios` lists; or the scenario itself."
    )
    set: Settings = Field(
        default_factory=dict,
        description="Settings of all runs: parameters by name, or keys by their paths.",
    )
    axes: dict[Key, Axis] = Field(
        default_factory=dict,
        description="What varies: a list of values by the name of a parameter or the path of a "
        "key; or, under any name, labels with several settings each.",
    )
    seeds: Repetitions | SeedList = Field(
        default=10, description="How many seeds, from 1, or which: a run of each setting for each."
    )
    level: Annotated[float, Field(ge=0.5, le=0.999, strict=True)] = Field(
        default=0.95, description="Level of the confidence intervals."
    )
    measure: Literal["run", "knapsack"] = Field(
        default="run",
        description="Figures of runs, or of the choices of their knapsacks alone (C07 Table 1).",
    )
    compare: Key | None = Field(
        default=None,
        description="The axis whose values are compared in pairs, and are the lines of pictures. "
        "Along x lies the first other axis of numbers, or else the first other one; with further "
        "axes there is a picture for each combination of their values. Default: the first axis.",
    )
    repeated_over: Key | None = Field(
        default=None,
        description="An axis whose values are repetitions, as seeds are, such as days of a log: "
        "tables, reports, differences and pages are of all of them together. Default: none.",
    )
    metrics: tuple[Label, ...] = Field(
        default=(),
        description="What the report compares, as `grid metrics` names it. Default: your own "
        "and the usual ones, as far as settings differ in them; at most eight.",
    )
    quick: QuickSection | None = Field(
        default=None, description="What `--quick` has instead. Default: nothing else."
    )
    study: StudySection | None = Field(
        default=None, description="Question and answers of a study, for its page."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> ExperimentSection:
        for name in self.quick.axes if self.quick is not None else ():
            if name not in self.axes:
                raise ValueError(f"`quick.axes` among the axes: {', '.join(self.axes) or 'none'}")
        if self.runs > MAX_RUNS:
            raise ValueError(f"at most {MAX_RUNS} runs in all, not {self.runs}")
        return self

    @property
    def seed_list(self) -> tuple[int, ...]:
        """The seeds of every combination."""
        if isinstance(self.seeds, int):
            return tuple(range(1, self.seeds + 1))
        return tuple(dict.fromkeys(self.seeds))

    @property
    def runs(self) -> int:
        """How many runs the experiment has."""
        count = len(self.seed_list)
        for axis in self.axes.values():
            count *= len(axis)
        return count

    def quickened(self) -> ExperimentSection:
        """The experiment that `--quick` asks for; itself where it says nothing of that."""
        if self.quick is None:
            return self
        return self.model_copy(
            update={
                "set": self.set | self.quick.set,
                "axes": self.axes | self.quick.axes,
                "seeds": self.quick.seeds or self.seeds,
                "quick": None,
            }
        )
