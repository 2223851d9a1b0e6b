"""One TOML file (`--config`, `$IOLENS_CONFIG`, `./iolens.toml`, `/etc/iolens.toml`) with documented keys.

Secrets never live here: credentials for object storage come from the environment only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from iolens.config_path import config_path
from iolens.errors import InputError
from iolens.messages import detail
from iolens.reading_rules import DeviceRule as DeviceRule
from iolens.reading_rules import ProjectRule as ProjectRule
from iolens.units import parse_capacity, parse_duration, parse_local_time, parse_rate

DEFAULT_STORE: Final = "./iolens-store"
EARLIER_STATE: Final = "./iolens-state"  # where every server kept its state up to 0.1

# What a key may hold, in the words of the message that refuses anything else.
TEXT: Final = "a text in quotes"
NUMBER: Final = "a number, zero or more"
POSITIVE: Final = "a number above zero"
RATE: Final = 'a rate with its unit, such as "35GB/s"'
TEXTS: Final = "a list of texts"
SECTION: Final = "a section"
SECTIONS: Final = "sections in double brackets"
TIME: Final = "a time, such as 2026-01-15T08:00:00"
TRUTH: Final = "true or false"
JOBID_CODES: Final = "eghHjpu%"
_JOBID_CODE: Final = re.compile("%.?", re.DOTALL)
_LARGEST: Final = 1e300
_TOML_LINE: Final = re.compile(r"\(at line (\d+),")

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class MaintenanceConfig:
    """A time in which a file system was not in use, in UTC."""

    start: datetime
    end: datetime
    name: str


@dataclass(frozen=True, slots=True)
class FileSystemConfig:
    """What a centre knows of one file system."""

    peak_bytes_per_s: float | None = None
    timezone: str | None = None
    calibration: str | None = None
    sources: tuple[str, ...] = ()
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # target class → patterns of target names
    servers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # server → patterns of target names
    maintenance: tuple[MaintenanceConfig, ...] = ()
    ceiling_fsu_pct: float | None = None  # FSU of its disks when they are full
    target_ceiling_bytes_per_s: float | None = None  # what one target can move at most; more is refused
    target_ceiling_ops_per_s: float | None = None  # and operations per second
    longest_interval_s: float | None = None  # between two samples that make an interval
    mounts: tuple[str, ...] = ()  # where compute nodes mount it, such as /scratch: tells whose files a run used
    jobid_name: str | None = None  # the pattern of its clients' `jobid_name`, such as %e.%u: what ids of job_stats say


@dataclass(frozen=True, slots=True)
class CalibrationConfig:
    """Coefficients written down by hand, in seconds and seconds per byte."""

    write_latency_s: float
    write_s_per_byte: float
    read_latency_s: float
    read_s_per_byte: float


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Where the definitions leave a choice."""

    plateau_minimum_s: float = 600.0
    plateau_spread: float = 0.25
    plateau_median_pct: float = 30.0
    saturated_share: float = 0.9


@dataclass(frozen=True, slots=True)
class RunsConfig:
    """What a centre knows of application runs."""

    ceiling_mib_per_s_per_node: float | None = None  # what a node can move at most: runs above are listed apart


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """What `iolens collect` does unless an option says otherwise; None: the option's default."""

    interval_s: float | None = None
    slow_interval_s: float | None = None
    device_interval_s: float | None = None
    ship_every_s: float | None = None
    spool: str | None = None
    spool_limit_bytes: int | None = None
    root: str | None = None
    filesystem: str | None = None
    devices: bool | None = None
    hub: str | None = None
    hub_token_file: str | None = None
    hub_ca: str | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """The whole file; every part has a default."""

    path: Path | None = None
    store: str | None = None
    state: str | None = None
    engine: str = "duckdb"
    filesystems: Mapping[str, FileSystemConfig] = field(default_factory=dict)
    calibrations: Mapping[str, CalibrationConfig] = field(default_factory=dict)
    thresholds: Thresholds = field(default_factory=Thresholds)
    agent: AgentConfig = field(default_factory=AgentConfig)
    devices: DeviceRule = field(default_factory=DeviceRule)
    projects: ProjectRule = field(default_factory=ProjectRule)
    runs: RunsConfig = field(default_factory=RunsConfig)
    sources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by source; each checks its own keys
    findings: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # thresholds by rule
    serve: Mapping[str, Any] = field(default_factory=dict)  # `web` checks its keys
    hub: Mapping[str, Any] = field(default_factory=dict)  # `hub` checks its keys
    alerts: Mapping[str, Any] = field(default_factory=dict)  # `alerts` checks its keys

    def filesystem(self, name: str) -> FileSystemConfig:
        """What is configured for a file system, or defaults."""
        return self.filesystems.get(name, FileSystemConfig())

    def store_url(self, given: str | None = None) -> str:
        """`--store`, else `$IOLENS_STORE`, else the file's, else `./iolens-store`."""
        return given or os.environ.get("IOLENS_STORE") or self.store or DEFAULT_STORE

    def state_path(self, given: str | Path | None = None, store: str | None = None) -> Path:
        """Where `iolens serve` and `iolens alerts` keep tokens, alerts and what agents sent; found as the store is.

        Else it lies beside the store, so that two servers never share one; that of an object store in this directory.
        """
        return Path(given or os.environ.get("IOLENS_STATE") or self.state or _state_of(self.store_url(store)))


def _state_of(url: str) -> Path:
    scheme, is_url, rest = url.partition("://")
    place = Path(rest if scheme == "file" else rest.rstrip("/").rpartition("/")[2] if is_url else url)
    return place.with_name(f"{place.name or 'iolens'}-state")


def load_config(given: str | Path | None = None) -> Config:
    """The first configuration file found; defaults when there is none."""
    path = config_path(given)
    detail(f"configuration: {path or 'none, defaults'}")
    return _read(path) if path else Config()


def _read(path: Path) -> Config:
    top = checked_section(path, "", toml_document(path, "a configuration file"), {
        "store": TEXT, "state": TEXT, "engine": TEXT, "filesystems": SECTION, "calibrations": SECTION,
        "thresholds": SECTION, "agent": SECTION, "devices": SECTION, "projects": SECTION, "runs": SECTION,
        "sources": SECTION, "findings": SECTION, "serve": SECTION, "hub": SECTION, "alerts": SECTION,
    })  # fmt: skip
    return Config(
        path=path,
        store=top.get("store"),
        state=top.get("state"),
        engine=top.get("engine", "duckdb"),
        filesystems={name: _filesystem(path, name, part) for name, part in top.get("filesystems", {}).items()},
        calibrations={name: _calibration(path, name, part) for name, part in top.get("calibrations", {}).items()},
        thresholds=_thresholds(path, top.get("thresholds", {})),
        agent=_agent(path, top.get("agent", {})),
        devices=device_rule(str(path), "devices", top.get("devices", {})),
        projects=_projects(path, top.get("projects", {})),
        runs=RunsConfig(**checked_section(path, "runs", top.get("runs", {}), {"ceiling_mib_per_s_per_node": POSITIVE})),
        sources=_sections(path, "sources", top.get("sources", {})),
        findings=_findings(path, top.get("findings", {})),
        serve=top.get("serve", {}),
        hub=top.get("hub", {}),
        alerts=top.get("alerts", {}),
    )


def toml_document(path: Path, expected: str) -> dict[str, Any]:
    """The whole file, or a refusal that names the line; `expected`: what kind of file."""
    import tomllib  # late: new in Python 3.11, and the agent for nodes runs on older ones

    try:
        return tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise InputError(str(path), error.strerror or "cannot be read", expected) from error
    except UnicodeDecodeError as error:
        raise InputError(str(path), f"byte {error.start} is not UTF-8", "valid TOML") from error
    except tomllib.TOMLDecodeError as error:
        line = _TOML_LINE.search(str(error))
        raise InputError(str(path), str(error), "valid TOML", int(line[1]) if line else None) from error


def _filesystem(path: Path, name: str, part: Any) -> FileSystemConfig:
    where = f"filesystems.{name}"
    values = checked_section(path, where, part, {
        "peak": RATE, "timezone": TEXT, "calibration": TEXT, "sources": TEXTS, "mounts": TEXTS, "classes": SECTION,
        "servers": SECTION, "maintenance": SECTIONS, "ceiling_fsu_pct": POSITIVE, "target_ceiling": TEXT,
        "target_ops_ceiling": POSITIVE, "longest_interval": TEXT, "jobid_name": TEXT,
    })  # fmt: skip
    peak, zone = values.get("peak"), values.get("timezone")
    full, ceiling, pattern = values.get("ceiling_fsu_pct"), values.get("target_ceiling"), values.get("jobid_name")
    longest = values.get("longest_interval")
    return FileSystemConfig(
        peak_bytes_per_s=None if peak is None else parsed_value(path, f"{where}.peak", str(peak), parse_rate),
        timezone=None if zone is None else parsed_value(path, f"{where}.timezone", zone, _zone),
        calibration=values.get("calibration"),
        sources=tuple(values.get("sources", ())),
        mounts=tuple(values.get("mounts", ())),
        classes=_patterns(path, f"{where}.classes", values.get("classes", {})),
        servers=_patterns(path, f"{where}.servers", values.get("servers", {})),
        maintenance=tuple(_maintenance(path, where, value, zone) for value in values.get("maintenance", ())),
        ceiling_fsu_pct=None if full is None else float(full),
        target_ceiling_bytes_per_s=None if ceiling is None else _ceiling(path, f"{where}.target_ceiling", ceiling),
        target_ceiling_ops_per_s=values.get("target_ops_ceiling"),
        longest_interval_s=None if longest is None else _positive(path, f"{where}.longest_interval", longest),
        jobid_name=None if pattern is None else parsed_value(path, f"{where}.jobid_name", pattern, jobid_name),
    )


def _patterns(path: Path, where: str, part: Any) -> dict[str, tuple[str, ...]]:
    """Patterns of target names, by what they belong to."""
    sections = checked_section(path, where, part, dict.fromkeys(part, TEXTS))
    return {name: tuple(patterns) for name, patterns in sections.items()}


def jobid_name(pattern: str) -> str:
    """A pattern of Lustre's `jobid_name`, if all its codes are known; ValueError otherwise.

    `procname_uid`, a value of `jobid_var`, stands for `%e.%u`.
    """
    if pattern == "procname_uid":
        return "%e.%u"
    codes = _JOBID_CODE.findall(pattern)
    if wrong := next((code for code in codes if code[1:] not in JOBID_CODES or code == "%"), None):
        known = ", ".join(f"%{code}" for code in JOBID_CODES)
        raise ValueError(f"{wrong} of {pattern!r} is no code of Lustre's jobid_name: write {known}")
    if not any(code != "%%" for code in codes):
        raise ValueError(f"{pattern!r} has no code, so that all ids would be the same: write %j or %e.%u")
    return pattern


def _ceiling(path: Path, where: str, text: str) -> float:
    rate = parsed_value(path, where, text, parse_rate)
    if rate < 1:
        raise InputError(str(path), f"{where} = {text!r} would refuse everything", "a rate above zero, such as 100GB/s")
    return rate


def _maintenance(path: Path, where: str, part: Any, zone: str | None) -> MaintenanceConfig:
    where = f"{where}.maintenance"
    values = checked_section(path, where, part, {"from": TIME, "to": TIME, "name": TEXT})
    missing = [key for key in ("from", "to") if key not in values]
    if missing:
        raise InputError(str(path), f"[[{where}]] lacks {' and '.join(missing)}", "from and to")
    start, end = (_time(path, f"{where}.{key}", values[key], zone) for key in ("from", "to"))
    if not start < end:
        raise InputError(str(path), f"{where}: to = {values['to']} is not after from = {values['from']}")
    return MaintenanceConfig(start, end, values.get("name", "maintenance"))


def _time(path: Path, where: str, value: Any, zone: str | None) -> datetime:
    """In UTC; a time without a zone is the file system's own."""
    if isinstance(value, str):
        value = parsed_value(path, where, value, parse_local_time)
    time = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    if time.tzinfo is None:
        from zoneinfo import ZoneInfo  # the sampler imports this module and needs no zone

        time = time.replace(tzinfo=ZoneInfo(zone) if zone else UTC)
    return time.astimezone(UTC)


def _calibration(path: Path, name: str, part: Any) -> CalibrationConfig:
    where = f"calibrations.{name}"
    names = [item.name for item in fields(CalibrationConfig)]
    values = checked_section(path, where, part, dict.fromkeys(names, POSITIVE))
    missing = [name for name in names if name not in values]
    if missing:
        raise InputError(str(path), f"[{where}] lacks {', '.join(missing)}", "all four coefficients")
    return CalibrationConfig(**{name: float(values[name]) for name in names})


def _thresholds(path: Path, part: Any) -> Thresholds:
    shares = ("plateau_spread", "plateau_median_pct", "saturated_share")
    known = {"plateau_minimum": TEXT, **dict.fromkeys(shares, NUMBER)}
    values = checked_section(path, "thresholds", part, known)
    defaults = Thresholds()
    minimum = values.get("plateau_minimum")
    return Thresholds(
        defaults.plateau_minimum_s
        if minimum is None
        else parsed_value(path, "thresholds.plateau_minimum", minimum, parse_duration),
        *(float(values.get(name, getattr(defaults, name))) for name in shares),
    )


def _sections(path: Path, where: str, part: Any) -> dict[str, Mapping[str, Any]]:
    return checked_section(path, where, part, dict.fromkeys(part, SECTION))


def _findings(path: Path, part: Any) -> dict[str, Mapping[str, float]]:
    """Thresholds by rule; whether there is such a rule is checked where rules are known."""
    sections = _sections(path, "findings", part)
    return {
        code: checked_section(path, f"findings.{code}", values, dict.fromkeys(values, NUMBER))
        for code, values in sections.items()
    }


def _agent(path: Path, part: Any) -> AgentConfig:
    durations = ("interval", "slow_interval", "device_interval", "ship_every")
    hub = ("hub", "hub_token_file", "hub_ca")
    known = {**dict.fromkeys((*durations, "spool", "spool_limit", "root", "filesystem", *hub), TEXT), "devices": TRUTH}
    values = checked_section(path, "agent", part, known)
    limit = values.get("spool_limit")
    return AgentConfig(
        **{f"{name}_s": _positive(path, f"agent.{name}", values[name]) for name in durations if name in values},
        spool=values.get("spool"),
        spool_limit_bytes=None if limit is None else parsed_value(path, "agent.spool_limit", limit, parse_capacity),
        root=values.get("root"),
        filesystem=values.get("filesystem"),
        devices=values.get("devices"),
        hub=values.get("hub"),
        hub_token_file=values.get("hub_token_file"),
        hub_ca=values.get("hub_ca"),
    )


def _projects(path: Path, part: Any) -> ProjectRule:
    values = checked_section(path, "projects", part, {"directories": TEXTS, "ids": SECTION})
    ids = values.get("ids", {})
    checked_section(path, "projects.ids", ids, dict.fromkeys(ids, TEXT))
    if wrong := next((item for item in ids if not (item.isascii() and item.isdigit())), None):
        raise InputError(str(path), f"projects.ids.{wrong} is no project id", "a number")
    rules = tuple(project_directory(str(path), value) for value in values.get("directories", ()))
    return ProjectRule(rules, dict(ids))


def project_directory(place: str, rule: str) -> str:
    """A directory rule, such as `/scratch/{project}`, that names the project once; an error otherwise."""
    if (
        not rule.startswith("/")
        or rule.count("{project}") != 1
        or "//" in rule
        or set("{}") & set(rule.replace("{project}", ""))
    ):
        raise InputError(
            place, f"{rule!r} is no rule for projects", "a path such as /scratch/{project}, or /*/{project}"
        )
    return rule.rstrip("/")


def device_rule(place: str, where: str, part: Any) -> DeviceRule:
    """The rule written in a section with the keys `include`, `exclude` and `system`."""
    values = checked_section(Path(place), where, part, {"include": TEXTS, "exclude": TEXTS, "system": TRUTH})
    return DeviceRule(tuple(values.get("include", ())), tuple(values.get("exclude", ())), values.get("system"))


def _positive(path: Path, where: str, text: str) -> float:
    seconds = parsed_value(path, where, text, parse_duration)
    if seconds <= 0:
        raise InputError(str(path), f"{where} = {text!r} is no interval", "a duration above zero, such as 5s")
    return seconds


def checked_section(path: Path, where: str, part: Any, known: Mapping[str, str]) -> dict[str, Any]:
    """The keys of one section, or an error that names the key and what would have been right."""
    if not _is(SECTION, part):
        raise InputError(str(path), f"{where} = {part!r} is not a section", f"[{where}] and keys below it")
    for key, value in part.items():
        full = f"{where}.{key}".lstrip(".")
        if key not in known:
            raise InputError(str(path), f"unknown key {full}", f"one of {', '.join(known)}")
        if not _is(known[key], value):
            raise InputError(str(path), f"{full} = {value!r} has the wrong type or range", known[key])
    return dict(part)


def _is(what: str, value: Any) -> bool:
    if what == SECTION:
        return isinstance(value, dict)
    if what == TEXT:
        return isinstance(value, str)
    if what == TRUTH:
        return isinstance(value, bool)
    if what == TEXTS:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if what == SECTIONS:
        return isinstance(value, list) and all(isinstance(item, dict) for item in value)
    if what == TIME:
        return isinstance(value, str | date)  # a datetime is a date too
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if what == RATE:  # a number is asked for its unit when it is parsed
        return isinstance(value, str) or is_number
    return is_number and 0 <= value < _LARGEST and (value > 0 or what == NUMBER)  # false for nan


def _zone(name: str) -> str:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # the sampler imports this module and needs no zone

    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"no time zone is called {name!r}") from None


def parsed_value(path: Path, where: str, text: str, parse: Callable[[str], Value]) -> Value:
    """What a text means, or an error that names the file and the key."""
    try:
        return parse(text)
    except ValueError as error:
        raise InputError(str(path), f"{where}: {error}") from None
