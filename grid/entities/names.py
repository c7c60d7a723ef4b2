"""How the entities of a grid are called: the VO's name, a slash, and what the entity is."""

from __future__ import annotations


def scheduler(vo: str) -> str:
    return f"{vo}/scheduler"


def resource_manager(vo: str) -> str:
    return f"{vo}/resources"


def information_service(vo: str) -> str:
    return f"{vo}/information"


def grid_dispatcher(vo: str) -> str:
    return f"{vo}/dispatcher"


def local_dispatcher(vo: str, cluster: str) -> str:
    return f"{vo}/cluster/{cluster}"


def workload_source(vo: str) -> str:
    return f"{vo}/source"
