"""The settings of a part, as its signature declares them: type, limits, default, a sentence.

    def __init__(
        self, *, age_factor: Annotated[float, Field(ge=0, description="of a job's age")] = 0.01
    )

becomes a pydantic model with that field. A parameter `settings` that is annotated with a model
declares all settings at once, for those that have to agree with each other. What is given is
taken strictly: no text for a number, no number for a switch, nothing that is not declared.
"""

from __future__ import annotations

import inspect
import re
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticKnownError

from grid.model.errors import InvalidPlugin, shorten

_CONFIG = ConfigDict(
    extra="forbid",
    frozen=True,
    allow_inf_nan=False,
    arbitrary_types_allowed=True,
    protected_namespaces=(),
)


class PluginModel(BaseModel):
    """Settings that are declared together, as one model."""

    model_config = _CONFIG


MOST = 1e12
"""The largest weight or factor: sums and products of some stay far from the end of floats."""
Weight = Annotated[float, Strict(), Field(ge=-MOST, le=MOST)]

_SCALARS = (bool, int, float, str)


class Declared(NamedTuple):
    """What a part declares: the model of its settings, and how it wants to be given them.

    With `whole` it takes the model itself; `wants` is the parameter for the parts of the run.
    """

    model: type[BaseModel]
    whole: bool = False
    wants: str | None = None

    def values(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings as keyword arguments. Raises InvalidPlugin for the first that is wrong."""
        try:
            checked = self.model.model_validate(dict(settings))
        except ValidationError as invalid:
            raise _first_problem(invalid, settings) from None
        if self.whole:
            return {"settings": checked}
        given = checked.model_fields_set
        return {name: getattr(checked, name) for name in self.model.model_fields if name in given}


def _first_problem(invalid: ValidationError, settings: Mapping[str, Any]) -> InvalidPlugin:
    error = invalid.errors(include_url=False)[0]
    path = tuple(error["loc"])
    found = "nothing" if error["type"] == "missing" else shorten(error["input"])
    if tag := tag_key(error):
        path += tag
        found = repr(error["ctx"]["tag"]) if "tag" in error["ctx"] else "nothing"
    if not path:
        found = f"the settings {', '.join(settings)}" if settings else "no settings"
    return InvalidPlugin(found, expected(dict(error)), path)


NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
A_NAME = "a name: at most 64 letters, digits, `_`, `.` and `-`, the first a letter or digit"

_EXPECTED: dict[str, Callable[[dict[str, Any]], str]] = {
    "bool_type": lambda _: "true or false",
    "int_type": lambda _: "a whole number",
    "int_from_float": lambda _: "a whole number",
    "int_parsing": lambda _: "a whole number",
    "float_type": lambda _: "a number",
    "float_parsing": lambda _: "a number",
    "string_type": lambda _: "text",
    "finite_number": lambda _: "a finite number",
    "model_type": lambda _: "a mapping",
    "dataclass_exact_type": lambda limits: f"a {limits['class_name']}",
    "dict_type": lambda _: "a mapping",
    "tuple_type": lambda _: "a list",
    "list_type": lambda _: "a list",
    "extra_forbidden": lambda _: "no such setting",
    "missing": lambda _: "a value: this key is required",
    "literal_error": lambda limits: re.sub(
        r"\b(True|False)\b", lambda word: word[0].lower(), str(limits["expected"])
    ),
    "string_pattern_mismatch": lambda limits: (
        A_NAME if NAME in limits["pattern"] else f"text that matches {limits['pattern']}"
    ),
    "too_short": lambda limits: f"at least {limits['min_length']} in it",
    "too_long": lambda limits: f"at most {limits['max_length']} in it",
    "greater_than": lambda limits: f"a number above {_number(limits['gt'])}",
    "greater_than_equal": lambda limits: f"at least {_number(limits['ge'])}",
    "less_than": lambda limits: f"a number below {_number(limits['lt'])}",
    "less_than_equal": lambda limits: f"at most {_number(limits['le'])}",
    "value_error": lambda limits: str(limits["error"]),
    "union_tag_invalid": lambda limits: f"one of {limits['expected_tags'].replace(chr(39), '')}",
    "union_tag_not_found": lambda _: "a value: this key is required",
}


def tag_key(error: Mapping[str, Any]) -> tuple[str, ...]:
    """The key of a mapping that says which of several shapes it has, if that key is wrong."""
    is_tag = error["type"] in ("union_tag_invalid", "union_tag_not_found")
    return (error["ctx"]["discriminator"].strip("'"),) if is_tag else ()


def expected(error: Mapping[str, Any]) -> str:
    """What pydantic expected where it reports `error`, in our words."""
    say = _EXPECTED.get(error["type"])
    if say is not None:
        return say(error.get("ctx", {}))
    return str(error["msg"]).removeprefix("Input should be ")


def _number(limit: float) -> str:
    if float(limit).is_integer():
        return str(int(limit))
    return f"{limit:f}".rstrip("0") if abs(limit) >= 1e-6 else f"{limit:g}"


def declared(target: Any, given: int, injected: type) -> Declared:
    """What `target`, which takes `given` other arguments first, declares.

    A parameter annotated with the type `injected` is no setting. Raises TypeError or NameError
    where the signature cannot be read.
    """
    fields: dict[str, Any] = {}
    whole: type[BaseModel] | None = None
    wants = None
    for name, parameter, annotation in _parameters(target, given):
        if name.startswith("_") or name == "model_config":
            # pydantic takes it for something of its own, and would leave it out in silence.
            raise TypeError(f"the parameter {name} has a name that no setting can have")
        if isinstance(annotation, type) and issubclass(annotation, injected):
            wants = name
        elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
            if name != "settings":
                raise TypeError(f"the parameter {name} is a model and not called settings")
            whole = annotation
        else:
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[name] = (_strict(annotation), default)
    if whole is not None:
        if fields:
            raise TypeError(f"the parameter {next(iter(fields))} beside a model of the settings")
        return Declared(whole, True, wants)
    name = getattr(target, "__name__", "part")
    with warnings.catch_warnings():
        # A setting may be called as a method of the model is, such as `copy`: nobody calls it.
        warnings.filterwarnings("ignore", "Field name .* shadows an attribute", UserWarning)
        model = create_model(f"settings of {name}", __config__=_CONFIG, **fields)
    return Declared(model, False, wants)


def _parameters(target: Any, given: int) -> Iterator[tuple[str, inspect.Parameter, Any]]:
    """Name, parameter and annotation of each setting; of a class, its parents' where it says so."""
    callables = [target]
    if inspect.isclass(target):
        callables = [
            base.__dict__["__init__"] for base in target.__mro__ if "__init__" in vars(base)
        ]
        given += 1
    seen: dict[str, None] = {}
    for function in callables:
        if function is object.__init__:
            return
        parameters = list(inspect.signature(function).parameters.values())
        for place, parameter in enumerate(parameters):
            fixed = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            first = place < given and parameter.kind is not parameter.KEYWORD_ONLY
            if not fixed and not first and parameter.name not in seen:
                seen[parameter.name] = None
                yield parameter.name, parameter, _annotation(function, parameter)
        if all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters):
            return


def _annotation(function: Any, parameter: inspect.Parameter) -> Any:
    annotation = parameter.annotation
    if isinstance(annotation, str):
        while isinstance(function, partial):
            function = function.func
        if inspect.isclass(function):
            function = function.__init__
        function = inspect.unwrap(function)
        annotation = eval(annotation, getattr(function, "__globals__", {}))
        # A class of a script goes to other processes with the names that its code uses, and text
        # in annotations uses none.
        getattr(function, "__annotations__", {})[parameter.name] = annotation
    if annotation is parameter.empty:
        return type(parameter.default) if type(parameter.default) in _SCALARS else Any
    return annotation


def _strict(annotation: Any) -> Any:
    """The same type, with its scalars taken for what they are and nothing else."""
    if annotation in _SCALARS:
        return Annotated[annotation, Strict()]
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is None:
        return annotation
    if origin is Literal:
        return Annotated[annotation, BeforeValidator(partial(_of_their_types, inner))]
    if origin is Annotated:
        return Annotated[(_strict(inner[0]), *inner[1:])]
    if origin in (Union, types.UnionType):
        return Union[tuple(map(_strict, inner))]  # noqa: UP007
    return origin[tuple(one if one is ... else _strict(one) for one in inner)]


def _of_their_types(values: tuple[Any, ...], given: Any) -> Any:
    """What is given, unless it is like one of the values only as 1 is like true."""
    alike = [type(one) for one in values if one == given]
    if alike and type(given) not in alike:
        *first, last = map(repr, values)
        expected = f"{', '.join(first)} or {last}" if first else last
        raise PydanticKnownError("literal_error", {"expected": expected})
    return given


def lines_on(model: type[BaseModel]) -> Iterator[str]:
    """A line on each setting: its name, type, limits and default, and the sentence on it."""
    shown = model.model_json_schema()
    for name, field in model.model_fields.items():
        schema = shown["properties"][name]
        default = "required" if field.is_required() else f"default {_written(field)}"
        limits = _limits(schema, shown.get("$defs", {}))
        sentence = f": {field.description}" if field.description else ""
        yield f"{name}: {limits}, {default}{sentence}"


def _written(field: FieldInfo) -> str:
    return _word(field.get_default(call_default_factory=True))


def _word(value: object) -> str:
    """A value as it is written in a scenario."""
    if isinstance(value, BaseModel):
        return f"{{{', '.join(f'{key}: {_word(one)}' for key, one in value)}}}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_word, value))}]"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "none"}[value]
    return str(value)


TYPE_WORDS = {
    "integer": "a whole number", "number": "a number", "boolean": "true or false",
    "string": "text", "object": "a mapping", "array": "a list", "null": "none",
}  # fmt: skip
LIMIT_WORDS = {
    "minimum": "at least", "maximum": "at most", "exclusiveMinimum": "above",
    "exclusiveMaximum": "below",
}  # fmt: skip


def _limits(schema: Mapping[str, Any], inner: Mapping[str, Any]) -> str:
    """What a value may be; `inner` are the mappings that the schema refers to, by name."""
    if "anyOf" in schema:
        return " or ".join(_limits(one, inner) for one in schema["anyOf"])
    if "discriminator" in schema:
        key = schema["discriminator"]["propertyName"]
        shapes = schema["discriminator"]["mapping"].items()
        told = [f"{name} ({_keys(inner, where, key)})" for name, where in shapes]
        return f"a mapping with a `{key}`: {', '.join(told)}"
    if "enum" in schema:
        return "one of " + ", ".join(map(_word, schema["enum"]))
    if "$ref" in schema:
        return f"a mapping ({_keys(inner, schema['$ref'])})"
    if "$ref" in schema.get("items", {}):
        return f"a list of mappings ({_keys(inner, schema['items']['$ref'])})"
    words = TYPE_WORDS.get(str(schema.get("type")), "anything")
    limits = [f"{said} {schema[key]:g}" for key, said in LIMIT_WORDS.items() if key in schema]
    return " ".join([words, ", ".join(limits)]).strip()


def _keys(inner: Mapping[str, Any], where: str, but: str = "") -> str:
    """The keys of the mapping to which a schema refers, without that one which names it."""
    keys = inner[where.rpartition("/")[2]].get("properties", {})
    return ", ".join(key for key in keys if key != but)
