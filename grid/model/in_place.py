"""Tuples of many arrays in compiled code, handed on by where they stand.

numba hands a tuple to a function piece by piece: seven numbers for each array, some hundreds for
all columns of a cluster, and has them compiled again in every function on the way.
"""

from __future__ import annotations

from typing import Any, TypeVar

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_global, signature
from numba.extending import (
    infer_getattr,
    lower_builtin,
    lower_getattr_generic,
    models,
    register_model,
)

_NAMED = types.NamedTuple | types.NamedUniTuple
_Columns = TypeVar("_Columns", bound=tuple[Any, ...])


def in_place(columns: _Columns) -> _Columns:
    """The same named tuple, which compiled code hands on as the address of where it stands.

    That is in the frame of the function that asks for it, which must not give it back, and must
    keep the arrays.
    """
    return columns


class InPlace(types.Type):
    """The address of a named tuple."""

    def __init__(self, of: Any) -> None:
        self.of = of
        super().__init__(f"InPlace({of.name})")

    def place_of(self, field: str) -> int | None:
        return self.of.fields.index(field) if field in self.of.fields else None


@register_model(InPlace)
class _Address(models.PrimitiveModel):
    def __init__(self, manager: Any, of: InPlace) -> None:
        super().__init__(manager, of, ir.IntType(8).as_pointer())  # type: ignore[no-untyped-call]


@infer_global(in_place)
class _Call(AbstractTemplate):
    def generic(self, given: Any, _: Any) -> Any:
        (columns,) = given
        if isinstance(columns, _NAMED):
            return signature(InPlace(columns), columns)
        return None


@lower_builtin(in_place, types.BaseTuple)  # type: ignore[untyped-decorator]
def _address(_: Any, builder: Any, __: Any, given: Any) -> Any:
    place = cgutils.alloca_once_value(builder, given[0])
    return builder.bitcast(place, cgutils.voidptr_t)


@infer_getattr
class _Fields(AttributeTemplate):
    key = InPlace

    def generic_resolve(self, columns: InPlace, field: str) -> Any:  # type: ignore[override]
        place = columns.place_of(field)
        if place is None:
            return None
        found = columns.of[place]
        return InPlace(found) if isinstance(found, _NAMED) else found


@lower_getattr_generic(InPlace)  # type: ignore[untyped-decorator]
def _field(context: Any, builder: Any, columns: InPlace, address: Any, field: str) -> Any:
    place = columns.place_of(field)
    whole = builder.bitcast(address, context.get_value_type(columns.of).as_pointer())
    found = cgutils.gep_inbounds(builder, whole, 0, place)
    kind = columns.of[place]
    if isinstance(kind, _NAMED):
        return builder.bitcast(found, cgutils.voidptr_t)
    return impl_ret_borrowed(context, builder, kind, builder.load(found))
