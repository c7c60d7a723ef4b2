"""How the Information Services of a grid are made: who hears of whom, and what is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from grid.entities import names
from grid.entities.information_service import InformationService, Sources
from grid.entities.known_status import KnownStatus
from grid.entities.resource_manager import SnapshotRules
from grid.forwarding.rules import FORWARDING
from grid.information.discounts import DISCOUNTS
from grid.information.interface import Overlay, Whom
from grid.information.registry import INFORMATION
from grid.kernel.entity import random_stream
from grid.model.grid_settings import GridSettings
from grid.model.platform import VirtualOrganization
from grid.model.resources import resources_of
from grid.model.time import Time
from grid.parts.registry import Parts
from grid.selection.registry import SELECTIONS


class GridInformation:
    """What is the same for all VOs; `last_submission_us` is when the last job comes to any."""

    def __init__(
        self,
        settings: GridSettings,
        vos: Sequence[VirtualOrganization],
        parts: Parts,
        last_submission_us: Time,
    ) -> None:
        self._settings = settings
        self._vos = vos
        self._parts = parts
        self._last_submission_us = last_submission_us

    @cached_property
    def audience(self) -> Whom:
        """Who hears each VO's snapshots: the same in all processes, drawn from the seed alone."""
        stream = random_stream(self._settings.seed, "information")
        return self._overlay().audience(len(self._vos), stream)

    @cached_property
    def _heard_by(self) -> Whom:
        """Whose snapshots each VO hears."""
        heard: list[list[int]] = [[] for _ in self._vos]
        for vo, audience in enumerate(self.audience):
            for listener in audience:
                heard[listener].append(vo)
        return heard

    @cached_property
    def _services(self) -> tuple[str, ...]:
        return tuple(names.information_service(vo.name) for vo in self._vos)

    @cached_property
    def acquaintances(self) -> Whom:
        """Who hears that each VO joins."""
        return self._overlay().acquaintances(self.audience)

    @cached_property
    def tells_work(self) -> bool:
        """Whether anybody wants to know how much work is left on resources."""
        protocol, find = self._settings.protocol, self._parts.find
        selections = {repr((vo.selection, vo.selection_settings)): vo for vo in self._vos}
        wanting: list[Any] = [
            self._parts.make(SELECTIONS, vo.selection, dict(vo.selection_settings))
            for vo in selections.values()
        ]
        wanting.append(find(DISCOUNTS, protocol.discount).target)
        rules = [protocol.when_busy, *(vo.when_busy for vo in self._vos if vo.when_busy)]
        wanting += [find(FORWARDING, rule).target for rule in dict.fromkeys(rules)]
        return any(getattr(one, "needs_work", False) for one in wanting)

    def snapshot_rules(self, position: int) -> SnapshotRules:
        """When that VO publishes snapshots; never where nobody hears them."""
        protocol, heard = self._settings.protocol, bool(self.audience[position])
        return SnapshotRules(
            protocol.snapshot_detail == "summary",
            protocol.snapshot_period_us if heard else None,
            protocol.snapshot_load_limit if heard else None,
            protocol.snapshot_jobs_limit if heard else None,
            self.tells_work,
            len(self.audience[position]),
        )

    def service(self, position: int, board_vos: Sequence[tuple[int, int]]) -> InformationService:
        """The Information Service of that VO; `board_vos`: see `KnownStatus`."""
        settings, protocol = self._settings, self._settings.protocol
        overlay = self._overlay()
        hears = self._heard_by[position]
        own = resources_of(self._vos[position], position)
        sources = Sources(
            overlay,
            self._services,
            reads_board=bool(hears),
            summary=protocol.snapshot_detail == "summary",
            discount=self._discount(),
            # Where messages are lost nobody can tell that there was nothing to say.
            period_us=None if settings.faults else protocol.snapshot_period_us,
            delay_us=settings.network.longest_us,
            last_submission_us=self._last_submission_us,
        )
        known = KnownStatus(position, own, board_vos, hears, overlay.view_size)
        return InformationService(position, known, sources)

    def _overlay(self) -> Overlay:
        protocol = self._settings.protocol
        given = dict(protocol.information_settings)
        made: Overlay = self._parts.make(INFORMATION, protocol.information, given)
        return made

    def _discount(self) -> Callable[..., Any] | None:
        protocol = self._settings.protocol
        if protocol.discount == "as_told":
            return None
        made: Callable[..., Any] = self._parts.make(
            DISCOUNTS, protocol.discount, dict(protocol.discount_settings)
        )
        return made
