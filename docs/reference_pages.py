"""The pages of the reference, generated from the code.

`pages()` returns each page as Markdown by its path below `docs/`; `entries()` returns what they
document, with the description of each, for the test that every entry has one.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from command_pages import commands, commands_page, exit_codes_page, parameter_text, shown
from cores_page import cores_page
from heuristic_table import heuristics_text
from key_words import MADE, default_of, inlined, markdown, type_of, unit_of
from paper_pages import papers_page
from part_inputs import inputs, inputs_page
from pydantic import BaseModel, TypeAdapter
from shipped_pages import shipped_entries, shipped_page

import grid
import grid.integrations.learning
from grid.config.plugins import KINDS
from grid.config.schema import Scenario
from grid.lab.experiment import ExperimentSection
from grid.lab.report.run_page import SERIES_LABELS
from grid.model.fields import PluginRef, keys_of, sections_in
from grid.model.plugins.registry import Plugin, Plugins
from grid.results.definitions import FILES, GROUPS, METRICS, message_names

ROOT = Path(__file__).parents[1]


class Entry(NamedTuple):
    """Something that the reference documents: the page, its name there, and its description."""

    page: str
    name: str
    sentence: str


# Sections of a file.


def sections(root: Any) -> dict[Any, str]:
    """All sections below `root`, with the path of the key where each is found first."""
    found = {root: ""}
    waiting = [(root, "")]
    for model, path in waiting:
        for name, field in keys_of(model).items():
            for inner in sections_in(field.annotation):
                if inner not in found:
                    step = f"{path}.{name}" if path else name
                    listed = "tuple" in str(field.annotation) and inner is not PluginRef
                    found[inner] = f"{step}.*" if listed else step
                    waiting.append((inner, found[inner]))
    return found


def file_page(root: Any, page: str, title: str, lead: str) -> str:
    """The reference of a kind of file: every key, section by section."""
    stem = Path(page).stem
    found = sections(root)
    anchors = {model.__name__: f"{stem}-{model.__name__}".lower() for model in found}
    lines = [f"{MADE}# {title}\n\n{lead}\n"]
    for model, path in found.items():
        lines.append(f"({anchors[model.__name__]})=")
        heading = "Top level" if not path else f"`{path}`"
        if model is PluginRef:
            heading = "A plugin with settings"
        lines.append(f"## {heading}\n\n{markdown(inspect.getdoc(model) or '')}\n")
        shown = TypeAdapter(model).json_schema()["properties"]
        for name, field in keys_of(model).items():
            facts = [type_of(shown[name], anchors), unit_of(name), default_of(field)]
            said = ", ".join(fact for fact in facts if fact)
            lines.append(f"`{name}`\n: {said}.  \n  {field.description}\n")
    return "\n".join(lines)


def scenario_page() -> str:
    """Every key of a scenario."""
    lead = """A scenario is a YAML file. Unknown keys are errors; `grid check FILE` lists them.
    `grid schema` prints the JSON Schema for editors. In the paths below, `*` represents any entry
    of a list.

`parameters`, at the top level of a file, is a mapping of names to values. `${name}` anywhere in the
file is replaced by the value, and `--set name=value` changes it. `--set` also changes any key by
its path: `--set vos.0.clusters.0.policy=easy`."""
    return file_page(Scenario, "reference/scenario.md", "Keys of a scenario", lead)


def experiment_page() -> str:
    """Every key of an experiment."""
    lead = """An experiment is a YAML file: a scenario, the settings that vary, and the number of
repetitions of each combination. `grid sweep FILE` runs it."""
    return file_page(ExperimentSection, "reference/experiment.md", "Keys of an experiment", lead)


# Plugins.


def plugins_page() -> str:
    """Every built-in plugin with its settings, as `grid plugins` lists them."""
    lines = [f"{MADE}# Plugins\n"]
    lines.append(
        "A scenario refers to a plugin by its name or by its location: `my_file.py:Name` or "
        "`my_package.module:Name`. A plugin with settings is a mapping: "
        "`{name: easy, settings: {...}}`. `grid plugins` also lists plugins of installed "
        "packages.\n"
    )
    for kind in KINDS.values():
        lines.append(f"(plugins-{kind.name})=\n## {kind.name}\n")
        article = "An" if kind.title[0] in "aeiou" else "A"
        lines.append(f"{article} {kind.title} {kind.task}.\n")
        lines.append(f"- In a scenario: `{kind.place}`\n- Entry points: `{kind.group}`\n")
        names = [name for name in Plugins().names(kind) if name in kind.own]
        if kind.name == "heuristics":
            lines += heuristics_text()
        elif not names:
            lines.append("There are no built-in ones.\n")
        seen: dict[tuple[tuple[str, str, str], ...], str] = {}
        lines += [plugin_text(Plugins().find(kind, name), seen) for name in names]
    return "\n".join(lines)


def plugin_text(part: Plugin, seen: dict[tuple[tuple[str, str, str], ...], str]) -> str:
    """A plugin: its description and its settings, unless an earlier one has the same."""
    lines = [f"### {part.name}\n", markdown(inspect.getdoc(part.target) or ""), ""]
    settings = tuple(settings_of(part))
    if settings in seen:
        lines.append(f"Settings: those of `{seen[settings]}`.\n")
    elif settings:
        seen[settings] = part.name
        lines.append("Settings:\n")
        lines += [f"`{name}`\n: {facts}.  \n  {sentence}\n" for name, facts, sentence in settings]
    return "\n".join(lines)


def settings_of(part: Plugin) -> Iterator[tuple[str, str, str]]:
    """Name, facts and description of each setting of a plugin, nested ones included."""
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
        about = " ".join((about or "").split())  # a docstring has line ends
        yield name, ", ".join(fact for fact in facts if fact), about


# Metrics and files.


def metrics_page() -> str:
    """Every metric: definition, unit, aggregation, range, direction, source."""
    lines = [f"{MADE}# Metrics\n"]
    lines.append(
        "Each metric has a name, which is its key in `metrics.json` and in the results of a "
        "sweep, and a title, which tables and reports show. A metric without data, such as a mean "
        "over no jobs, is `null`. Sources: PU, CS2, C07, EG and GM are the "
        "[papers](../papers.md). A run in virtual time ends when all jobs have ended. A live run "
        "may end earlier, by its time limit or an interruption. No metric, not even "
        "`jobs_submitted`, includes jobs that had not ended by then; `live.unfinished` of "
        "[manifest.json](files.md) counts them.\n"
    )
    for group in GROUPS.values():
        lines.append(f"## {group.title}\n\n{markdown(group.about)}\n")
        for one in group.metrics:
            direction = {"more": "higher is better", "less": "lower is better"}.get(one.better, "")
            facts = [one.over, f"range: {one.values}", direction, one.source]
            unit = f" Unit: {one.unit}." if one.unit else ""
            said = "; ".join(fact for fact in facts if fact)
            lines.append(f"`{one.name}` ({one.title})\n: {one.meaning}{unit}  \n  *{said}*\n")
    return "\n".join(lines)


def files_page() -> str:
    """Every column of every output file."""
    lines = [f"{MADE}# Files and their columns\n"]
    lines.append(
        "A run writes a folder, completely or not at all: `jobs.csv`, `jobs.parquet`, "
        "`series.parquet`, `metrics.json` (the [metrics](metrics.md) of the `grid` and of each of "
        "the `vos`), `manifest.json` and `scenario.yaml` (the scenario with all defaults, which "
        "can be run again). With `--events` it also writes `events.parquet`, and a live run with "
        "interventions writes `interventions.json`. A sweep writes its tables of results, and a "
        "file for each run, so that it can be resumed. It also copies `experiment.yaml`, "
        "`scenario.yaml` and the files of plugins, so that "
        "[its folder can be run again](../tutorials/study.md#5-publish-it). If runs failed, "
        "`failed.json` has the settings, the seed and the error of each. Columns of plugin metrics "
        "come after those listed here. The first columns of jobs.csv are Batsim's, so that Evalys "
        "can open it.\n"
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
    """The public names of the package `grid`."""
    lines = [f"{MADE}# Python\n"]
    lines.append(
        "These are all public names of `grid`, whose import is fast, and of "
        "`grid.integrations.learning`. Examples: [a run and a sweep in Python]"
        "(../how-to/python.md), [agents that "
        "learn](../how-to/learning.md).\n"
    )
    exported = [(f"grid.{name}", getattr(grid, name)) for name in grid.__all__]
    # Names that need an extra that is not installed are omitted.
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
        "reference/plugins.md": plugins_page(),
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
    """All that the reference documents, each with its description."""
    yield from _entries_of_files()
    for kind in KINDS.values():
        yield Entry("plugins", kind.name, kind.task)
        for name in kind.own:
            part = Plugins().find(kind, name)
            yield Entry("plugins", name, part.description)
            for setting, _, sentence in settings_of(part):
                yield Entry("plugins", setting, sentence)
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
    """Those of input and output files."""
    for page, root in (("scenario", Scenario), ("experiment", ExperimentSection)):
        for model, path in sections(root).items():
            yield Entry(page, path or model.__name__, inspect.getdoc(model) or "")
            for name, field in keys_of(model).items():
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
