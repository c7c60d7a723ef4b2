"""Settings of plugins, as signatures and models declare them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from grid.model.errors import InvalidPlugin
from grid.model.plugins.settings import PluginModel, declared, setting_lines


class Even(PluginModel):
    law: Literal["even"] = "even"
    mean_s: float = 1.0


class Skewed(PluginModel):
    law: Literal["skewed"]
    mean_s: float


class Settings(PluginModel):
    work: Annotated[Even | Skewed, Field(discriminator="law")] = Field(description="run times")
    pause: Even = Even()
    most: int | None = None


def with_model(*, settings: Settings) -> None:
    """A plugin whose settings are one model."""


def test_nested_settings_are_listed_with_their_keys() -> None:
    assert list(setting_lines(declared(with_model, 0, type(None)).model)) == [
        "work: a mapping with a `law`: even (mean_s), skewed (mean_s), required: run times",
        "pause: a mapping (law, mean_s), default {law: even, mean_s: 1.0}",
        "most: an integer or none, default none",
    ]


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"one": True}, ("one",)),
        ({"one": 0}, ("one",)),
        ({"switch": 1}, ("switch",)),
        ({"other": 1}, ("other",)),
        ({"word": "c"}, ("word",)),
    ],
)
def test_values_are_validated_strictly(settings: dict[str, Any], path: tuple[str, ...]) -> None:
    def made(
        *, one: Annotated[int, Field(ge=1)] = 1, switch: bool = False, word: Literal["a", "b"] = "a"
    ) -> None:
        del one, switch, word

    with pytest.raises(InvalidPlugin) as refused:
        declared(made, 0, dict).values(settings)
    assert refused.value.path == path


def test_a_wrong_shape_is_reported_at_the_key_that_selects_it() -> None:
    with pytest.raises(InvalidPlugin) as refused:
        declared(with_model, 0, dict).values({"work": {"law": "odd"}})
    assert refused.value.path == ("work", "law")


@pytest.mark.parametrize("name", ["_hidden", "model_config"])
def test_a_name_that_pydantic_would_drop_is_refused(name: str) -> None:
    names: dict[str, Any] = {}
    exec(f"def plugin(*, {name}: int = 3): pass", names)
    with pytest.raises(TypeError, match=name):
        declared(names["plugin"], 0, type(None))
