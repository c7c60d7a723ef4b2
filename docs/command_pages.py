"""The reference of commands and exit codes, generated from the commands."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import typer
from key_words import MADE, markdown

from grid.cli.app import app
from grid.cli.endings import ExitCode

_MORE = {"grid scenarios": "Their descriptions: [shipped scenarios](shipped.md)."}
"""Text with links, which the terminal cannot show."""


def commands() -> Iterator[tuple[str, Any]]:
    """Every command by the words that call it."""
    group = typer.main.get_command(app)
    waiting: list[tuple[str, Any]] = [("grid", group)]
    for words, command in waiting:
        yield words, command
        inner = getattr(command, "commands", {})
        waiting += [(f"{words} {name}", one) for name, one in inner.items()]


def commands_page() -> str:
    """Every command with its options."""
    lines = [f"{MADE}# Commands\n"]
    lines.append(
        "`scripts/grid` in a clone is the same command; it sets up the environment first. "
        "Every command has `--help`. See also [exit codes](exit-codes.md).\n"
    )
    for words, command in commands():
        about = markdown(inspect.cleandoc(command.help or ""))
        lines.append(f"(command-{words.replace(' ', '-')})=\n## {words}\n\n{about}\n")
        lines += [f"{_MORE[words]}\n"] if words in _MORE else []
        for parameter in shown(command):
            names, facts = parameter_text(parameter)
            lines.append(f"{names}\n: {facts}\n")
    return "\n".join(lines)


def shown(command: Any) -> list[Any]:
    """Its arguments and options without hidden ones, which only report an error."""
    return [one for one in command.params if not getattr(one, "hidden", False)]


def parameter_text(parameter: Any) -> tuple[str, str]:
    """The syntax of an argument or option, and its description."""
    if parameter.param_type_name == "argument":
        names = f"`{(parameter.metavar or parameter.name).upper()}`"
        names += "" if parameter.required else " (optional)"
    else:
        value = "" if parameter.is_flag else f" {parameter.metavar or value_of(parameter)}"
        written = (*parameter.opts, *parameter.secondary_opts)
        names = ", ".join(f"`{name}{value}`" for name in written)
    said = [(parameter.help or "").strip()]
    limits = {"at least": parameter.min, "at most": parameter.max}
    shown = [f"{words} {limit:g}" for words, limit in limits.items() if limit is not None]
    if shown:
        said.append(f"Limits: {', '.join(shown)}.")
    if parameter.multiple:
        said.append("Can be repeated.")
    if isinstance(parameter.default, int | float | str) and not isinstance(parameter.default, bool):
        said.append(f"Default: {parameter.default}.")
    return names, " ".join(said) if said[0] else ""


def value_of(parameter: Any) -> str:
    """The placeholder of the value of an option."""
    words = {"int": "NUMBER", "float": "NUMBER", "Path": "PATH", "str": "TEXT"}
    return words.get(getattr(parameter.type_descriptor.annotation, "__name__", ""), "VALUE")


def exit_codes_page() -> str:
    """The meaning of each exit code."""
    lines = [f"{MADE}# Exit codes\n", "| code | meaning |", "| --- | --- |"]
    lines += [f"| {code.value} | {code.meaning} |" for code in ExitCode]
    return "\n".join(lines) + "\n"
