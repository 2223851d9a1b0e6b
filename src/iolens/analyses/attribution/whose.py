"""Whose job an id of job_stats is: by the scheduler's records, by Darshan logs, and by what the id itself says (B1).

Nothing is guessed. By job, program and node, an id without a record, or whose records contradict each other, stands for
itself; one that is cut short or lacks a field is shown as it came. By user and project, an id is neither: ids that name
none are together, by the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, get_args

from iolens.analyses.attribution.job_ids import JobIdParts, shown_job_id
from iolens.analyses.job_totals.results import KnownJob

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
