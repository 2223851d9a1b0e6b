"""Whose job an id of job_stats is: what Lustre's ids say, and what the scheduler's records know."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, get_args

from iolens.analyses.job_totals import KnownJob
from iolens.config import jobid_name
from iolens.visible_text import BLANK_ID as BLANK_ID
from iolens.visible_text import shown_job_id as shown_job_id

# What a job id of Lustre's job_stats says -----------------------------------------------------------------------------
# The scheduler's id, executable, user, group and host (B1).
#
# A client makes the id by `jobid_var` and `jobid_name` (Lustre manual, "Lustre Jobstats"; `obdclass/jobid.c`): the
# value of an environment variable such as SLURM_JOB_ID, `%e.%u` with `procname_uid`, or the pattern in `jobid_name`. A
# pattern without `%j` is used for processes that lack the variable, so ids of both forms occur side by side. An id has
# at most 31 bytes; a longer one is cut. What an id does not say for certain is None.
#
# A scheduler's id is given as the table `jobs` has it: `1234` (Slurm's JobIDRaw), `1234_5` and `1234+0` (JobID, stored
# where there is no JobIDRaw), `1234[5]` (PBS); without a step (`1234.0`) and without the server of PBS (`1234.server`).
# Which JobIDRaw the task `1234_5` has only the scheduler knows: the two are never taken for one.

LONGEST_ID: Final = 31  # bytes: LUSTRE_JOBID_SIZE less the zero at the end
LONGEST_NAME: Final = 15  # bytes of an executable's name that the kernel keeps
_ESCAPE: Final = re.compile(r"\\x[0-9a-f]{2}")
_PLAIN_JOB: Final = re.compile(r"[0-9]+(?:_[0-9]+|\+[0-9]+|\[[0-9]*\])?")
_BEGUN_JOB: Final = re.compile(r"[0-9]*(?:_[0-9]*|\+[0-9]*|\[[0-9]*\]?)?")
_STEP: Final = re.compile(r"([0-9]+(?:_[0-9]+|\+[0-9]+)?)\.(?:[0-9]+|batch|extern|interactive)")
_PBS: Final = re.compile(r"([0-9]+(?:\[[0-9]*\])?)\.[A-Za-z][A-Za-z0-9_.-]*")
_NAME_AND_UID: Final = re.compile(r"(?P<name>.+)\.(?P<uid>[0-9]{1,10})", re.DOTALL)
_LARGEST_ID: Final = 0xFFFF_FFFF  # of a user, group or process
_ANYTHING: Final = re.compile(".*", re.DOTALL)
_NUMBER: Final = re.compile("[0-9]{0,10}")
_FORMS: Final = {
    "e": re.compile(f".{{0,{4 * LONGEST_NAME}}}", re.DOTALL),  # a byte may be shown as an escape
    "g": _NUMBER, "h": re.compile(r"[\w.-]*"), "H": re.compile(r"[\w-]*"), "j": _ANYTHING, "p": _NUMBER, "u": _NUMBER,
}  # fmt: skip
_LONGEST: Final = {"e": LONGEST_NAME, "g": 10, "p": 10, "u": 10}  # bytes


class JobIdParts(NamedTuple):
    """What an id says; None where it does not, or not for certain. Not whole: blank, may be cut, or lacks a field."""

    job_id: str | None = None
    executable: str | None = None
    uid: int | None = None
    gid: int | None = None
    host: str | None = None
    is_whole: bool = True


UNKNOWN: Final = JobIdParts()
NOT_WHOLE: Final = JobIdParts(is_whole=False)


def size_of_id(text: str) -> int:
    r"""Bytes of an id as Lustre has it; `\xNN` stands for one that is no text."""
    if text.isascii() and "\\" not in text:
        return len(text)
    return len(_ESCAPE.sub("?", text).encode("utf-8", "surrogatepass"))


def guessed_parts(text: str) -> JobIdParts:
    """Of a file system whose `jobid_name` nobody stated: a scheduler's id, or name and user id, if it looks so."""
    if not text.strip():
        return NOT_WHOLE
    may_be_cut = size_of_id(text) == LONGEST_ID
    if (job_id := _scheduled(text)) is not None:
        # Of `1234.server` only the server can be cut.
        return JobIdParts(job_id if not may_be_cut or job_id != text else None, is_whole=not may_be_cut)
    match = _NAME_AND_UID.fullmatch(text)
    if match is None or size_of_id(match["name"]) > LONGEST_NAME:
        return NOT_WHOLE if may_be_cut else UNKNOWN
    return JobIdParts(executable=match["name"], uid=_number(match["uid"]))


def _scheduled(text: str) -> str | None:
    """The id of a job in the form of the table `jobs`; None where no scheduler makes such a text."""
    if _PLAIN_JOB.fullmatch(text):
        return text
    match = _STEP.fullmatch(text) or _PBS.fullmatch(text)
    return match[1] if match else None


def _number(text: str | None) -> int | None:
    number = int(text) if text else None
    return None if number is None or number > _LARGEST_ID else number


class _Field(NamedTuple):
    """A code of the pattern, or a text that stands as it is."""

    code: str
    literal: str = ""

    def reach(self, text: str, begin: int) -> int:
        """The farthest place where this field can end; -1 where it cannot be here."""
        if self.literal:
            return begin + len(self.literal) if text.startswith(self.literal, begin) else -1
        match = _FORMS[self.code].match(text, begin)
        return match.end() if match else -1

    def may_begin(self, text: str) -> bool:
        """Whether a cut could have left this of the field."""
        if self.literal:
            return self.literal.startswith(text)
        return self.reach(text, 0) == len(text) and self.has_space_for(text)

    def has_space_for(self, text: str) -> bool:
        """Whether it can be so long."""
        return not self.code or size_of_id(text) <= _LONGEST.get(self.code, LONGEST_ID)

    def is_complete(self, text: str) -> bool:
        """Whether no cut can have shortened it to this."""
        return text == self.literal if self.literal else size_of_id(text) == _LONGEST.get(self.code)


class _Division(NamedTuple):
    """One way to divide an id into fields: values by code, without one that a cut shortened."""

    values: dict[str, str]
    is_cut: bool = False
    rest_of_job: str = ""  # what a cut left of `%j`

    @property
    def doubt(self) -> tuple[int, int]:
        """Whether `%j` is a plain number, has more to it, is empty or is anything else; how many fields are empty."""
        if self.is_cut:
            return (0 if _BEGUN_JOB.fullmatch(self.rest_of_job + self.values.get("j", "")) else 3), 0
        job, empty = self.values.get("j", "0"), sum(not value for value in self.values.values())
        kind = 0 if _PLAIN_JOB.fullmatch(job) else 2 if not job else 1 if _scheduled(job) is not None else 3
        return kind, empty


class JobIdForm:
    """A file system's `jobid_name`, such as `%j:%u:%H`; ValueError where it has a code that Lustre does not know."""

    def __init__(self, pattern: str) -> None:
        self.pattern = jobid_name(pattern)
        self._fields = _fields(self.pattern)
        self._has_job = any(field.code == "j" for field in self._fields)

    def parts(self, text: str) -> JobIdParts:
        """What an id of this form says. Where the form has no `%j`, an id that does not fit may be a scheduler's.

        Of several ways to divide an id those count that have a plain number for `%j`, if there are any.
        """
        if not text.strip():
            return NOT_WHOLE
        likely = self._likely(text)
        if not likely:
            return guessed_parts(text) if not self._has_job and _scheduled(text) is not None else NOT_WHOLE
        first, *others = likely
        agreed = {
            code: value
            for code, value in first.values.items()
            if value and all(other.values.get(code) == value for other in others)
        }
        is_whole = not any(reading.is_cut or not all(reading.values.values()) for reading in likely)
        return _parts(agreed, is_whole)

    def divided(self, text: str) -> list[tuple[str, str]] | None:
        """The fields of an id in order, each as its code ("": it stands as it is) and text; None: not for certain."""
        likely = self._likely(text)
        if len(likely) != 1 or likely[0].is_cut:
            return None
        return [(field.code, field.literal or likely[0].values[field.code]) for field in self._fields]

    def _likely(self, text: str) -> Sequence[_Division]:
        """The readings with the least doubt."""
        readings = list(_readings(self._fields, text, size_of_id(text) == LONGEST_ID))
        if len(readings) < 2:
            return readings
        least = min(reading.doubt for reading in readings)
        return [reading for reading in readings if reading.doubt == least]


def _fields(pattern: str) -> tuple[_Field, ...]:
    """Lustre leaves out the blanks of a pattern, and `%%`."""
    pieces = re.split(r"%(.)", re.sub(r"\s|%%", "", pattern))  # texts and codes by turns
    fields = (_Field(piece) if place % 2 else _Field("", piece) for place, piece in enumerate(pieces))
    return tuple(field for field in fields if field.code or field.literal)


def _readings(fields: Sequence[_Field], text: str, may_be_cut: bool) -> Iterator[_Division]:
    """All ways to divide an id; of one that may be cut also those that lack fields at the end."""

    def rest(place: int, begin: int, values: dict[str, str]) -> Iterator[_Division]:
        if place == len(fields):
            if begin == len(text):
                yield _Division(values)
            return
        field = fields[place]
        if may_be_cut and field.may_begin(text[begin:]) and not field.is_complete(text[begin:]):
            yield _Division(values, True, text[begin:] if field.code == "j" else "")
        for end in _ends(fields, place, text, begin):
            value = text[begin:end]
            is_last_and_cut = may_be_cut and end == len(text) and not field.is_complete(value)
            if not is_last_and_cut and values.get(field.code, value) == value and field.has_space_for(value):
                yield from rest(place + 1, end, {**values, field.code: value} if field.code else values)

    return rest(0, 0, {})


def _ends(fields: Sequence[_Field], place: int, text: str, begin: int) -> Iterator[int]:
    """Where a field can end so that what the pattern has behind it can follow."""
    reach = fields[place].reach(text, begin)
    following = fields[place + 1] if place + 1 < len(fields) else None
    if fields[place].literal or (following is None and len(text) == reach):
        yield from (reach,) if reach >= 0 else ()
    elif following is not None:
        is_followed = following.literal or ""
        for end in range(begin, reach + 1):
            if text.startswith(is_followed, end) or end == len(text):
                yield end


def _parts(values: dict[str, str], is_whole: bool) -> JobIdParts:
    job = values.get("j")
    return JobIdParts(
        None if job is None else _scheduled(job) or job,
        values.get("e"),
        _number(values.get("u")),
        _number(values.get("g")),
        values.get("h", values.get("H")),
        is_whole,
    )


# Whose job an id of job_stats is --------------------------------------------------------------------------------------
# By the scheduler's records, by Darshan logs, and by what the id itself says (B1).
#
# Nothing is guessed. By job, program and node, an id without a record, or whose records contradict each other, stands
# for itself; one that is cut short or lacks a field is shown as it came. By user and project, an id is neither: ids
# that name none are together, by the reason.

Kind = Literal["job", "user", "project", "executable", "node"]
KINDS: Final = get_args(Kind)
OF_PEOPLE: Final = ("user", "project")
WITHOUT_RECORD: Final = "jobs without a record"
CONTRADICTORY: Final = "jobs with contradictory records"


class LoggedRun(NamedTuple):
    """What a Darshan log says of its job."""

    job_id: str
    user: str | None
    uid: int | None
    executable: str | None


class Who(NamedTuple):
    """A name to show; `is_known` is False where it is the id itself, or of all ids that name no user or project."""

    name: str
    is_known: bool


class DetailsOfId(NamedTuple):
    """What is known of the job behind an id."""

    user: str | None
    project: str | None
    executable: str | None


@dataclass(slots=True)
class Whose:
    """Records and logs by job id; `parts_of` takes an id apart."""

    parts_of: Callable[[str], JobIdParts]
    records: dict[str, KnownJob] = field(default_factory=dict)
    runs: dict[str, LoggedRun] = field(default_factory=dict)
    users: dict[int, str] = field(default_factory=dict)  # by numeric user id
    contradictory: set[str] = field(default_factory=set)  # ids of several jobs

    def add_records(self, jobs: Iterable[KnownJob]) -> None:
        """Of one id several times the last counts, unless they are of different users or projects."""
        for job in jobs:
            known = self.records.get(job.job_id)
            if known is not None and (known.user, known.project) != (job.user, job.project):
                self.contradictory.add(job.job_id)
            self.records[job.job_id] = job

    def add_runs(self, runs: Iterable[LoggedRun]) -> None:
        """Of one job several times the first counts: a job's first program names it."""
        for run in runs:
            self.runs.setdefault(run.job_id, run)
            if run.uid is not None and run.user is not None:
                self.users.setdefault(run.uid, run.user)

    def record_of(self, parts: JobIdParts) -> KnownJob | None:
        """The scheduler's record, if there is one and only one."""
        if not parts.is_whole or parts.job_id is None or parts.job_id in self.contradictory:
            return None
        return self.records.get(parts.job_id)

    def details(self, text: str) -> DetailsOfId:
        """User, project and executable as far as known."""
        parts = self.parts_of(text)
        if not parts.is_whole:
            return DetailsOfId(None, None, None)
        record, run = self.record_of(parts), self.runs.get(parts.job_id) if parts.job_id else None
        user = (record.user if record else None) or (run.user if run else None) or self._user(parts)
        executable = parts.executable or (run.executable if run else None) or (record.name if record else None)
        return DetailsOfId(user, record.project if record else None, executable)

    def who(self, text: str, by: Kind) -> Who:
        """The name of whoever is behind an id."""
        name = self._job(text) if by == "job" else self._node(text) if by == "node" else getattr(self.details(text), by)
        if name is not None:
            return Who(name, True)
        return Who(self._nobody(text, by) if by in OF_PEOPLE else shown_job_id(text), False)

    def _nobody(self, text: str, by: Kind) -> str:
        """Why an id names no user or project."""
        parts = self.parts_of(text)
        if parts.job_id in self.contradictory:
            return CONTRADICTORY
        return WITHOUT_RECORD if self.record_of(parts) is None else f"jobs whose record names no {by}"

    def _user(self, parts: JobIdParts) -> str | None:
        return None if parts.uid is None else self.users.get(parts.uid, f"uid {parts.uid}")

    def _job(self, text: str) -> str | None:
        """The scheduler's number, where it has one."""
        parts = self.parts_of(text)
        return parts.job_id if self.record_of(parts) is not None else None

    def _node(self, text: str) -> str | None:
        """By the id, or by the record of a job with one node; job_stats do not tell the nodes of a job apart."""
        parts = self.parts_of(text)
        record = self.record_of(parts)
        if parts.is_whole and parts.host is not None:
            return parts.host
        return record.hosts[0] if record is not None and record.hosts is not None and len(record.hosts) == 1 else None
