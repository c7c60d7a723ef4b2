"""The pages of the reference, made from the code: nothing in them is written twice.

`pages()` gives each page as Markdown by its path below `docs/`; `entries()` gives what they list,
with the sentence on each, for the test that nothing is missing and nothing lacks a sentence.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, get_args

from command_pages import commands, commands_page, exit_codes_page, parameter_text, shown
from cores_page import cores_page
from heuristic_table import heuristics_text
from key_words import MADE, default_of, inlined, markdown, type_of, unit_of
from paper_pages import papers_page
from part_inputs import inputs, inputs_page
from pydantic import BaseModel
from shipped_pages import shipped_entries, shipped_page

import grid
import grid.integrations.learning
from grid.config.plugins import KINDS
from grid.config.schema import Scenario
from grid.lab.experiment import ExperimentSection
from grid.lab.report.run_page import SERIES_LABELS
from grid.model.plugins.registry import Plugin, Plugins
from grid.results.definitions import FILES, GROUPS, METRICS, message_names

ROOT = Path(__file__).parents[1]


class Entry(NamedTuple):
    """Something that the reference lists: the page, its name there, and the sentence on it."""

    page: str
    name: str
    sentence: str


# Sections of a file.


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that an annotation names, in order."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models_in(inner)


def sections(root: type[BaseModel]) -> dict[type[BaseModel], str]:
    """All models below `root`, with the path of the key where each stands first."""
    found = {root: ""}
    waiting = [(root, "")]
    for model, path in waiting:
        for name, field in model.model_fields.items():
            for inner in models_in(field.annotation):
                if inner not in found:
                    step = f"{path}.{name}" if path else name
                    listed = "tuple" in str(field.annotation) and inner.__name__ != "PartSection"
                    found[inner] = f"{step}.*" if listed else step
                    waiting.append((inner, found[inner]))
    return found


def file_page(root: type[BaseModel], page: str, title: str, lead: str) -> str:
    """The reference of a kind of file: every key, section by section."""
    stem = Path(page).stem
    found = sections(root)
    anchors = {model.__name__: f"{stem}-{model.__name__}".lower() for model in found}
    lines = [f"{MADE}# {title}\n\n{lead}\n"]
    for model, path in found.items():
        lines.append(f"({anchors[model.__name__]})=")
        heading = "At the top" if not path else f"`{path}`"
        if model.__name__ == "PartSection":
            heading = "A part with settings"
        lines.append(f"## {heading}\n\n{markdown(inspect.getdoc(model) or '')}\n")
        shown = model.model_json_schema()["properties"]
        for name, field in model.model_fields.items():
            facts = [type_of(shown[name], anchors), unit_of(name), default_of(field)]
            said = ", ".join(fact for fact in facts if fact)
            lines.append(f"`{name}`\n: {said}.  \n  {field.description}\n")
    return "\n".join(lines)


def scenario_page() -> str:
    """Every key of a scenario."""
    lead = """A scenario is a file in YAML. Unknown keys are mistakes. `grid check FILE` says what
is wrong, and `grid schema` prints the same as JSON Schema, for editors. In the paths below, `*` is
any place of a list.

`parameters`, at the top of a file, is a mapping of names to values. `${name}` anywhere in the file
stands for the value, and `--set name=value` changes it. `--set` also changes any key by its path:
`--set vos.0.clusters.0.policy=easy`."""
    return file_page(Scenario, "reference/scenario.md", "Keys of a scenario", lead)


def experiment_page() -> str:
    """Every key of an experiment."""
    lead = """An experiment is a file in YAML: a scenario, what varies, and how often each setting
is repeated. `grid sweep FILE` runs it."""
    return file_page(ExperimentSection, "reference/experiment.md", "Keys of an experiment", lead)


# Parts.


def parts_page() -> str:
    """Every part of ours, with its settings, as `grid plugins` shows them."""
    lines = [f"{MADE}# Parts that plug in\n"]
    lines.append(
        "A scenario names a part by its name, or by where it stands: `my_file.py:Name` or "
        "`my_package.module:Name`. Where it has settings, the name becomes a mapping: "
        "`{name: easy, settings: {...}}`. `grid plugins` lists the same, those of installed "
        "packages included.\n"
    )
    for kind in KINDS.values():
        lines.append(f"(parts-{kind.name})=\n## {kind.name}\n")
        article = "An" if kind.title[0] in "aeiou" else "A"
        lines.append(f"{article} {kind.title} {kind.task}.\n")
        lines.append(f"- In a scenario: `{kind.place}`\n- Entry points: `{kind.group}`\n")
        names = [name for name in Plugins().names(kind) if name in kind.own]
        if kind.name == "heuristics":
            lines += heuristics_text()
        elif not names:
            lines.append("The emulator has none of its own beside what it always computes.\n")
        lines += [part_text(Plugins().find(kind, name)) for name in names]
    return "\n".join(lines)


def part_text(part: Plugin) -> str:
    """A part: what it does, and its settings."""
    lines = [f"### {part.name}\n", markdown(inspect.getdoc(part.target) or ""), ""]
    settings = list(settings_of(part))
    if settings:
        lines.append("Settings:\n")
        lines += [f"`{name}`\n: {facts}.  \n  {sentence}\n" for name, facts, sentence in settings]
    return "\n".join(lines)


def settings_of(part: Plugin) -> Iterator[tuple[str, str, str]]:
    """Name, facts and sentence of each setting of a part, and of what stands within a setting."""
    yield from _keys_of(part.declared.model)
    for model in list(sections(part.declared.model))[1:]:
        word = model.__name__.lower()
        for name, facts, sentence in _keys_of(model):
            yield f"{word}: {name}", facts, sentence


def _keys_of(model: type[BaseModel]) -> Iterator[tuple[str, str, str]]:
    shown = model.model_json_schema()
    for name, field in model.model_fields.items():
        schema = inlined(shown["properties"][name], shown)
        facts = [type_of(schema, {}), unit_of(name), default_of(field)]
        about = inspect.getdoc(model) if "const" in schema else field.description
        yield name, ", ".join(fact for fact in facts if fact), about or ""


# Figures and files.


def metrics_page() -> str:
    """Every figure: definition, unit, over what, range, direction, source."""
    lines = [f"{MADE}# Metrics\n"]
    lines.append(
        "Each figure has one name, which is its key in `metrics.json` and in the results of a "
        "sweep, and one title, which tables and reports show. A figure that has nothing to be "
        "computed from, such as a mean over no jobs, is `null`. Sources: PU, CS2, C07, EG and GM "
        "are the [papers](../papers.md). A run in virtual time ends when all jobs have. A live run "
        "may end earlier, by its time limit or an interruption: jobs that had not ended then are "
        "in no figure, nor in `jobs_submitted`; `live.unfinished` of "
        "[manifest.json](files.md) counts them.\n"
    )
    for group in GROUPS.values():
        lines.append(f"## {group.title}\n\n{markdown(group.about)}\n")
        for one in group.metrics:
            direction = {"more": "more is better", "less": "less is better"}.get(one.better, "")
            facts = [one.over, f"range: {one.values}", direction, one.source]
            unit = f" Unit: {one.unit}." if one.unit else ""
            said = "; ".join(fact for fact in facts if fact)
            lines.append(f"`{one.name}` ({one.title})\n: {one.meaning}{unit}  \n  *{said}*\n")
    return "\n".join(lines)


def files_page() -> str:
    """Every column of every file that is written."""
    lines = [f"{MADE}# Files and their columns\n"]
    lines.append(
        "A run writes a folder, whole or not at all: `jobs.csv`, `jobs.parquet`, "
        "`series.parquet`, `metrics.json` (the [metrics](metrics.md) of the `grid` and of each of "
        "the `vos`), `manifest.json` and `scenario.yaml` (the scenario with all defaults filled "
        "in; it runs again); with `--events`, `events.parquet` as well; a live run to which "
        "somebody did something on its page, `interventions.json`. A sweep writes its tables "
        "of results, and a file for each run, from which it goes on after an interruption; "
        "besides `experiment.yaml`, `scenario.yaml` and the files of parts, as they were given, so "
        "that [its folder runs again](../tutorials/study.md#5-publish-it); and if runs "
        "failed, `failed.json` with the settings, the seed and the error of each. Metrics "
        "of your own are columns after these. "
        "jobs.csv begins with Batsim's columns, so that Evalys opens it as it is.\n"
    )
    for file in FILES.values():
        lines.append(f"## {file.title}\n\n{markdown(file.about)}\n")
        for name, (unit, meaning) in file.columns.items():
            words = f" Unit: {unit}." if unit else ""
            shown = f" ({SERIES_LABELS[name]})" if name in SERIES_LABELS else ""
            lines.append(f"`{name}`{shown}\n: {meaning}{words}\n")
    lines.append("## Messages in events.parquet\n")
    for name, meaning in message_names().items():
        lines.append(f"`{name}`\n: {markdown(meaning)}\n")
    return "\n".join(lines)


def python_page() -> str:
    """What `import grid` gives."""
    lines = [f"{MADE}# Python\n"]
    lines.append(
        "`import grid` loads nothing heavy. These are all names that it exports, and those of "
        "`grid.integrations.learning`. Examples: [a run and a sweep in Python]"
        "(../how-to/python.md), [agents that "
        "learn](../how-to/learning.md).\n"
    )
    exported = [(f"grid.{name}", getattr(grid, name)) for name in grid.__all__]
    # What of these needs an extra that is not installed here is left out.
    for name in grid.integrations.learning.__all__:
        with suppress(ImportError):
            exported.append(
                (f"grid.integrations.learning.{name}", getattr(grid.integrations.learning, name))
            )
    for name, thing in exported:
        kind = "autoclass" if inspect.isclass(thing) else "autofunction"
        home = f"{thing.__module__}.{thing.__qualname__}"
        anchor = name.removeprefix("grid.").replace(".", "-").lower()
        lines.append(f"(python-{kind[4:]}-{anchor})=\n## {name}\n")
        lines.append(f"```{{eval-rst}}\n.. {kind}:: {home}")
        if kind == "autoclass" and not issubclass(thing, BaseException | BaseModel):
            lines.append("   :members:\n   :member-order: bysource")
        lines.append("```\n")
    return "\n".join(lines)


def pages() -> dict[str, str]:
    """All pages by their path below `docs/`."""
    return {
        "reference/scenario.md": scenario_page(),
        "reference/shipped.md": shipped_page(),
        "reference/experiment.md": experiment_page(),
        "reference/parts.md": parts_page(),
        "reference/inputs.md": inputs_page(),
        "reference/cores.md": cores_page(),
        "papers.md": papers_page(),
        "reference/metrics.md": metrics_page(),
        "reference/files.md": files_page(),
        "reference/commands.md": commands_page(),
        "reference/exit-codes.md": exit_codes_page(),
        "reference/python.md": python_page(),
    }


def entries() -> Iterator[Entry]:
    """All that the reference lists, each with its sentence."""
    yield from _entries_of_files()
    for kind in KINDS.values():
        yield Entry("parts", kind.name, kind.task)
        for name in kind.own:
            part = Plugins().find(kind, name)
            yield Entry("parts", name, part.description)
            for setting, _, sentence in settings_of(part):
                yield Entry("parts", setting, sentence)
    for name, sentence in inputs():
        yield Entry("inputs", name, sentence)
    for name, sentence in shipped_entries():
        yield Entry("shipped", name, sentence)
    for words, command in commands():
        yield Entry("commands", words, command.help or "")
        for one in shown(command):
            if one.name != "help":
                yield Entry("commands", f"{words} {one.opts[0]}", parameter_text(one)[1])
    for name in grid.__all__:
        yield Entry("python", f"grid.{name}", inspect.getdoc(getattr(grid, name)) or "")


def _entries_of_files() -> Iterator[Entry]:
    """Those of what a user writes, and of what is written for them."""
    for page, root in (("scenario", Scenario), ("experiment", ExperimentSection)):
        for model, path in sections(root).items():
            yield Entry(page, path or model.__name__, inspect.getdoc(model) or "")
            for name, field in model.model_fields.items():
                yield Entry(page, f"{path}.{name}".lstrip("."), field.description or "")
    for metric in METRICS.values():
        yield Entry("metrics", metric.name, metric.meaning)
    for file in FILES.values():
        for name, (_, meaning) in file.columns.items():
            yield Entry("files", name, meaning)
    for name, meaning in message_names().items():
        yield Entry("files", name, meaning)


def write(folder: Path) -> None:
    """Write the pages whose text has changed, so that only they are built again."""
    for name, text in pages().items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
