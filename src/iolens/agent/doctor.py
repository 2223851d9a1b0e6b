"""What can be read on this machine, as which user, and what is missing: `iolens doctor`.

A check is "ok", "missing" (something is not there or may not be read, with what to do) or "note".
"""

from __future__ import annotations

import os
import platform
import pwd
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Final, Literal

from iolens.agent.sampling.hub_client import HubAddress
from iolens.agent.sampling.spool import BAD, LATE, refuse_foreign, waiting
from iolens.agent.tried import (
    DEBUGFS,
    READABLE,
    TargetFinding,
    TriedMount,
    names_of,
    page_size_words,
    tried,
    tried_mounts,
    why_absent,
)
from iolens.config import DeviceRule
from iolens.errors import IolensError, StoreError
from iolens.records import Problem
from iolens.sources.devices.block_devices import target_name
from iolens.sources.devices.diskstats import DISKSTATS, BlockDevices
from iolens.sources.lustre.capacity import CAPACITY_LEAVES, STAT, busy_us, device_files, device_of, parse_version
from iolens.sources.lustre.clock import snapshot_of
from iolens.sources.lustre.lustre_proc import PLACES, VERSION_FILES
from iolens.sources.lustre.parameters import (
    IO_LATENCY,
    LONGEST_NAME,
    MOUNTED_DEVICE,
    NOT_TARGETS,
    TIMED_LEAVES,
    parameter_of,
)
from iolens.sources.reading.bounded_input import parameter_bytes
from iolens.sources.spool import CLOSED
from iolens.units import format_bytes
from iolens.visible_text import some_names

Status = Literal["ok", "missing", "note"]
ENGINES: Final = ("deltalake", "duckdb", "pyarrow", "pyspark")
NEEDED_ENGINES: Final = ENGINES[:3]
JOB_VARIABLES: Final = ("sys/fs/lustre/jobid_var", "proc/fs/lustre/jobid_var")
EARLIEST_S: Final = 1_577_836_800  # 2020: a clock before that was never set
CLOCK_TOLERANCE_S: Final = 5.0
LEAST_FREE_BYTES: Final = 1 << 30
SHOWN_TARGETS: Final = 40
SHOWN_LACKING: Final = 3
SHOWN_LEFT_OUT: Final = 8
EXITS: Final = {1: "Exit code 1: there is nothing to sample here.", 3: "Exit code 3: what is called missing above."}
# What each kind of target should offer; capacity stands for all kbytes* and files*.
EXPECTED: Final = {
    "ost": ("stats", "brw_stats", "job_stats", "capacity"),
    "mdt": ("md_stats", "job_stats", "capacity"),
}


@dataclass(frozen=True, slots=True)
class DiagnosisLine:
    """One thing that was looked at."""

    subject: str
    status: Status
    detail: str


@dataclass(frozen=True, slots=True)
class DeviceFinding:
    """One block device: what it would be stored as, or why the rule leaves it out."""

    device: str
    target: str
    left_out: str | None


@dataclass(slots=True)
class Diagnosis:
    """All of it."""

    user: str
    root: str
    lustre_version: str | None
    targets: list[TargetFinding]
    mounts: list[TargetFinding]
    devices: list[DeviceFinding]
    findings: list[DiagnosisLine]

    @property
    def exit_code(self) -> int:
        """0 all good, 3 something is missing, 1 there is nothing to sample."""
        has_devices = any(device.left_out is None for device in self.devices)
        offered = [*self.targets, *self.mounts]
        if not has_devices and not any(target.readable for target in offered):
            return 1
        complete = all(len(target.readable) == len(target.files) for target in offered)
        return 0 if complete and all(finding.status != "missing" for finding in self.findings) else 3

    def lines(self) -> Iterator[str]:
        """What a person reads; what several targets lack for the same reason is said once."""
        yield f"{self.root} as {self.user}, Lustre {self.lustre_version or 'not found'}"
        offered = [*self.targets, *self.mounts]
        for target in offered[:SHOWN_TARGETS]:
            yield f"  {target.target} ({target.kind}): {', '.join(target.readable) or 'nothing'} readable"
        if len(offered) > SHOWN_TARGETS:
            yield f"  … and {len(offered) - SHOWN_TARGETS} more targets"
        for (name, state), targets in _lacking(offered).items():
            yield f"  missing {name} of {some_names(targets, SHOWN_LACKING)}: {state}"
        kept = [device.target for device in self.devices if device.left_out is None]
        if kept:
            yield f"  block devices: {', '.join(kept[:SHOWN_TARGETS])}"
        left_out = [f"{device.device} ({device.left_out})" for device in self.devices if device.left_out is not None]
        if left_out:
            yield f"  left out by rule: {some_names(left_out, SHOWN_LEFT_OUT)}"
        for finding in self.findings:
            yield f"  {finding.status:8}{finding.subject}: {finding.detail}"
        if self.exit_code:
            yield EXITS[self.exit_code]


def _lacking(offered: Sequence[TargetFinding]) -> dict[tuple[str, str], list[str]]:
    """Targets by what they lack and why; a target's own name in a path is a star."""
    result: dict[tuple[str, str], list[str]] = {}
    for target in offered:
        for name, state in target.files.items():
            if name not in target.readable:
                result.setdefault((name, state.replace(target.target, "*")), []).append(target.target)
    return result


def diagnose(
    root: Path,
    store: str | HubAddress | None,
    spool: Path,
    rule: DeviceRule | None = None,
    with_devices: bool | None = None,
) -> Diagnosis:
    """Look at everything `iolens collect` would need; without a store or hub, only what it needs to spool."""
    version = _version(root)
    targets, clients = _TriedTree(root).targets(), tried_mounts(root)
    mounts = [mount.finding(root, name) for name, mount in clients.items()]
    devices, reasons = _devices(root, rule or DeviceRule())
    has_other = bool(mounts) or any(device.left_out is None for device in devices)
    findings = [
        *_server(root, version, targets, has_other),
        *_client(root, clients),
        *_sampled_devices(devices, reasons, bool(targets or mounts), with_devices),
        *_debugfs(root, [*targets, *mounts]),
        *_later_statistics(root, targets),
        *_jobs(root, targets, mounts),
        _clock(root),
        *_spool(spool),
        DiagnosisLine("python", "ok", platform.python_version()),
        *_destination(store),
    ]
    return Diagnosis(_user(), str(root), version, targets, mounts, devices, findings)


def _server(root: Path, version: str | None, targets: list[TargetFinding], has_other: bool) -> Iterator[DiagnosisLine]:
    """A machine without targets is nothing wrong where it has mounts or devices to sample."""
    is_missing: Status = "note" if not targets and has_other else "missing"
    if not targets:
        yield DiagnosisLine("targets", is_missing, f"no OST or MDT below {root}: not a Lustre server")
    if version:
        yield DiagnosisLine("lustre", "ok", f"version {version}")
    else:
        yield DiagnosisLine("lustre", is_missing, f"no version below {root}: {', '.join(VERSION_FILES)}")


def _client(root: Path, clients: Mapping[str, TriedMount]) -> Iterator[DiagnosisLine]:
    """What is mounted, and what RPCs are counted in."""
    yield from (DiagnosisLine("client", "ok", mount.summary()) for mount in clients.values())
    if clients:
        yield DiagnosisLine("client", "note", page_size_words(root))


def _devices(root: Path, rule: DeviceRule) -> tuple[list[DeviceFinding], list[str]]:
    """Every block device of the kernel's list, and what went wrong reading it."""
    if not (root / DISKSTATS).exists():
        return [], []
    devices = BlockDevices(root, rule)
    problems = [str(item) for item in devices.read(0) if isinstance(item, Problem)]
    kept, left_out = devices.choice
    findings = [DeviceFinding(name, target_name(devices.host, shown), None) for name, shown in kept.items()]
    findings += [DeviceFinding(name, target_name(devices.host, name), why) for name, why in left_out.items()]
    return findings, problems


def _sampled_devices(
    devices: list[DeviceFinding], problems: list[str], has_targets: bool, wanted: bool | None
) -> Iterator[DiagnosisLine]:
    yield from (DiagnosisLine("devices", "missing", problem) for problem in problems)
    kept = sum(device.left_out is None for device in devices)
    if wanted if wanted is not None else not has_targets:
        if kept:
            yield DiagnosisLine("devices", "ok", f"{kept} of {len(devices)} block devices are sampled")
        elif devices:
            advice = "see [devices] of the configuration"
            yield DiagnosisLine(
                "devices", "missing", f"all {len(devices)} block devices are left out by rule: {advice}"
            )
    elif kept:
        yield DiagnosisLine(
            "devices", "note", f"{kept} block devices are sampled with --devices or [agent] devices = true"
        )


@dataclass(slots=True)
class _TriedTree:
    """The targets' files below a root, each tried."""

    root: Path
    by_target: dict[str, TargetFinding] = field(default_factory=dict)
    states: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def targets(self) -> list[TargetFinding]:
        for place in PLACES:
            for target in names_of(self.root / place.directory):
                if target not in NOT_TARGETS and (self.root / place.directory / target).is_dir():
                    self._look(place.family, target, self.root / place.directory / target)
        for finding in self.by_target.values():
            finding.files = {name: self._state(finding.target, name) for name in EXPECTED[finding.kind]}
        return sorted(self.by_target.values(), key=lambda target_finding: target_finding.target)

    def _look(self, family: str, target: str, directory: Path) -> None:
        name = target.removesuffix("-osd")
        kind = "mdt" if "MDT" in name or family in ("mdt", "mds") else "ost"
        self.by_target.setdefault(name, TargetFinding(name, kind))
        for leaf in names_of(directory):
            if (parameter := parameter_of(family, target, leaf)) is not None:
                aspect = "capacity" if leaf in CAPACITY_LEAVES else parameter.leaf
                aspect = "md_stats" if (family, leaf) == ("mds", "stats") else aspect
                self.states.setdefault((name, aspect), []).append(tried(directory / leaf))

    def _state(self, target: str, aspect: str) -> str:
        states = self.states.get((target, aspect), [])
        if READABLE in states:
            return READABLE
        return states[0] if states else why_absent(self.root, aspect)


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _version(root: Path) -> str | None:
    for name in VERSION_FILES:
        try:
            version = parse_version((root / name).read_bytes())
        except OSError:
            continue
        if version:
            return version
    return None


def _debugfs(root: Path, targets: list[TargetFinding]) -> Iterator[DiagnosisLine]:
    """From 2.15 on some statistics are only there."""
    hidden = root / DEBUGFS
    if not hidden.is_dir() or not targets:
        return
    if os.access(hidden, os.R_OK | os.X_OK):
        yield DiagnosisLine("debugfs", "ok", f"{hidden} is open to this user")
    else:
        advice = f"run as root, or with CAP_DAC_READ_SEARCH, or remount it: mount -o remount,mode=755 {hidden}"
        yield DiagnosisLine(
            "debugfs", "missing", f"{hidden} is closed to {_user()}, and statistics may be there: {advice}"
        )


def _later_statistics(root: Path, targets: list[TargetFinding]) -> Iterator[DiagnosisLine]:
    """What only some servers have: latency by size, and the block devices behind the targets."""
    if not targets:
        return
    latency = _of_targets(root, IO_LATENCY)
    readable = sum(tried(path) == READABLE for path in latency)
    if latency:
        status: Status = "ok" if readable == len(latency) else "missing"
        yield DiagnosisLine("latency", status, f"{IO_LATENCY} of {readable} of {len(latency)} targets readable")
    else:
        yield DiagnosisLine("latency", "note", f"no {IO_LATENCY}: Lustre before 2.17 does not time I/Os by size")
    yield _target_devices(root, {target.target for target in targets})


def _of_targets(root: Path, name: str) -> list[Path]:
    """Files of that name of all targets, as far as this user may look for them."""
    folders = (root / place.directory for place in PLACES)
    paths = [folder / target / name for folder in folders for target in names_of(folder)]
    return [path for path in paths if os.path.exists(path)]  # noqa: PTH110 (the method raises in a closed directory)


def _target_devices(root: Path, targets: set[str]) -> DiagnosisLine:
    """How many targets tell their block device, and of how many the kernel tells how long it was busy."""
    named: dict[str, str] = {}
    busy = 0
    for path in _of_targets(root, MOUNTED_DEVICE):
        target = path.parent.name.removesuffix("-osd")
        try:
            mounted = path.read_bytes()[:LONGEST_NAME]
        except OSError:
            continue
        if target not in targets or target in named or device_of(mounted) is None:
            continue
        named[target] = mounted.decode("utf-8", "replace").strip()
        places = device_files(root, mounted, (STAT,), parameter_bytes)
        busy += any(busy_us(place.read_bytes()) is not None for place in places.values() if tried(place) == READABLE)
    if not named:
        return DiagnosisLine(
            "target devices", "note", f"no {MOUNTED_DEVICE} names a block device: busy time is unknown"
        )
    names = some_names([f"{target} on {device}" for target, device in sorted(named.items())], SHOWN_LACKING)
    return DiagnosisLine(
        "target devices", "ok" if busy == len(named) else "note", f"busy time of {busy} of {len(named)}: {names}"
    )


def _jobs(root: Path, targets: list[TargetFinding], mounts: list[TargetFinding]) -> Iterator[DiagnosisLine]:
    if not targets and not mounts:
        return
    for name in JOB_VARIABLES:
        try:
            variable = (root / name).read_text("utf-8", "replace").strip()
        except OSError:
            continue
        if variable == "disable":
            where = "on this server" if targets else "for this node"
            yield DiagnosisLine("job_stats", "missing", f"off {where}: lctl set_param -P jobid_var=SLURM_JOB_ID")
        else:
            yield DiagnosisLine("job_stats", "ok", f"jobid_var is {variable}")
        return
    if targets:
        yield DiagnosisLine("job_stats", "note", "no jobid_var here: clients decide whether jobs are named")


def _clock(root: Path) -> DiagnosisLine:
    now = time.time()
    if now < EARLIEST_S:
        return DiagnosisLine("clock", "missing", f"it shows {time.strftime('%Y-%m-%d', time.gmtime(now))}: never set?")
    if root != Path("/"):
        return DiagnosisLine("clock", "ok", "plausible; not compared with Lustre's, for this root may be a copy")
    stamp = next(_stamps(root), None)
    if stamp is None:
        return DiagnosisLine("clock", "ok", "plausible; Lustre shows none to compare with")
    apart = abs(now - stamp / 1e6)
    if apart > CLOCK_TOLERANCE_S:
        return DiagnosisLine("clock", "missing", f"{apart:.0f} s away from Lustre's snapshot_time")
    return DiagnosisLine("clock", "ok", "agrees with Lustre's snapshot_time")


def _stamps(root: Path) -> Iterator[int]:
    for place in PLACES:
        for target in names_of(root / place.directory):
            for leaf in TIMED_LEAVES & set(names_of(root / place.directory / target)):
                try:
                    stamp = snapshot_of((root / place.directory / target / leaf).read_bytes())
                except OSError:
                    continue
                if stamp is not None:
                    yield stamp


def _spool(directory: Path) -> Iterator[DiagnosisLine]:
    reason = _why_not_writable(directory)
    if reason:
        yield DiagnosisLine("spool", "missing", reason)
        return
    if directory.is_dir():
        try:
            refuse_foreign(directory)
        except IolensError as error:
            yield DiagnosisLine("spool", "missing", str(error))
            return
    free = shutil.disk_usage(_existing(directory)).free
    status: Status = "ok" if free >= LEAST_FREE_BYTES else "missing"
    yield DiagnosisLine("spool", status, f"{directory} is writable, {format_bytes(free)} free")
    if not directory.is_dir():
        return
    yield DiagnosisLine("spool", "note", f"{len(waiting(directory))} segments wait for the store")
    for folder, what in ((BAD, "could not be understood"), (LATE, "came too late: iolens ingest spool --rebuild")):
        aside = sum(name.endswith(CLOSED) for name in names_of(directory / folder))
        if aside:
            yield DiagnosisLine("spool", "missing", f"{aside} segments in {directory / folder} {what}")


def _existing(path: Path) -> Path:
    """The path, or the nearest directory above it that is there."""
    return next(parent for parent in (path.absolute(), *path.absolute().parents) if parent.exists())


def _why_not_writable(directory: Path) -> str | None:
    place = _existing(directory)
    if not place.is_dir():
        return f"{place} is not a directory"
    try:
        with tempfile.TemporaryFile(dir=place) as stream:
            stream.write(b"iolens")
    except OSError as error:
        return f"{place}: {error.strerror}"
    return None


def _destination(store: str | HubAddress | None) -> Iterator[DiagnosisLine]:
    """Where samples go: a hub needs no engines here."""
    if isinstance(store, HubAddress):
        yield _hub(store)
    elif store:
        yield _store(store)
        yield from _engines()


def _hub(hub: HubAddress) -> DiagnosisLine:
    """Whether the hub answers, its certificate is trusted and the token is right."""
    from iolens.agent.sampling.hub_client import HubClient

    try:
        with HubClient(hub) as client:
            client.check()
    except IolensError as error:
        return DiagnosisLine("hub", "missing", str(error))
    return DiagnosisLine("hub", "ok", f"{hub.url} takes samples of this agent")


def _store(url: str) -> DiagnosisLine:
    from iolens.store.tables import Tables

    tables = Tables(url)
    if tables.is_local and (reason := _why_not_writable(Path(url))):
        return DiagnosisLine("store", "missing", reason)
    try:
        there = tables.load("batches") is not None
        if not tables.is_local:
            _probe(url)
    except (StoreError, OSError) as error:
        return DiagnosisLine("store", "missing", str(error))
    return DiagnosisLine("store", "ok", f"{url} is {'there' if there else 'empty yet'} and writable")


def _probe(url: str) -> None:
    """Write one small object and remove it."""
    from iolens.store.object_storage import arrow_filesystem

    files = arrow_filesystem(url)
    with files.open_output_stream("iolens-doctor") as stream:
        stream.write(b"iolens")
    files.delete_file("iolens-doctor")


def _engines() -> Iterator[DiagnosisLine]:
    for name in ENGINES:
        try:
            yield DiagnosisLine(name, "ok", metadata.version(name))
        except metadata.PackageNotFoundError:
            status: Status = "missing" if name in NEEDED_ENGINES else "note"
            yield DiagnosisLine(name, status, "not installed")
