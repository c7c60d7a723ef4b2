"""How numba compiles what only compiled code calls: for its callers alone.

Numba makes machine code of each function with all that it calls. That of a part of a kernel is
never run: the kernel has the part in its own. So a part is translated and optimized, and no more.
That and one form for all constants take a sixth to a third off the compiling of a first run; what
kernels do stays as fast. (Not to optimize parts would take off as much again, but EG-EDF, whose
loops are in parts, then plans at half its speed.)

Numba's guide on how to customize its compiler tells of pipelines and passes. What a library of
code does when it is complete, the guide does not tell: with another numba, look here first.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering
from numba.core.types import unliteral


class _LinkedLibrary(JITCodeLibrary):
    """Code that is linked into other code. It is complete without any machine code."""

    def _finalize_final_module(self) -> None:
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LinkedLowering(NativeLowering):
    """Lowers a function to a `_LinkedLibrary`, and tells numba that it can be called there."""

    _name = "linked_lowering"

    def run_pass(self, state: Any) -> bool:
        library: Any = _LinkedLibrary
        state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)  # type: ignore[no-untyped-call]
        # Numba tells functions apart by what Python would call, and takes nothing but a function
        # in C for that. Each list has another method; nobody calls it.
        called = list[Any]().append
        state.targetctx.insert_user_function(called, state.cr.fndesc, [state.library])
        # Numba 0.61 has nothing to do anew where code is read from disk.
        state.reload_init.extend(getattr(state.library, "_reload_init", ()))
        state["cr"] = state.cr._replace(cfunc=called)
        return True


class LinkedCompiler(CompilerBase):
    """The `pipeline_class` of functions that only compiled code calls."""

    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [
            (_LinkedLowering if one is NativeLowering else one, name) for one, name in passes.passes
        ]
        passes.finalize()
        return [passes]


def compile_once_for_all_values(compiled: Any) -> None:
    """Have calls with constants such as 0 or True use what is compiled for any value.

    Numba compiles a function again for each constant that compiled code calls it with.
    """
    template = compiled.get_call_template

    def template_for(args: Any, named: Any) -> Any:
        named = {name: unliteral(one) for name, one in named.items()}
        return template(tuple(unliteral(one) for one in args), named)

    compiled.get_call_template = template_for
