"""A requirement of a job, from its section of a scenario."""

from __future__ import annotations

from grid.config.workload_sections import RequirementSection
from grid.model.job import Option, Requirement, RequirementKind
from grid.model.platform import ARCHITECTURES, OPERATING_SYSTEMS


def requirement_of(section: RequirementSection) -> Requirement:
    """The requirement; names of systems and architectures become their numbers."""
    named = {"operating_system": OPERATING_SYSTEMS, "architecture": ARCHITECTURES}
    values = named.get(section.kind)
    return Requirement(
        RequirementKind[section.kind.upper()],
        tuple(
            Option(
                float(values.index(str(option.value)) if values else option.value), option.utility
            )
            for option in section.options
        ),
        section.weight,
    )
