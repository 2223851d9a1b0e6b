"""The agent that pmcd starts and asks through a pipe, and what PCP needs to start it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from iolens.agent.exporter.jobs import JobRanking
from iolens.agent.exporter.reading import MetricCollector, Served
from iolens.agent.pcp.readings import InstanceNumbers, PcpClientMounts, ServerJobs, ServerTargets, Values
from iolens.errors import UsageError
from iolens.sources.pcp.lustre_metrics import (
    AGENT,
    CLIENT,
    CLUSTERS,
    COLLECTORS,
    DOMAIN,
    GROUPS,
    JOB,
    METRICS,
    ROOT,
    TARGET,
    LustreMetric,
    MetricGroup,
)

# The agent that pmcd starts and asks through a pipe -------------------------------------------------------------------
# Metrics, instances and values for PCP's own Python module.
#
# That module is compiled for the system's Python, so this runs there, without any other package. A file that cannot be
# read, or hangs, costs its values, never the agent.

TIMEOUT_S: Final = 1.3  # three collectors one after the other stay below the 5 s that pmcd waits


@dataclass(frozen=True)
class PcpSettings:
    """What `iolens export pcp` was asked to serve."""

    root: Path = Path("/")
    domain: int = DOMAIN
    jobs: int = 100
    interval_s: float = 0.5
    jobs_interval_s: float = 10.0
    filesystem: str | None = None
    log: str | None = None  # file of the agent's own log; None: pmcd's directory of logs


def collectors(settings: PcpSettings, say: Callable[[str], None]) -> dict[int, MetricCollector[Values]]:
    """What is read, by cluster."""
    root, interval_s = settings.root, settings.interval_s
    reads = {CLIENT: (PcpClientMounts(root).read, interval_s)}
    reads[TARGET] = (ServerTargets(root, settings.filesystem).read, interval_s)
    if settings.jobs:
        ranking = JobRanking(root, settings.jobs, settings.filesystem, with_sizes=True)
        reads[JOB] = (ServerJobs(ranking).read, max(settings.jobs_interval_s, interval_s))
    return {cluster: MetricCollector(CLUSTERS[cluster], read, every, say) for cluster, (read, every) in reads.items()}


@dataclass
class ServedMetrics:
    """The values of all clusters, by the number of metric and instance; what is not known has no value."""

    collectors: dict[int, MetricCollector[Values]]
    timeout_s: float = TIMEOUT_S
    values: dict[int, dict[int, int]] = field(default_factory=dict)  # by the metric's number
    instances: dict[int, dict[str, int]] = field(default_factory=dict)  # by instance domain: names and numbers
    changed: set[int] = field(default_factory=set)  # instance domains with other instances than before
    _numbers: dict[int, InstanceNumbers] = field(default_factory=dict)
    _served: dict[int, Served[Values]] = field(default_factory=dict)
    _given_up: set[int] = field(default_factory=set)

    def refresh(self, cluster: int) -> None:
        """Read what is due of one cluster."""
        for number in self.collectors if cluster == AGENT else [cluster]:
            if number in self.collectors:
                self._read(number)
        self._keep(AGENT, self._own())

    def _read(self, cluster: int) -> None:
        """Wait once for a reading that hangs, not at every fetch."""
        collector = self.collectors[cluster]
        collector.begin()
        served = collector.result(time.monotonic() + (0.0 if cluster in self._given_up else self.timeout_s))
        if served.age_s is None:
            self._given_up.add(cluster)
        else:
            self._given_up.discard(cluster)
        self._served[cluster] = served
        self._keep(cluster, served.reading.metrics)

    def _own(self) -> dict[str, Values]:
        metrics: dict[str, Values] = {}
        for cluster, served in self._served.items():
            own = {
                "success": int(served.success),
                "problems": served.reading.problems,
                "time": round(served.duration_s * 1e6),
            }
            for metric in METRICS.values():
                if metric.group.table == COLLECTORS:
                    metrics.setdefault(metric.name, {})[CLUSTERS[cluster]] = own[metric.leaf.key]
        return metrics

    def _keep(self, cluster: int, metrics: dict[str, Values]) -> None:
        for group in GROUPS:
            if group.cluster == cluster:
                named = [metric for metric in METRICS.values() if metric.group is group]
                self._keep_group(group, [(metric, metrics.get(metric.name, {})) for metric in named])

    def _keep_group(self, group: MetricGroup, named: Iterable[tuple[LustreMetric, Values]]) -> None:
        numbers = self._numbers.setdefault(group.serial, InstanceNumbers())
        instances: dict[str, int] = {}
        for metric, values in named:
            instances.update((name, numbers.of(name)) for name in values)
            self.values[metric.item] = {instances[name]: value for name, value in values.items()}
        if instances.keys() != self.instances.get(group.serial, {}).keys():
            self.instances[group.serial] = instances
            self.changed.add(group.serial)
            numbers.forget_all_but(instances)


class DomainAgent:
    """Answers pmcd until it closes the pipe."""

    def __init__(self, settings: PcpSettings) -> None:
        from pcp import pmda

        self._pcp: Any = pmda
        log = {} if settings.log is None else {"logfile": settings.log}
        self.pmda: Any = pmda.PMDA(ROOT, settings.domain, **log)
        self.served = ServedMetrics(collectors(settings, self.pmda.log))
        self._cluster_of = {group.serial: group.cluster for group in GROUPS}
        self._describe()

    def run(self) -> None:
        """Serve; returns when pmcd ends."""
        self.pmda.set_refresh(self._refresh)
        self.pmda.set_instance(lambda serial: self._refresh(self._cluster_of.get(serial, AGENT)))
        self.pmda.set_fetch_callback(self._value)
        self.pmda.run()

    def _describe(self) -> None:
        pmda, pcp = self.pmda, self._pcp
        for group in GROUPS:
            text = f"Instances of {ROOT}.{group.name}: {group.instances}"
            pmda.add_indom(pcp.pmdaIndom(pmda.indom(group.serial), []), text, text)
        for metric in METRICS.values():
            units = metric.leaf.units
            described = pcp.pmdaMetric(
                pmda.pmid(metric.group.cluster, metric.item),
                _u64(),
                pmda.indom(metric.group.serial),
                metric.leaf.semantics,
                pcp.pmdaUnits(*units.dimension, *units.scale),
            )
            pmda.add_metric(metric.name, described, metric.leaf.oneline, metric.text)

    def _refresh(self, cluster: int) -> None:
        try:
            self.served.refresh(cluster)
            self._replace_instances()
        except Exception as error:  # what nobody has seen before must not end the agent
            self.pmda.err(f"cluster {cluster}: {type(error).__name__}: {error}")

    def _replace_instances(self) -> None:
        for serial in sorted(self.served.changed):
            named = self.served.instances[serial]
            ids = [self._pcp.pmdaInstid(number, name) for name, number in named.items()]
            self.pmda.replace_indom(self.pmda.indom(serial), ids)
        self.served.changed.clear()

    def _value(self, cluster: int, item: int, instance: int) -> list[int]:
        """A value, or 0 in its second place: there is none."""
        value = self.served.values.get(item, {}).get(instance)
        return [0, 0] if value is None else [value, 1]


def _u64() -> int:
    import cpmapi

    return int(cpmapi.PM_TYPE_U64)


# What PCP needs to start the agent ------------------------------------------------------------------------------------
# Its script, the namespace, the line for pmcd.conf, and scripts to install it.

SYSTEM_PYTHON: Final = "/usr/bin/python3"
LARGEST_DOMAIN: Final = 510
SCRIPT: Final = f"pmda{ROOT}.python"
_EXECUTABLE: Final = 0o755

_AGENT: Final = '''#!{python}
"""Lustre for Performance Co-Pilot. Started by pmcd; written by `iolens export pcp --install`."""

import sys

sys.path.append({package!r})  # after the system's own: only iolens is taken from here
from iolens.agent.pcp.__main__ import main  # noqa: E402

main({words!r} + sys.argv[1:])
'''
_INSTALL: Final = """#!/bin/sh
# {action} the agent: `./{name}` as root, beside a running pmcd.
. $PCP_DIR/etc/pcp.env
. $PCP_SHARE_DIR/lib/pmdaproc.sh
iam={root}
python_opt=true
daemon_opt=false
PCP_PYTHON_PROG={python}
export PCP_PYTHON_PROG
pmdaSetup
pmda{name}
exit
"""


def package_directory() -> Path:
    """Where `iolens` is imported from."""
    return Path(__file__).resolve().parents[3]


def namespace(domain: int) -> str:
    """The namespace file: the agent itself knows what is below its name."""
    return f"root {{\n\t{ROOT}\t{domain}:*:*\n}}\n"


def pmcd_line(directory: Path, domain: int, python: str = SYSTEM_PYTHON) -> str:
    """The line for pmcd.conf."""
    return f"{ROOT}\t{domain}\tpipe\tbinary\t{python} {directory / SCRIPT}\n"


def write_installation(directory: Path, settings: PcpSettings, python: str = SYSTEM_PYTHON) -> list[Path]:
    """Write the files that PCP needs into a directory; those written."""
    directory = directory.absolute()
    if not 1 <= settings.domain <= LARGEST_DOMAIN:
        raise UsageError(f"--domain {settings.domain}: PCP knows 1 to {LARGEST_DOMAIN}")
    if any(word.split() != [word] for word in (str(directory), python)):
        raise UsageError(f"--install {directory}: pmcd.conf has no way to write a path with blanks")
    words = agent_words(settings)
    files = {
        SCRIPT: _AGENT.format(python=python, package=str(package_directory()), words=words),
        "root": namespace(settings.domain),
        "pmcd.conf": pmcd_line(directory, settings.domain, python),
        "Install": _INSTALL.format(action="Installs", name="Install", root=ROOT, python=python),
        "Remove": _INSTALL.format(action="Removes", name="Remove", root=ROOT, python=python),
    }
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (directory / name).write_text(text)
            if name in (SCRIPT, "Install", "Remove"):
                (directory / name).chmod(_EXECUTABLE)
    except OSError as error:
        raise UsageError(f"--install {directory}: {error.strerror}") from None
    return [directory / name for name in files]


def agent_words(settings: PcpSettings) -> list[str]:
    """The settings as options of the agent."""
    words = {
        "--root": str(settings.root.absolute()),
        "--domain": str(settings.domain),
        "--jobs": str(settings.jobs),
        "--interval": f"{settings.interval_s:g}",
        "--jobs-interval": f"{settings.jobs_interval_s:g}",
        "--filesystem": settings.filesystem,
        "--log": settings.log,
    }
    return [word for option, value in words.items() if value is not None for word in (option, value)]
