"""Settings of a plugin, as its signature declares them: type, limits, default, description.

    def __init__(
        self, *, age_factor: Annotated[float, Field(ge=0, description="of a job's age")] = 0.01
    )

becomes a pydantic model with that field. A parameter `settings` annotated with a model declares all
settings at once, for those that depend on each other. Values are validated strictly: no text for a
number, no number for a bool, no setting that is not declared.
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError, create_model

from grid.model.errors import InvalidPlugin, Path, expected_name, shorten

_CONFIG = ConfigDict(
    extra="forbid",
    frozen=True,
    allow_inf_nan=False,
    arbitrary_types_allowed=True,
    protected_namespaces=(),
)


class PluginModel(BaseModel):
    """Settings that are declared together, as one model."""

    model_config = ConfigDict(**_CONFIG, use_attribute_docstrings=True)


MOST = 1e12
"""The largest weight or factor: sums and products of several stay finite."""
Weight = Annotated[float, Strict(), Field(ge=-MOST, le=MOST)]


class Declared(NamedTuple):
    """The settings that a plugin declares.

    With `whole` it takes the model itself; `injects` is the parameter for the run's `Plugins`.
    """

    model: type[BaseModel]
    whole: bool = False
    injects: str | None = None

    def values(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings as keyword arguments. Raises InvalidPlugin for the first invalid one."""
        try:
            checked = self._validated(dict(settings))
        except ValidationError as invalid:
            error: dict[str, Any] = dict(invalid.errors(include_url=False)[0])
            path, wanted = path_of(error, settings), expected(error)
            found = shorten(error.get("ctx", {}).get("tag", error["input"]))
            if is_missing(error):
                found = "nothing"
            elif not path:
                found = f"the settings {', '.join(settings)}" if settings else "no settings"
            elif error["type"] == "extra_forbidden" and len(path) == 1:
                found = "an unknown setting"
                wanted = expected_name(str(path[0]), self.model.model_fields, "a setting")
            elif wanted == UNKNOWN_KEY:
                found = "an unknown key"
            raise InvalidPlugin(found, wanted, path) from None
        if self.whole:
            return {"settings": checked}
        given = checked.model_fields_set
        return {name: getattr(checked, name) for name in self.model.model_fields if name in given}

    def _validated(self, settings: dict[str, Any]) -> BaseModel:
        try:
            text = json.dumps(settings)
        except (TypeError, ValueError):  # objects, which only Python can give
            return self.model.model_validate(settings)
        # In JSON, a strict tuple may be given as a list.
        return self.model.model_validate_json(text, strict=True)


NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
A_NAME = "a name: at most 64 letters, digits, `_`, `.` and `-`, the first a letter or digit"

UNKNOWN_KEY = "a known key"

_EXPECTED: dict[str, Callable[[dict[str, Any]], str]] = {
    **dict.fromkeys(("model_type", "dict_type"), lambda _: "a mapping"),
    "dataclass_type": lambda limits: (
        "a name, or a mapping with one" if limits["class_name"] == "PluginRef" else "a mapping"
    ),
    **dict.fromkeys(("tuple_type", "list_type"), lambda _: "a list"),
    **dict.fromkeys(("missing", "union_tag_not_found"), lambda _: "a value: this key is required"),
    **dict.fromkeys(("extra_forbidden", "unexpected_keyword_argument"), lambda _: UNKNOWN_KEY),
    "too_short": lambda limits: f"a length of at least {limits['min_length']}",
    "too_long": lambda limits: f"a length of at most {limits['max_length']}",
    "string_pattern_mismatch": lambda limits: (
        A_NAME if NAME in limits["pattern"] else f"text that matches {limits['pattern']}"
    ),
    "value_error": lambda limits: str(limits["error"]),
    "union_tag_invalid": lambda limits: f"one of {limits['expected_tags'].replace(chr(39), '')}",
}


def is_missing(error: Mapping[str, Any]) -> bool:
    return error["type"] in ("missing", "union_tag_not_found")


def path_of(error: Mapping[str, Any], root: Any) -> Path:
    """The path of a pydantic error in `root`, with the key that selects the shape of a mapping.

    It has no names of the alternatives of unions, which pydantic's location has.
    """
    path: Path = ()
    for step in error["loc"]:
        if isinstance(root, list | tuple):
            inside = isinstance(step, int) and step < len(root)
        else:
            inside = isinstance(root, Mapping) and step in root
        if inside:
            root, path = root[step], (*path, step)
    missing = error["loc"][-1:] if error["type"] == "missing" else ()
    tag = (error.get("ctx") or {}).get("discriminator")
    return (*path, *missing, *([tag.strip("'")] if tag else []))


def expected(error: Mapping[str, Any]) -> str:
    """The expected value, in our words if pydantic's name its types."""
    text = _EXPECTED.get(error["type"])
    if text is not None:
        return text(error.get("ctx", {}))
    message = str(error["msg"]).removeprefix("Input should be ")
    return message.replace("greater than or equal to", "at least").replace(
        "less than or equal to", "at most"
    )


def declared(target: Any, given: int, injected: type) -> Declared:
    """The settings of `target`, which takes `given` other arguments first.

    A parameter annotated with the type `injected` is no setting. Raises TypeError or NameError if
    the signature cannot be read.
    """
    fields: dict[str, Any] = {}
    whole: type[BaseModel] | None = None
    injects = None
    for name, parameter, annotation in _parameters(target, given):
        kind = annotation if isinstance(annotation, type) else object
        if name.startswith("_") or name == "model_config":
            # pydantic would leave such a field out of the model silently.
            raise TypeError(f"the parameter {name} has a name that no setting can have")
        if issubclass(kind, injected):
            injects = name
        elif issubclass(kind, BaseModel) and name == "settings":
            whole = kind
        else:
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[name] = (annotation, default)
    if whole is not None:
        if fields:
            raise TypeError(f"the parameter {next(iter(fields))} next to a model of the settings")
        return Declared(whole, True, injects)
    name = getattr(target, "__name__", "plugin")
    with warnings.catch_warnings():
        # A setting may have the name of a method of the model, such as `copy`.
        warnings.filterwarnings("ignore", "Field name .* shadows an attribute", UserWarning)
        model = create_model(f"settings of {name}", __config__=_CONFIG, **fields)
    return Declared(model, False, injects)


def _parameters(target: Any, given: int) -> Iterator[tuple[str, inspect.Parameter, Any]]:
    """Name, parameter and annotation of each setting; with `**others`, those of parent classes."""
    callables = [target]
    if inspect.isclass(target):
        callables = [vars(base)["__init__"] for base in target.__mro__ if "__init__" in vars(base)]
        given += 1
    seen: dict[str, None] = {}
    for function in callables:
        if function is object.__init__:
            return
        parameters = list(inspect.signature(function).parameters.values())
        for place, parameter in enumerate(parameters):
            variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            first = place < given and parameter.kind is not parameter.KEYWORD_ONLY
            if not variadic and not first and parameter.name not in seen:
                seen[parameter.name] = None
                yield parameter.name, parameter, _annotation(function, parameter)
        if all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters):
            return


def _annotation(function: Any, parameter: inspect.Parameter) -> Any:
    annotation = parameter.annotation
    if isinstance(annotation, str):
        while isinstance(function, partial):
            function = function.func
        function = inspect.unwrap(function.__init__ if inspect.isclass(function) else function)
        annotation = eval(annotation, getattr(function, "__globals__", {}))
        # cloudpickle sends a class of a script with the names that its code uses, and not with
        # those in annotations that are text.
        getattr(function, "__annotations__", {})[parameter.name] = annotation
    if annotation is parameter.empty:
        is_scalar = type(parameter.default) in (bool, int, float, str)
        return type(parameter.default) if is_scalar else Any
    return annotation


def setting_lines(model: type[BaseModel]) -> Iterator[str]:
    """A line for each setting: its name, type, limits, default and description."""
    schema = model.model_json_schema()
    for name, field in model.model_fields.items():
        default = "required"
        if not field.is_required():
            default = f"default {_word(field.get_default(call_default_factory=True))}"
        limits = _limits(schema["properties"][name], schema.get("$defs", {}))
        description = f": {' '.join(field.description.split())}" if field.description else ""
        yield f"{name}: {limits}, {default}{description}"


def _word(value: object) -> str:
    if isinstance(value, BaseModel):
        return f"{{{', '.join(f'{key}: {_word(one)}' for key, one in value)}}}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_word, value))}]"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "none"}[value]
    return str(value)


TYPE_WORDS = {
    "integer": "an integer", "number": "a number", "boolean": "true or false",
    "string": "text", "object": "a mapping", "array": "a list", "null": "none",
}  # fmt: skip
LIMIT_WORDS = {
    "minimum": "at least", "maximum": "at most", "exclusiveMinimum": "above",
    "exclusiveMaximum": "below",
}  # fmt: skip


def _limits(schema: Mapping[str, Any], inner: Mapping[str, Any]) -> str:
    """The allowed values; `inner` has the mappings to which the schema refers, by name."""
    if "anyOf" in schema:
        return " or ".join(_limits(one, inner) for one in schema["anyOf"])
    if "discriminator" in schema:
        key = schema["discriminator"]["propertyName"]
        shapes = schema["discriminator"]["mapping"].items()
        each = [f"{name} ({_keys(inner, where, key)})" for name, where in shapes]
        return f"a mapping with a `{key}`: {', '.join(each)}"
    if "enum" in schema:
        return "one of " + ", ".join(map(_word, schema["enum"]))
    if "$ref" in schema:
        return f"a mapping ({_keys(inner, schema['$ref'])})"
    if "$ref" in schema.get("items", {}):
        return f"a list of mappings ({_keys(inner, schema['items']['$ref'])})"
    words = TYPE_WORDS.get(str(schema.get("type")), "anything")
    limits = [f"{text} {schema[key]:g}" for key, text in LIMIT_WORDS.items() if key in schema]
    return " ".join([words, ", ".join(limits)]).strip()


def _keys(inner: Mapping[str, Any], where: str, but: str = "") -> str:
    keys = inner[where.rpartition("/")[2]].get("properties", {})
    return ", ".join(key for key in keys if key != but)
