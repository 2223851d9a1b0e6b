"""Archives as pmlogger writes them from `iolens export pcp`, without any daemon: readings of trees, one per time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from iolens.agent.pcp.domain_agent import PcpSettings, ServedMetrics, collectors
from iolens.sources.pcp.lustre_metrics import DOMAIN, GROUPS, METRICS, LustreMetric
from tests.sources.pcp_writer import U64, S, Writer, units


def served(settings: PcpSettings) -> ServedMetrics:
    """What the agent serves of a root, read now."""
    lines: list[str] = []
    metrics = ServedMetrics(collectors(settings, lines.append), timeout_s=30.0)
    metrics.refresh(0)
    assert not lines, lines
    return metrics


def values_of(metrics: ServedMetrics) -> dict[str, dict[str, int]]:
    """Values by metric and instance name."""
    result: dict[str, dict[str, int]] = {}
    for name, metric in METRICS.items():
        names = {number: instance for instance, number in metrics.instances.get(metric.group.serial, {}).items()}
        shown = {names[number]: value for number, value in metrics.values.get(metric.item, {}).items()}
        if shown:
            result[name] = shown
    return result


def pmid(metric: LustreMetric) -> int:
    return DOMAIN << 22 | metric.group.cluster << 10 | metric.item


def archive(
    base: Path,
    samples: Sequence[tuple[int, ServedMetrics]],
    host: str = "n1",
    version: int = 3,
    logged: Mapping[str, LustreMetric] = METRICS,
) -> Path:
    """An archive with what was served at those seconds; `logged`: the metrics that pmlogger was asked for."""
    writer = Writer(version=version, host=host, start_us=samples[0][0] * S)
    for metric in logged.values():
        unit = units(*metric.leaf.units.dimension, scales=metric.leaf.units.scale)
        writer.describe(pmid(metric), metric.name, U64, unit, metric.leaf.semantics, domain(metric.group.serial))
    for second, metrics in samples:
        for group in GROUPS:
            names = {number: name for name, number in metrics.instances.get(group.serial, {}).items()}
            writer.names(second * S, names, domain=domain(group.serial))
        shown = {pmid(metric): metrics.values.get(metric.item, {}) for metric in logged.values()}
        writer.values(second * S, {number: values for number, values in shown.items() if values})
    return writer.write(base)


def domain(serial: int) -> int:
    return DOMAIN << 22 | serial
