"""Where the values of a scenario stand, for what is found wrong with them only when it is run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from grid.config.yaml_tree import Node, nearest
from grid.model.errors import Mistake


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The tree of the scenario, in the process that read it. Elsewhere nothing is known."""

    root: Node | None = None

    def __eq__(self, other: object) -> bool:
        """Scenarios are equal wherever they stand."""
        return isinstance(other, Places)

    def __hash__(self) -> int:
        return 0

    def __reduce__(self) -> Any:
        """A tree is large, and a sweep sends each of its scenarios to another process."""
        return Places, ()

    def of(self, mistake: Mistake) -> Mistake:
        """The mistake with the file and line, or the option, that its field is from."""
        if self.root is None:
            return mistake
        steps = mistake.field.split(".")
        path = tuple(int(step) if step.isdecimal() else step for step in steps)
        node = nearest(self.root, path)
        return mistake if node is self.root else replace(mistake, file=node.source, line=node.line)
