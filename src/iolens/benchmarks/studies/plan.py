"""A study: its plan as a small TOML file, what its kinds have in common, and the folder that holds its points."""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
import tomllib
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol, get_type_hints

from iolens.errors import InputError, IolensError, UsageError
from iolens.nearest_names import not_among
from iolens.sources.benchmarks.study_runs import RUNS, RUNS_FORMAT, StudyJournal, journal_of
from iolens.units import GIB, KIB, MIB, parse_bytes

# The plan of a study --------------------------------------------------------------------------------------------------
# What is measured where, and within which limits; a small TOML file that people read and edit.
#
# Sizes are written as `4KiB` or `1GiB`; the parameters of a kind of study are the fields of its dataclass. One that is
# left out has its default, so that one whose default is a number says `"none"` where it has none.

FORMAT: Final = "iolens study, version 1"
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
PLACE: Final = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,4096}")  # a name or a path: what a line of UTF-8 can say
MOST_REPEATS: Final = 10_000
LONGEST_PLAN: Final = MIB
LONGEST_SHOWN: Final = 80  # characters of a value in a message
NONE: Final = "none"
_UNITS: Final = ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))


@dataclass(frozen=True, slots=True)
class StudyPlace:
    """A directory that is measured, and what it is called; `filesystem` where that is known."""

    name: str
    path: Path
    filesystem: str | None = None


@dataclass(frozen=True, slots=True)
class StudyLimits:
    """What a study may use: bytes it writes in all, seconds of one call, and how full it may make a file system."""

    max_bytes: int = 100 * GIB
    max_seconds: float = 3600.0
    max_fullness_pct: float = 90.0


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """One study; `parameters` is a dataclass of its kind."""

    name: str
    kind: str
    places: tuple[StudyPlace, ...]
    parameters: Any
    repeats: int = 5
    limits: StudyLimits = field(default_factory=StudyLimits)


def new_study_name(kind: str) -> str:
    """A name that no other study has."""
    return f"{kind}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{uuid.uuid4().hex[:6]}"


def exact_size(size: int) -> str:
    """`1MiB`; in the largest unit that needs no fraction."""
    for factor, unit in _UNITS:
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def plan_text(plan: StudyPlan) -> str:
    """The plan as TOML."""
    limits = plan.limits
    lines = [
        f"format = {json.dumps(FORMAT)}",
        f"name = {json.dumps(plan.name)}",
        f"kind = {json.dumps(plan.kind)}",
        f"repeats = {plan.repeats}",
        "",
        "[limits]",
        f"max_bytes = {json.dumps(exact_size(limits.max_bytes))}  # written in all",
        f"max_seconds = {limits.max_seconds!r}  # of one call; the rest is done when the study is resumed",
        f"max_fullness_pct = {limits.max_fullness_pct!r}  # of the file system, with what the study writes",
    ]
    for place in plan.places:
        lines += ["", "[[places]]", f"name = {_text(place.name)}", f"path = {_text(str(place.path))}"]
        lines += [f"filesystem = {_text(place.filesystem)}"] if place.filesystem is not None else []
    lines += ["", "[parameters]"]
    for parameter in fields(plan.parameters):
        value = getattr(plan.parameters, parameter.name)
        if value is not None:
            lines.append(f"{parameter.name} = {_value(parameter.name, value)}")
        elif parameter.default is not None:
            lines.append(f"{parameter.name} = {json.dumps(NONE)}")
    return "\n".join(lines) + "\n"


def _value(name: str, value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_value(name, member) for member in value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and name.endswith("_bytes"):
        return json.dumps(exact_size(value))
    return _text(value) if isinstance(value, str) else repr(value)


def _text(value: str) -> str:
    """A TOML string: JSON's escapes are TOML's, except that TOML also wants DEL escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def read_plan(path: Path, parameters_of: Any) -> StudyPlan:
    """The plan of a file, checked; `parameters_of` gives the dataclass of a kind, or None."""
    try:
        with path.open("rb") as stream:
            octets = stream.read(LONGEST_PLAN + 1)
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}", "the plan of a study") from error
    if len(octets) > LONGEST_PLAN:
        raise InputError(str(path), f"is longer than {exact_size(LONGEST_PLAN)}", "the plan of a study")
    try:
        document = tomllib.loads(octets.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # of TOML, of UTF-8, and of numbers with thousands of digits
        raise InputError(str(path), f"is not TOML: {error}", "the plan of a study") from error
    return _PlanReader(str(path)).plan(document, parameters_of)


@dataclass(frozen=True, slots=True)
class _PlanReader:
    """Values of one document, refused with the file's name where they are not what they must be."""

    place: str

    def plan(self, document: dict[str, Any], parameters_of: Any) -> StudyPlan:
        if document.get("format") != FORMAT:
            raise InputError(self.place, f"format = {_shown(document.get('format'))}", json.dumps(FORMAT))
        kind = document.get("kind")
        parameters = parameters_of(kind) if isinstance(kind, str) else None
        if not isinstance(kind, str) or parameters is None:
            raise InputError(self.place, f"kind = {_shown(kind)}", "a kind of study, such as sequential")
        name = document.get("name")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise InputError(self.place, f"name = {_shown(name)}", "letters, digits, '.', '_' and '-'")
        self._known(document, {"format", "name", "kind", "repeats", "limits", "places", "parameters"}, "")
        return StudyPlan(
            name,
            kind,
            self._places(document.get("places")),
            self._fields(parameters, document.get("parameters", {}), "parameters"),
            self._repeats(document.get("repeats", 5)),
            self._limits(document.get("limits", {})),
        )

    def _repeats(self, value: Any) -> int:
        if type(value) is not int or not 1 <= value <= MOST_REPEATS:
            raise InputError(self.place, f"repeats = {_shown(value)}", f"a whole number from 1 to {MOST_REPEATS}")
        return value

    def _limits(self, table: Any) -> StudyLimits:
        limits: StudyLimits = self._fields(StudyLimits, table, "limits")
        if limits.max_fullness_pct > 100:
            raise InputError(self.place, f"max_fullness_pct = {_shown(limits.max_fullness_pct)}", "at most 100")
        return limits

    def _places(self, tables: Any) -> tuple[StudyPlace, ...]:
        if not isinstance(tables, list) or not tables:
            raise InputError(self.place, "no [[places]]", "at least one, with name and path")
        places = []
        for table in tables:
            known = table if isinstance(table, dict) else {}
            name, path, filesystem = (known.get(key) for key in ("name", "path", "filesystem"))
            if not all(isinstance(text, str) and PLACE.fullmatch(text) for text in (name, path)):
                raise InputError(self.place, f"a place {_shown(table)}", "name and path, without control characters")
            if filesystem is not None and not isinstance(filesystem, str):
                raise InputError(self.place, f"filesystem = {_shown(filesystem)}", "a name in quotes")
            self._known(known, {"name", "path", "filesystem"}, "[[places]] ")
            places.append(StudyPlace(str(name), Path(str(path)), filesystem))
        if len({place.name for place in places}) < len(places):
            raise InputError(self.place, "two places of one name", "a name for each")
        return tuple(places)

    def _fields(self, kind: type, table: Any, section: str) -> Any:
        """An object of a dataclass, from a table whose keys are its fields."""
        if not isinstance(table, dict):
            raise InputError(self.place, f"{section} = {_shown(table)}", f"a table [{section}]")
        hints, known = get_type_hints(kind), {item.name: item for item in fields(kind)}
        self._known(table, set(known), f"[{section}] ")
        values = {
            name: None if value == NONE and _may_be_none(known[name]) else self._typed(name, value, hints[name])
            for name, value in table.items()
        }
        for name, item in known.items():
            if name not in values and item.default is MISSING and item.default_factory is MISSING:
                raise InputError(self.place, f"[{section}] has no {name}", f"a value for {name}")
        return kind(**values)

    def _known(self, table: dict[str, Any], names: set[str], where: str) -> None:
        unknown = sorted(set(table) - names)
        if unknown:
            raise InputError(self.place, f"{where}{unknown[0]} is not known", ", ".join(sorted(names)))

    def _typed(self, name: str, value: Any, hint: Any) -> Any:
        """A value of the type that a field has; sizes may be written with their unit."""
        wanted = str(hint)
        if wanted.startswith("tuple"):
            if not isinstance(value, list) or not value:
                raise InputError(self.place, f"{name} = {_shown(value)}", "a list with at least one member")
            members = hint.__args__[0]  # of `tuple[int, ...]`, or the tuple of `tuple[int, ...] | None`
            typed = members.__args__[0] if hasattr(members, "__args__") else members
            return tuple(self._typed(name, member, typed) for member in value)
        if name.endswith("_bytes") and isinstance(value, str):
            try:
                value = parse_bytes(value)
            except ValueError as error:
                raise InputError(self.place, f"{name}: {error}", "a size such as 1MiB") from None
        for kind, words in ((bool, "true or false"), (int, "a whole number"), (float, "a number"), (str, "text")):
            if hint is kind or wanted.startswith(f"{kind.__name__} |"):
                is_number = kind in (int, float) and type(value) in {int, kind}
                if not (0 <= value < 2**63 if is_number else type(value) is kind):
                    raise InputError(self.place, f"{name} = {_shown(value)}", words)
                return kind(value)
        raise AssertionError(f"a parameter of type {wanted}")


def _may_be_none(parameter: Field[Any]) -> bool:
    """Whether leaving it out means something else than none."""
    return "None" in str(parameter.type) and parameter.default is not None


def _shown(value: object) -> str:
    """A value of the file in a message, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:
        text = "a number of thousands of digits"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


# What every kind of study has in common -------------------------------------------------------------------------------
# Its points, and how one of them is measured.

Values = dict[str, object]
KINDS: Final = ("sequential", "ior", "latency", "cache", "stripe", "metadata", "imitate")
ASSUMED_BYTES_PER_S: Final = 500e6  # what a run takes before anything was measured
ASSUMED_OPS_PER_S: Final = 2000.0


@dataclass(frozen=True, slots=True)
class StudyPoint:
    """One measurement: it is done or not, never in part.

    `key` names it within its study, the same whenever the plan is read. `bytes_at_once` is the space its files take.
    """

    key: str
    place: StudyPlace
    iteration: int
    values: Mapping[str, Any]  # what the kind needs to run it
    bytes_written: int
    bytes_read: int
    files: int
    bytes_at_once: int
    operations: int = 0  # that cost time however few bytes they move

    @property
    def expected_s(self) -> float:
        """Seconds at an assumed speed."""
        return (self.bytes_written + self.bytes_read) / ASSUMED_BYTES_PER_S + self.operations / ASSUMED_OPS_PER_S


@dataclass(slots=True)
class PointSite:
    """Where a point is measured: a directory of the study's own, in which files are called `data…`.

    `deadline` (of `time.monotonic`) is when the point must have ended.
    """

    directory: Path
    deadline: float = float("inf")
    said: list[str] = field(default_factory=list)

    @property
    def left_s(self) -> float:
        """Seconds that are left."""
        return self.deadline - time.monotonic()

    def check_time(self) -> None:
        """Break off where the time is up."""
        if self.left_s <= 0:
            raise TimeUp

    def note(self, words: str) -> None:
        """Something the user should know, said once."""
        if words not in self.said:
            self.said.append(words)


class TimeUp(Exception):
    """`max_seconds` are over."""


class StudyKind(Protocol):
    """A kind of study. `parameters` is a frozen dataclass of what can be varied; sizes end in `_bytes`."""

    name: str
    parameters: type

    def check(self, plan: StudyPlan) -> list[str]:
        """Refuse what cannot be done, before anything is written; what the user should know."""

    def points(self, plan: StudyPlan) -> list[StudyPoint]:
        """Every measurement, in the order in which they are made."""

    def run(self, plan: StudyPlan, point: StudyPoint, site: PointSite) -> Iterable[Values]:
        """Measure one point: rows of `benchmark_runs`, with at least `direction`; files made are removed."""


def study_kind(name: str) -> StudyKind:
    """The kind of that name: `KIND` of the module `iolens.benchmarks.studies.NAME_study`."""
    if name not in KINDS:
        raise UsageError(f"{name!r} is no kind of study{not_among(name, KINDS)}")
    kind: StudyKind = import_module(f"iolens.benchmarks.studies.{name}_study").KIND
    return kind


def study_points(plan: StudyPlan) -> list[StudyPoint]:
    """Every measurement of a plan; one that a plan names twice is made once."""
    return list({point.key: point for point in study_kind(plan.kind).points(plan)}.values())


def parameters_of(name: str) -> type | None:
    """The dataclass of a kind's parameters; None where there is no such kind."""
    return study_kind(name).parameters if name in KINDS else None


# The folder of a study ------------------------------------------------------------------------------------------------
# `plan.toml`, and `runs.jsonl` with a line for every point that was measured.
#
# A line is on disk before the next point begins. One that a kill cut short is as if the point had not been measured.
# Who has the two files can read the results, or go on, on any machine. Directories a study makes are named before they
# are made, so that what a kill leaves behind is known.

PLAN: Final = "plan.toml"


@dataclass(frozen=True, slots=True)
class StudyFolder:
    """A folder that has a plan."""

    path: Path

    @property
    def runs_path(self) -> Path:
        """Where results are."""
        return self.path / RUNS

    def plan(self) -> StudyPlan:
        """The plan, checked."""
        return read_plan(self.path / PLAN, parameters_of)

    def journal(self) -> StudyJournal:
        """What was measured; nothing where nothing was."""
        return journal_of(self.runs_path) if self.runs_path.exists() else StudyJournal()


def new_folder(path: Path, plan: StudyPlan) -> StudyFolder:
    """Make the folder with its plan; one that is there already is refused."""
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        hint = f"go on with it by `iolens bench run {path}`, or name another --folder"
        raise UsageError(f"{path}: exists; {hint}") from None
    except OSError as error:
        raise IolensError(f"{path}: cannot be made: {error.strerror}") from error
    try:
        (path / PLAN).write_text(plan_text(plan), "utf-8")
    except OSError as error:
        raise IolensError(f"{path / PLAN}: cannot be written: {error.strerror}") from error
    return StudyFolder(path)


class JournalWriter:
    """Appends lines; each is on disk when the call returns."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def add_point(self, key: str, rows: Iterable[Values]) -> None:
        """A point is done."""
        self._add({"point": key, "rows": list(rows)})

    def add_directory(self, path: Path) -> None:
        """A directory is about to be made."""
        self._add({"directory": str(path)})

    def add_removed(self, path: Path) -> None:
        """It is gone, with all that was in it."""
        self._add({"removed": str(path)})

    def begin(self) -> None:
        """The line that every file begins with."""
        self._add({"format": RUNS_FORMAT})

    def _add(self, line: dict[str, object]) -> None:
        """A whole line or none: on a full disk the next would be written behind half of this one."""
        octets = json.dumps(line, allow_nan=False).encode() + b"\n"
        end = os.lseek(self._descriptor, 0, os.SEEK_END)
        try:
            while octets:
                octets = octets[os.write(self._descriptor, octets) :]
            os.fsync(self._descriptor)
        except BaseException:
            os.ftruncate(self._descriptor, end)
            raise


@contextmanager
def journal_writer(folder: StudyFolder) -> Iterator[tuple[StudyJournal, JournalWriter]]:
    """What was measured, and where more is added; one process at a time."""
    try:
        descriptor = os.open(folder.runs_path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise IolensError(f"{folder.runs_path}: cannot be written: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{folder.path}: another process runs this study") from None
        journal = folder.journal()
        os.ftruncate(descriptor, journal.whole_bytes)
        writer = JournalWriter(descriptor)
        if not journal.whole_bytes:
            writer.begin()
        yield journal, writer
    finally:
        os.close(descriptor)
