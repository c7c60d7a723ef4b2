"""Construction of the Information Services of a grid by its overlay and settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from grid.config.schema import GridSettings, SnapshotsSection
from grid.kernel.entity import random_stream
from grid.model.arrays import Ints
from grid.model.platform import ALWAYS, Distances, VirtualOrganization
from grid.model.plugins.registry import Plugins
from grid.model.resources import ResourceColumns, classes_of, concatenate_resources, resources_of
from grid.model.time import NEVER, Time
from grid.protocol import names
from grid.protocol.admission import admit_all
from grid.protocol.forwarding.local import forward, never, queue, reject, when_nothing_free
from grid.protocol.information import Overlay, PeerLists
from grid.protocol.information.overlays import All
from grid.protocol.information_service import InformationService, InformationSettings
from grid.protocol.known_state import KnownState, ResourceClasses
from grid.protocol.registry import ADMISSION, DISCOUNTS, FORWARDING, INFORMATION, SELECTIONS
from grid.protocol.resource_manager import SnapshotSettings

BY_CLASS = (queue, forward, reject, never, when_nothing_free)
"""Forwarding policies that only need the best resource: free, anywhere, here, elsewhere."""
LEAST_OF_A_CLASS = 2
LEAST_RESOURCES = 100
"""Classes do not pay off for fewer resources a class, on average, or fewer in all."""


@dataclass(frozen=True, eq=False)
class GridInformation:
    """The common part of all VOs; `last_submission_us` is the last submission of any."""

    settings: GridSettings
    vos: Sequence[VirtualOrganization]
    plugins: Plugins
    last_submission_us: Time
    requested: tuple[str, ...] = ()
    """Names of the resources that jobs of Local Schedulers request, and clusters limit."""

    @cached_property
    def subscribers(self) -> PeerLists:
        """The subscribers to each VO's snapshots, drawn from the seed alone."""
        stream = random_stream(self.settings.seed, "information")
        return self._overlay().subscribers(len(self.vos), stream)

    @cached_property
    def _subscriptions(self) -> PeerLists:
        """The VOs to whose snapshots each VO subscribes."""
        return _reversed(self.subscribers)

    @cached_property
    def services(self) -> tuple[str, ...]:
        return tuple(names.information_service(vo.name) for vo in self.vos)

    @cached_property
    def known_peers(self) -> PeerLists:
        """The VOs that know that each VO is in the grid."""
        return self._overlay().known_peers(self.subscribers)

    def notified_of(self, position: int) -> Sequence[int]:
        """The VOs that are notified when the VO joins or leaves; none if it never does."""
        is_always = self.vos[position].membership == ALWAYS
        return () if is_always else self.known_peers[position]

    @cached_property
    def _known_first(self) -> list[list[int]]:
        """The other members of the grid that are known to each VO at the start."""
        members = zip(self.vos, self.known_peers, strict=True)
        return _reversed([[] if vo.joins_us else peers for vo, peers in members])

    @cached_property
    def _resources(self) -> list[ResourceColumns]:
        return [resources_of(vo, position) for position, vo in enumerate(self.vos)]

    @cached_property
    def include_backlog(self) -> bool:
        """Whether any plugin needs the backlog of resources."""
        protocol, find = self.settings.protocol, self.plugins.find
        rules = [protocol.forwarding, *(vo.forwarding for vo in self.vos if vo.forwarding)]
        plugins: list[Any] = [
            *self._selections.values(),
            find(DISCOUNTS, protocol.discount.name).target,
            *(find(FORWARDING, name).target for name in dict.fromkeys(r.name for r in rules)),
        ]
        return any(getattr(one, "needs_backlog", False) for one in plugins)

    @cached_property
    def _classes(self) -> ResourceClasses | None:
        """The classes of equal resources, if all decisions need only the best of each class.

        That holds if all VOs receive full snapshots of all others, if selections and forwarding
        policies compare resources by properties and load only, if jobs request CPUs only, if no
        job is barred from any and no VO is ever lost.
        None if there are too few resources a class.
        """
        settings, protocol = self.settings, self.settings.protocol
        if not (
            (settings.faults is None and not protocol.avoid_loops and not protocol.recovers)
            and (
                self._discount() is None
                and not self.requested
                and protocol.snapshot_detail == "full"
            )
            and isinstance(self._overlay(), All)
            and all(map(self._decides_by_class, self.vos))
        ):
            return None
        resources = self._resources
        columns = concatenate_resources(resources)
        classes = classes_of(columns)
        most = len(columns) / LEAST_OF_A_CLASS
        if len(columns) < LEAST_RESOURCES or int(classes.max()) + 1 > most:
            return None
        first = np.cumsum([0, *map(len, resources)])
        return ResourceClasses(columns, classes, tuple(first.tolist()))

    def _decides_by_class(self, vo: VirtualOrganization) -> bool:
        protocol, find = self.settings.protocol, self.plugins.find
        rule = find(FORWARDING, (vo.forwarding or protocol.forwarding).name).target
        admits = find(ADMISSION, vo.admission.name).target
        return (
            any(rule is one for one in BY_CLASS)
            and admits is admit_all
            and bool(getattr(self._selections[repr(vo.selection)], "best_of_class_suffices", 0))
        )

    @cached_property
    def _selections(self) -> dict[str, Any]:
        """One of each kind in the grid."""
        kinds, make = {repr(vo.selection): vo.selection for vo in self.vos}, self.plugins.make
        return {kind: make(SELECTIONS, one.name, one.settings) for kind, one in kinds.items()}

    def snapshot_rules(self, position: int) -> SnapshotSettings:
        """When that VO publishes snapshots; never without subscribers."""
        protocol, subscribers = self.settings.protocol, len(self.subscribers[position])
        triggers = protocol.snapshots if subscribers else SnapshotsSection()
        return SnapshotSettings(
            protocol.snapshot_detail == "summary",
            triggers.period_us,
            triggers.load_above,
            triggers.jobs_above,
            self.include_backlog,
            subscribers,
            protocol.lost_after_s is not None and subscribers > 0,
            self.requested,
        )

    def service(
        self, position: int, board_vos: Sequence[tuple[int, int]], distances: Distances
    ) -> InformationService:
        """The service of a VO with these distances; `board_vos`: see `KnownState`."""
        settings, protocol = self.settings, self.settings.protocol
        overlay = self._overlay()
        peers = self._subscriptions[position]
        own = self._resources[position]
        delays_us = _delays_us(peers, distances, len(self.vos))
        made = InformationSettings(
            overlay,
            self.services,
            reads_board=bool(peers),
            summary=protocol.snapshot_detail == "summary",
            discount=self._discount(),
            # If messages may be lost, a missing snapshot does not mean an unchanged state.
            period_us=(
                None if settings.faults or protocol.lost_after_s else protocol.snapshots.period_us
            ),
            delay_us=distances.longest_us if delays_us is None else int(delays_us[peers].max()),
            delays_us=delays_us,
            last_submission_us=self.last_submission_us,
            classes=self._classes,
        )
        members = {vo for vo, _ in board_vos}
        others = {vo: self._resources[vo] for vo in self._known_first[position] if vo in members}
        known = KnownState(
            position, own, board_vos, peers, overlay.view_size, others, self.requested
        )
        return InformationService(position, known, made, self.vos[position].membership)

    def _overlay(self) -> Overlay:
        overlay = self.settings.protocol.information
        made: Overlay = self.plugins.make(INFORMATION, overlay.name, overlay.settings)
        return made

    def _discount(self) -> Callable[..., Any] | None:
        discount = self.settings.protocol.discount
        if discount.name == "no_correction":
            return None
        made: Callable[..., Any] = self.plugins.make(DISCOUNTS, discount.name, discount.settings)
        return made


def _reversed(peers: PeerLists) -> list[list[int]]:
    """The VOs in whose list each VO is, in order."""
    found: list[list[int]] = [[] for _ in peers]
    for vo, others in enumerate(peers):
        for other in others:
            found[other].append(vo)
    return found


def _delays_us(sources: Sequence[int], distances: Distances, vos: int) -> Ints | None:
    """Delays of snapshots by VO, NEVER without subscription; None: equal for all VOs."""
    if not distances.links or not sources:
        return None
    delays_us = np.full(vos, NEVER, np.int64)
    delays_us[sources] = distances.hops_us(np.array(sources, np.int64), 0.0)
    return delays_us
