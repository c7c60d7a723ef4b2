"""How numba makes machine code of a function that only compiled code calls: with its callers.

Left alone, numba optimizes every function with all that it calls, and makes machine code of it, and
does so again for each function that calls it. What is deep down in a policy is optimized ten times.
Here a part stays as it is until a function that Python calls is compiled, and only then all of it
is optimized, once, and becomes machine code.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.environment import lookup_environment
from numba.core.typed_passes import NativeLowering

_ENVIRONMENT = "_ZN08NumbaEnv"
"""How the names begin under which functions find their environments, see numba's callconv."""


class _NoMachineCode:
    """In place of numba's generator of machine code, where there is none to set anything in."""

    def set_env(self, name: str, environment: Any) -> None:
        pass


class _Part(JITCodeLibrary):
    """The code of a function that is not optimized before it is put into a `_Whole`."""

    codegen = _NoMachineCode()

    def finalize(self) -> None:
        self._raise_if_finalized()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return 0


class _Whole(JITCodeLibrary):
    """The code of a function that Python calls, with all its parts."""

    def add_linking_library(self, library: Any) -> None:
        if library in self._linking_libraries:
            return
        super().add_linking_library(library)  # type: ignore[no-untyped-call]
        if isinstance(library, _Part):
            for other in library._linking_libraries:
                self.add_linking_library(other)

    def set_environments(self) -> None:
        """Those of its parts; numba itself sets the one of the function, and all from its cache."""
        for variable in self._final_module.global_variables:
            if variable.name.startswith(_ENVIRONMENT):
                environment = lookup_environment(variable.name)
                if environment is not None:
                    self.codegen.set_env(variable.name, environment)


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerPart(NativeLowering):
    _name = "grid_lower_part"

    def run_pass(self, state: Any) -> bool:
        state.library = _library(_Part, state)
        return bool(super().run_pass(state))  # type: ignore[no-untyped-call]


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerWhole(NativeLowering):
    _name = "grid_lower_whole"

    def run_pass(self, state: Any) -> bool:
        state.library = _library(_Whole, state)
        done = bool(super().run_pass(state))  # type: ignore[no-untyped-call]
        state.library.set_environments()
        return done


class CompiledPart(CompilerBase):
    """The `pipeline_class` of what only compiled code calls."""

    def define_pipelines(self) -> list[PassManager]:
        return [_with(_LowerPart, self.state)]


class CompiledWhole(CompilerBase):
    """The `pipeline_class` of what Python calls."""

    def define_pipelines(self) -> list[PassManager]:
        return [_with(_LowerWhole, self.state)]


def _library(kind: type[JITCodeLibrary], state: Any) -> JITCodeLibrary:
    library = kind(state.targetctx.codegen(), state.func_id.func_qualname)
    library.enable_object_caching()
    return library


def _with(lowering: type[NativeLowering], state: Any) -> PassManager:
    """numba's own passes, but for the one that makes code for LLVM."""
    passes = DefaultPassBuilder.define_nopython_pipeline(state)
    passes.passes = [
        (lowering if one is NativeLowering else one, said) for one, said in passes.passes
    ]
    passes.finalize()
    return passes  # type: ignore[no-any-return]
