"""From a scenario's sections in seconds to a grid's settings in microseconds."""

from __future__ import annotations

from grid.config.fault_sections import FaultsSection, MessageFaultsSection
from grid.config.metric_sections import MetricsSection
from grid.config.schema import NetworkSection, ProtocolSection, Scenario
from grid.config.sections import name_and_settings
from grid.model.faults import (
    EntityCrash,
    GridFaults,
    LinkFaults,
    MachineFailure,
    Outage,
    RandomCrashes,
    RandomMachineOutages,
    VoOutage,
    VoPartition,
)
from grid.model.grid_settings import GridSettings, Link, NetworkSettings, ProtocolRules
from grid.model.measured_jobs import MeasuredJobs
from grid.model.time import NEVER, from_seconds


def grid_settings(scenario: Scenario) -> GridSettings:
    """What the scenario says of the grid as a whole."""
    faults = scenario.faults
    return GridSettings(
        scenario.seed,
        _network(scenario.network),
        _protocol(scenario.protocol),
        None if faults is None else grid_faults(faults),
        measured_jobs(scenario.metrics),
    )


def grid_faults(section: FaultsSection) -> GridFaults:
    """What goes wrong, as the emulator takes it."""
    random = section.random_crashes
    return GridFaults(
        from_seconds(section.heal_s),
        section.seed,
        _link_faults(section.between_vos),
        _link_faults(section.within_vos),
        tuple(EntityCrash(one.entity, _outage(one.at_s, one.for_s)) for one in section.crashes),
        None
        if random is None
        else RandomCrashes(from_seconds(random.every_s), from_seconds(random.for_s)),
        tuple(VoOutage(one.vo, _outage(one.at_s, one.for_s)) for one in section.vo_outages),
        tuple(
            MachineFailure(one.vo, one.cluster, one.machine, _outage(one.at_s, one.for_s))
            for one in section.machine_outages
        ),
        tuple(
            VoPartition(one.one, one.other, _outage(one.at_s, one.for_s))
            for one in section.partitions
        ),
        tuple(
            RandomMachineOutages(
                one.vo, one.cluster, from_seconds(one.up_s), from_seconds(one.down_s), one.shape
            )
            for one in section.random_machine_outages
        ),
    )


def measured_jobs(section: MetricsSection) -> MeasuredJobs:
    """The jobs that figures of jobs are of."""
    until_s = section.submitted_until_s
    until_us = NEVER if until_s is None else from_seconds(until_s)
    return MeasuredJobs(from_seconds(section.submitted_from_s), until_us)


def _network(section: NetworkSection) -> NetworkSettings:
    return NetworkSettings(
        from_seconds(section.latency_s),
        from_seconds(section.local_latency_s),
        section.bandwidth_mbps,
        tuple(Link(link.between, from_seconds(link.latency_s)) for link in section.links),
    )


def _protocol(section: ProtocolSection) -> ProtocolRules:
    period_s = section.snapshot_period_s
    return ProtocolRules(
        section.ttl,
        *name_and_settings(section.when_busy),
        section.avoid_loops,
        section.when_refused,
        *name_and_settings(section.information),
        *name_and_settings(section.discount),
        section.snapshot_detail,
        None if period_s is None else from_seconds(period_s),
        section.snapshot_load_limit,
        section.snapshot_jobs_limit,
    )


def _link_faults(section: MessageFaultsSection) -> LinkFaults:
    return LinkFaults(section.lost, section.doubled, section.delayed, from_seconds(section.delay_s))


def _outage(at_s: float, for_s: float) -> Outage:
    return Outage(from_seconds(at_s), from_seconds(at_s) + from_seconds(for_s))
