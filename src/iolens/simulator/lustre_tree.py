"""A living `/proc` and `/sys` of a simulated Lustre server, under any directory."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import numpy as np

from iolens.errors import UsageError
from iolens.simulator import lustre_counters as counters
from iolens.simulator.activity import Activity, Job, TickBlock
from iolens.simulator.capacity import Fullness, mdt_fullness, ost_fullness
from iolens.simulator.job_counts import JobPart, by_job, operations_by_job
from iolens.simulator.lustre_counters import (
    EXPORTS,
    LAYOUTS,
    NS,
    VERSIONS,
    JobCounts,
    MdtCounters,
    OstCounters,
    ServiceCounters,
)
from iolens.simulator.lustre_text import brw_stats_text, io_latency_text, job_stats_text, recovery_text, stats_text
from iolens.simulator.truth import Truth
from iolens.simulator.workload import SIZES, SimulatedWorkload
from iolens.units import KIB

# Files of a living tree, each replaced at once, so that a reader never sees half of one -------------------------------

SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 (names in it are made by tempfile)
TREES_BYTES: Final = 32 << 20  # more than the trees of a simulated centre take


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    """A directory in memory, as /proc is, where the machine has one: on a disk each file replaced is a file flushed."""
    is_here = os.access(SHARED_MEMORY, os.W_OK) and shutil.disk_usage(SHARED_MEMORY).free >= TREES_BYTES
    with tempfile.TemporaryDirectory(prefix="iolens-", dir=SHARED_MEMORY if is_here else None) as name:
        yield Path(name)


@dataclass(slots=True)
class ReplacedFiles:
    """What the files below a root show now; what did not change is left alone."""

    root: Path
    shown: dict[Path, str] = field(default_factory=dict)

    def replace(self, path: Path, text: str) -> None:
        """Put a new file in the place of the old one at once."""
        before = self.shown.get(path)
        if before == text:
            return
        if before is None:
            path.parent.mkdir(parents=True, exist_ok=True)
        fresh = f"{self.root}/.fresh-{os.getpid()}"
        with open(fresh, "w", encoding="ascii") as stream:  # noqa: PTH123 - many files, many times a second
            stream.write(text)
        os.replace(fresh, path)  # noqa: PTH105
        self.shown[path] = text

    def forget(self, is_gone: Callable[[Path], bool]) -> None:
        """Files that were removed: the next text is written whatever it is."""
        self.shown = {path: text for path, text in self.shown.items() if not is_gone(path)}


# A living `/proc` and `/sys` of a simulated Lustre server, under any directory ----------------------------------------
# `Tree.advance_to` lets simulated time pass and writes every file anew, each replaced at once, so that a reader never
# sees half of one. Two trees of the same workload and seed are two servers of one file system.

HOST_NAME: Final = "proc/sys/kernel/hostname"
JOB_KEPT_S: Final = 600  # job_cleanup_interval: a job that is quiet this long is forgotten
RECOVERY_S: Final = 30
UPTIME_S: Final = 3600
STEP_TICKS: Final = 720  # activity is made in pieces of this many ticks


class SimulatedClock(Protocol):
    """Simulated time, in seconds since 1970."""

    def now(self) -> float:
        """The current time."""

    def wait_until(self, second: float) -> None:
        """Return at that time."""


class RealClock:
    """Real time, sped up: it starts at `start_s` and runs `speed` times as fast."""

    def __init__(self, start_s: float, speed: float = 1.0) -> None:
        self.start_s, self.speed = start_s, speed
        self._began = time.monotonic()

    def now(self) -> float:
        """The current time."""
        return self.start_s + (time.monotonic() - self._began) * self.speed

    def wait_until(self, second: float) -> None:
        """Return at that time."""
        time.sleep(max(0.0, (second - self.now()) / self.speed))


class Tree:
    """One server. Its counters begin `uptime_s` before `start_s`, so that they look lived in; `host` is its name.

    `truth` sums up what all mounted OSTs did since the start.
    """

    def __init__(
        self,
        root: Path,
        version: str,
        workload: SimulatedWorkload,
        *,
        start_s: float,
        osts: int | None = None,
        mdts: int | None = None,
        seed: int = 0,
        targets: Sequence[str] | None = None,
        uptime_s: int = UPTIME_S,
        host: str | None = None,
    ) -> None:
        if version not in LAYOUTS:
            raise UsageError(f"no Lustre version {version!r} can be simulated; there are: {', '.join(VERSIONS)}")
        self.root, self.layout, self.workload = root, LAYOUTS[version], workload
        self.activity = Activity(workload, osts, seed)
        self.mdts = workload.mdts if mdts is None else mdts
        self.truth = Truth()
        self.start_s, self.host = start_s, host
        self.second = start_s - uptime_s
        self._tick = int(self.second // workload.tick_s)
        self._osts: dict[str, OstCounters] = {}
        self._mdts: dict[str, MdtCounters] = {}
        self._started_ns = round(self.second * NS)
        self._nodemap = np.zeros((2, len(SIZES)), np.int64)  # what its clients moved, by direction and size
        self._services = {
            name: ServiceCounters(self._started_ns) for name in ("ost/OSS/ost_io", self.layout.mdt_service)
        }
        if root.is_dir() and any(root.iterdir()):
            raise UsageError(f"{root} is not empty: a simulated server needs a directory of its own")
        self._files_shown = ReplacedFiles(root)
        for name in self.names if targets is None else targets:
            self.add(name)
        self._pass_time(start_s)
        self.truth = Truth()
        root.mkdir(parents=True, exist_ok=True)
        self._write_all()

    @property
    def names(self) -> list[str]:
        """Every target of the file system, here or on another server."""
        fs = self.workload.filesystem
        return [f"{fs}-OST{n:04x}" for n in range(self.activity.targets)] + [
            f"{fs}-MDT{n:04x}" for n in range(self.mdts)
        ]

    @property
    def mounted(self) -> list[str]:
        """Targets that are here."""
        return [*self._osts, *self._mdts]

    @property
    def osts(self) -> list[OstCounters]:
        """Counters of the OSTs that are here."""
        return [*self._osts.values()]

    def add(self, name: str) -> None:
        """Mount a target: it counts from zero from now on."""
        if name not in self.names or name in self.mounted:
            raise UsageError(f"{name!r} cannot be mounted: it is here already, or not one of {self.names[0]} …")
        self._mount(name)

    def drop(self, name: str) -> None:
        """Unmount a target: its directories vanish."""
        self._refuse_absent(name)
        self._osts.pop(name, None)
        self._mdts.pop(name, None)
        for directory in self.layout.directories():
            shutil.rmtree(self.root / directory / name, ignore_errors=True)
        locks = {self.root / self.layout.locks / path for path in counters.lock_files(name, 0)}
        for path in locks:
            path.unlink(missing_ok=True)
        self._files_shown.forget(lambda path: path.parent.name == name or path in locks)

    def reset(self, names: Sequence[str] | None = None) -> None:
        """Set the counters of some targets (all) back to zero, as a remount does."""
        for name in self.mounted if names is None else names:
            self._refuse_absent(name)
            self._mount(name)

    def advance_to(self, second: float) -> None:
        """Let time pass up to then and write the state at it. Counters move in whole ticks."""
        if second < self.second:
            raise UsageError(f"time does not run backwards: it is {self.second:.3f}, not yet {second:.3f}")
        self._pass_time(second)
        self._write_all()

    def _mount(self, name: str) -> None:
        number, start_ns = int(name.rpartition("T")[2], 16), round(self.second * NS)
        if "-OST" in name:
            self._osts[name] = OstCounters(number, start_ns)
        else:
            self._mdts[name] = MdtCounters(number, start_ns)

    def _refuse_absent(self, name: str) -> None:
        if name not in self.mounted:
            raise UsageError(f"{name!r} is not mounted here; mounted are: {', '.join(self.mounted) or 'none'}")

    def _pass_time(self, second: float) -> None:
        last = int(second // self.workload.tick_s)
        while self._tick < last:
            hour_end = (self._tick // STEP_TICKS + 1) * STEP_TICKS
            ticks = min(last, hour_end) - self._tick
            self._pass_osts(ticks)
            self._pass_mdts(ticks)
            self._tick += ticks
        self.second = second
        self._forget_jobs()

    def _pass_osts(self, ticks: int) -> None:
        here = np.array([ost.number for ost in self._osts.values()], np.int64)
        if not here.size:
            return
        block = self.activity.block(self._tick, ticks)
        mine = TickBlock(block.first_tick, block.counts[:, :, :, here], block.fsu_pct[:, here])
        self.truth.add(mine)
        counters.count_ios(list(self._osts.values()), mine, self.activity.seconds)
        if self.layout.dialect.latency_by_size:
            counters.time_ios(list(self._osts.values()), mine, self.activity.seconds, self.activity.seed)
        moved = mine.counts.sum(axis=(2, 3))
        self._nodemap += moved
        for number, request in enumerate(("ost_read", "ost_write")):
            busy_us = round(float(moved[number] @ self.activity.seconds[number]) * 1e6)
            self._services["ost/OSS/ost_io"].add(request, int(moved[number].sum()), busy_us)
        parts = list(by_job(self.workload, block))
        for part in parts:
            self.truth.jobs.add_ios(part.job, part.counts[..., here].sum(axis=(2, 3)), self.activity.seconds)
        if "job_stats" in self.layout.ost:
            self._to_jobs(list(self._osts.values()), parts, ticks)

    def _pass_mdts(self, ticks: int) -> None:
        mdts = list(self._mdts.values())
        if not mdts:
            return
        done = self.activity.metadata_of(self._tick, ticks, self.mdts).sum(axis=1)
        for mdt in mdts:
            mdt.counts += done[:, mdt.number]
            requests = int(done[:, mdt.number].sum())
            self._services[self.layout.mdt_service].add("mds_reint", requests, 40 * requests)
        parts = list(operations_by_job(self.activity, self._tick, ticks, self.mdts))
        for part in parts:
            self.truth.jobs.add_metadata(part.job, int(part.counts[..., [mdt.number for mdt in mdts]].sum()))
        if "job_stats" in self.layout.mdt:
            self._to_jobs(mdts, parts, ticks)

    def _to_jobs(self, targets: Sequence[OstCounters | MdtCounters], parts: Sequence[JobPart], ticks: int) -> None:
        """Give each job its part of what the targets did, tick by tick."""
        did = [part.counts.sum(axis=tuple(range(part.counts.ndim - 2))) for part in parts]
        for tick in range(self._tick, self._tick + ticks):
            running = [
                (part, done[tick - part.first_tick])
                for part, done in zip(parts, did, strict=True)
                if part.first_tick <= tick < part.end_tick
            ]
            for target in targets:
                for part, done in running:
                    if done[target.number]:
                        self._count(target, part.job, part.counts[..., tick - part.first_tick, target.number], tick)

    def _count(self, target: OstCounters | MdtCounters, job: Job, counts: counters.Array, tick: int) -> None:
        """What a job did in a tick shows at its end. One that was quiet for long was forgotten, and begins anew."""
        start_ns, end_ns = tick * self.workload.tick_s * NS, (tick + 1) * self.workload.tick_s * NS
        known = target.jobs.get(job.job_id)
        if known is None or start_ns - known.last_ns > JOB_KEPT_S * NS:
            target.jobs.pop(job.job_id, None)  # so that it is printed last
            known = target.jobs[job.job_id] = JobCounts(end_ns, end_ns, np.zeros_like(target.counts))
        known.counts += counts
        known.last_ns = end_ns

    def _forget_jobs(self) -> None:
        oldest = round((self.second - JOB_KEPT_S) * NS)
        targets: list[OstCounters | MdtCounters] = [*self._osts.values(), *self._mdts.values()]
        for target in targets:
            target.jobs = {job_id: job for job_id, job in target.jobs.items() if job.last_ns >= oldest}

    def _write_all(self) -> None:
        now_ns = round(self.second * NS)
        for path, text in self._files(now_ns):
            self._files_shown.replace(path, text)

    def _files(self, now_ns: int) -> Iterator[tuple[Path, str]]:
        layout, dialect = self.layout, self.layout.dialect
        yield self.root / layout.version_file, layout.version_text
        if self.host is not None:
            yield self.root / HOST_NAME, f"{self.host}\n"
        seconds = self.activity.seconds
        for name, ost in self._osts.items():
            texts = {
                "stats": stats_text(dialect, now_ns, ost.start_ns, counters.ost_stats(ost, dialect, now_ns, seconds)),
                "brw_stats": brw_stats_text(dialect, now_ns, ost.start_ns, counters.histograms(ost, dialect)),
                "job_stats": job_stats_text(dialect, counters.ost_jobs(ost, dialect, seconds)),
                **self._state(name, ost.start_ns),
            }
            if dialect.latency_by_size:
                rows = counters.latency_rows(ost)
                texts["io_latency_stats"] = io_latency_text(dialect, now_ns, ost.start_ns, rows)
            full = ost_fullness(self.workload, ost.number, self.second - self.start_s)
            yield from self._placed(layout.ost, name, texts, full)
        for name, mdt in self._mdts.items():
            texts = {
                "stats": stats_text(dialect, now_ns, mdt.start_ns, counters.mdt_stats(mdt, dialect, now_ns)),
                "job_stats": job_stats_text(dialect, counters.mdt_jobs(mdt, dialect)),
                **self._state(name, mdt.start_ns),
            }
            full = mdt_fullness(mdt.number, self.second - self.start_s)
            yield from self._placed(layout.mdt, name, texts, full, layout.mdt_stats)
        for folder, service in self._services.items():
            if service.requests:
                text = stats_text(dialect, now_ns, service.start_ns, service.stats(dialect))
                yield self.root / layout.services / folder / "stats", text
        if layout.nodemaps:  # there is one tenant: all clients
            moved = counters.byte_counters(self._nodemap, with_squares=False)
            text = stats_text(dialect, now_ns, self._started_ns, moved)
            yield self.root / layout.nodemaps / counters.NODEMAP / "dt_stats", text
        for name in self.mounted:
            for path, text in counters.lock_files(name, self.second).items():
                yield self.root / layout.locks / path, text

    def _state(self, name: str, start_ns: int) -> dict[str, str]:
        recovery = recovery_text(self.layout.dialect, start_ns // NS, RECOVERY_S, EXPORTS, self.second)
        return {"recovery_status": recovery, "num_exports": f"{EXPORTS}\n", "uuid": f"{name}_UUID\n"}

    def _placed(
        self, places: Mapping[str, str], name: str, texts: Mapping[str, str], full: Fullness, stats: str = "stats"
    ) -> Iterator[tuple[Path, str]]:
        for kind, text in texts.items():
            if kind in places:
                yield self.root / places[kind] / name / (stats if kind == "stats" else kind), text
        directory = self.root / places["capacity"] / name
        numbers = {
            "kbytestotal": full.total_bytes // KIB,
            "kbytesfree": full.free_bytes // KIB,
            "filestotal": full.total_inodes,
            "filesfree": full.free_inodes,
        }
        if self.layout.has_available:
            numbers["kbytesavail"] = full.available_bytes // KIB
        for leaf, number in numbers.items():
            yield directory / leaf, f"{number}\n"
