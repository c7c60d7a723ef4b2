"""What `grid parts` says of the settings of a part."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from grid.model.errors import InvalidPlugin
from grid.model.plugins.settings import PluginModel, declared, lines_on


class Even(PluginModel):
    distribution: Literal["even"] = "even"
    mean_s: float = 1.0


class Skewed(PluginModel):
    distribution: Literal["skewed"]
    mean_s: float
    cv: float


class Size(PluginModel):
    cpus: int
    share: float = 1.0


class Settings(PluginModel):
    work: Annotated[Even | Skewed, Field(discriminator="distribution")] = Field(
        description="run times"
    )
    pause: Even = Even()
    sizes: tuple[Size, ...] = (Size(cpus=2),)
    most: int | None = None


def part(*, settings: Settings) -> None:
    """A part whose settings are mappings."""


def test_mappings_are_told_with_their_keys() -> None:
    assert list(lines_on(declared(part, 0, type(None)).model)) == [
        "work: a mapping with a `distribution`: "
        "even (mean_s), skewed (mean_s, cv), required: run times",
        "pause: a mapping (distribution, mean_s), default {distribution: even, mean_s: 1.0}",
        "sizes: a list of mappings (cpus, share), default [{cpus: 2, share: 1.0}]",
        "most: a whole number or none, default none",
    ]


def test_settings_come_in_the_order_of_their_declaration() -> None:
    """Not in that of a set, which another hash seed turns round."""

    def made(*, one: int = 1, two: int = 2, three: int = 3, four: int = 4) -> int:
        return one + two + three + four

    given = {"four": 1, "two": 1, "three": 1, "one": 1}
    assert list(declared(made, 0, type(None)).values(given)) == ["one", "two", "three", "four"]


def test_a_setting_may_have_the_name_of_a_method_of_the_model() -> None:
    def made(*, copy: int = 1, schema: str = "a") -> tuple[int, str]:
        return copy, schema

    values = declared(made, 0, dict).values({"copy": 4, "schema": "b"})
    assert values == {"copy": 4, "schema": "b"}
    with pytest.raises(InvalidPlugin, match="many"):
        declared(made, 0, dict).values({"copy": "many"})


@pytest.mark.parametrize("name", ["_hidden", "model_config"])
def test_a_setting_that_would_be_left_out_is_refused(name: str) -> None:
    names: dict[str, Any] = {}
    exec(f"def part(*, {name}: int = 3): pass", names)
    with pytest.raises(TypeError, match=f"the parameter {name} has a name that no setting can"):
        declared(names["part"], 0, type(None))
