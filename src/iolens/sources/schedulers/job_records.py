"""What all records of jobs have in common: local times and their zone, elapsed times, rows of `jobs`, settings.

A job that never started did nothing to a file system: it has no row, and how many there were is said.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import product
from typing import Any, Final

from iolens.errors import InputError
from iolens.records import Item, Note, Problem
from iolens.schema import LARGEST
from iolens.sources.reading.batches import ROWS_PER_BATCH, RowBatch
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import WrongNumber, count_or_none, shown
from iolens.sources.reading.saved_text import stated_zone
from iolens.sources.schedulers.node_lists import compact_nodes, count_nodes, expand_nodes
from iolens.units import epoch_us, parse_local_time
from iolens.visible_text import counted

TABLE: Final = "jobs"
TOGETHER_US: Final = 60_000_000  # the components of a heterogeneous job start within this time
MOST_RUNS: Final = 10_000  # of heterogeneous jobs, that wait for their other components
ABSENT: Final = frozenset({"", "unknown", "none", "n/a", "(null)", "invalid", "-"})
_ELAPSED: Final = re.compile(r"(?:([0-9]{1,7})-)?(?:([0-9]{1,9}):)?([0-9]{1,9}):([0-9]{2})(?:\.[0-9]+)?")
_SCALED: Final = re.compile(r"([0-9]{1,15})(?:\.0+)?([KMG])")
_SCALES: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def is_absent(text: str) -> bool:
    """Whether a text stands for "not known": `Unknown`, `None`, `N/A`, nothing."""
    return text.strip().lower() in ABSENT


def elapsed_s(text: str, name: str) -> int | None:
    """Seconds from `1-02:24:13`, `26:24:13`, `05:16` or `95053`; None for what is not known."""
    if is_absent(text):
        return None
    if (seconds := count_or_none(text, LARGEST)) is not None:
        return seconds
    match = _ELAPSED.fullmatch(text.strip())
    if match is None:
        raise WrongNumber(f"{name} {shown(text)} is not an elapsed time")
    days, hours, minutes, seconds_ = (int(part or 0) for part in match.groups())
    return days * 86400 + hours * 3600 + minutes * 60 + seconds_


def scaled_count(text: str, name: str) -> int | None:
    """A count, or one that Slurm wrote in powers of 1024 (`2K` is 2048); None for what is not known."""
    if is_absent(text):
        return None
    match = _SCALED.fullmatch(text.strip())
    number = int(match[1]) * _SCALES[match[2]] if match else count_or_none(text.strip())
    if number is None or number > LARGEST:
        raise WrongNumber(f"{name} {shown(text)} is not a count")
    return number


class JobClock:
    """Turns the times of a record into microseconds since 1970. The zone is asked for at the first local time."""

    def __init__(self, options: ReadOptions, place: str, time_format: str | None = None) -> None:
        self.options, self.place, self.time_format = options, place, time_format
        self._zone: tzinfo | None = None

    @property
    def zone(self) -> tzinfo:
        """The zone that was stated; InputError where none was."""
        if self._zone is None:
            self._zone = stated_zone(self.options, self.options.filesystem, self.place)
        return self._zone

    def times_us(self, text: str, name: str) -> tuple[int, ...]:
        """No time where it is not known; two where the clocks went back and gave it twice, the earlier first."""
        if is_absent(text):
            return ()
        try:
            time = self._parsed(text.strip())
        except ValueError:
            expected = f" by {self.time_format!r}" if self.time_format else ""
            raise WrongNumber(f"{name} {shown(text)} is not a time{expected}") from None
        if time.tzinfo is not None:
            return (epoch_us(time.astimezone(UTC)),)
        offsets = [self.zone.utcoffset(time.replace(fold=fold)) for fold in (0, 1)]
        if offsets[0] == offsets[1] and offsets[0] is not None:
            return (epoch_us((time - offsets[0]).replace(tzinfo=UTC)),)
        both = {time.replace(tzinfo=self.zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
        real = sorted(utc for utc in both if utc.astimezone(self.zone).replace(tzinfo=None) == time)
        if not real:
            raise WrongNumber(f"{name} {shown(text)} was skipped by the clocks of {self.zone}: another zone is meant")
        return tuple(map(epoch_us, real))

    def _parsed(self, text: str) -> datetime:
        if self.time_format is None:
            return parse_local_time(text)
        if self.time_format == "epoch":
            seconds = float(text)
            if not 0 <= seconds < LARGEST // 1_000_000:
                raise ValueError(text)
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
        return datetime.strptime(text, self.time_format)


def fitting_times(
    starts: tuple[int, ...], ends: tuple[int, ...], elapsed: float | None
) -> tuple[int | None, int | None]:
    """Start and end; where clocks gave one of them twice, those that lie as far apart as the elapsed time says."""
    if not starts or not ends:
        return (starts[0] if starts else None), (ends[0] if ends else None)
    if elapsed is None:
        return starts[0], max(ends) if max(ends) < starts[0] or len(starts) == 1 else ends[0]
    pairs = list(product(starts, ends))
    return min(pairs, key=lambda pair: (abs(pair[1] - pair[0] - elapsed * 1e6), pair))


@dataclass(slots=True)
class JobRecord:
    """One run of one job, as a scheduler recorded it. `ended` is None where only parts of the record are known."""

    job_id: str
    start_us: int | None
    end_us: int | None
    ended: bool | None
    duration_s: float | None = None
    submit_us: int | None = None
    texts: dict[str, str | None] = field(default_factory=dict)  # user, project, name, state, cluster, node_list
    nodes: int | None = None
    cores: int | None = None
    component: int | None = None  # which one of a heterogeneous job, whose id is then that of the whole; None: of none


class JobRows:
    """Rows of `jobs` gathered from records, and what is said of those that have none."""

    def __init__(self, place: str, options: ReadOptions, cluster: str | None = None) -> None:
        self.place, self.options, self.cluster = place, options, cluster
        self.batch = RowBatch()
        self.never_started = 0
        self.without_first = 0  # heterogeneous jobs of which the component with the job's own user and name is missing
        self.jobs = 0
        self.runs: OrderedDict[tuple[str | None, str, int], dict[int, JobRecord]] = OrderedDict()

    def add(self, job: JobRecord, line: int | None) -> Iterator[Item]:
        """One more record; a Problem where its times cannot be."""
        if job.start_us is None:
            self.never_started += not job.component
            return
        if job.end_us is not None and job.end_us < job.start_us:
            yield Problem(self.place, line, f"job {shown(job.job_id)} ends before it starts: left out")
            return
        if job.component is None:
            yield from self._take(job, job.start_us)
            return
        self._components(job, job.component, job.start_us)[job.component] = job
        if len(self.runs) > MOST_RUNS:
            yield from self._release()

    def _components(self, job: JobRecord, component: int, start_us: int) -> dict[int, JobRecord]:
        """Those of the same run that came before: a run of a job that was requeued has the same components again."""
        job_key = (job.texts.get("cluster"), job.job_id)
        for (*key, began_us), components in self.runs.items():
            if (*key,) == job_key and abs(began_us - start_us) <= TOGETHER_US and component not in components:
                return components
        return self.runs.setdefault((*job_key, start_us), {})

    def _release(self) -> Iterator[Item]:
        """One row for all components of the oldest run."""
        _, components = self.runs.popitem(last=False)
        self.without_first += 0 not in components
        job = _whole([components[number] for number in sorted(components)])
        assert job.start_us is not None
        yield from self._take(job, job.start_us)

    def _take(self, job: JobRecord, start_us: int) -> Iterator[Item]:
        self.jobs += 1
        self.batch.add(TABLE, self._values(job, start_us))
        if self.batch.count >= ROWS_PER_BATCH:
            yield from self.batch.flush()

    def finish(self) -> Iterator[Item]:
        """What is left, and how many jobs have no row."""
        while self.runs:
            yield from self._release()
        yield from self.batch.flush()
        if self.without_first:
            jobs = counted(self.without_first, "heterogeneous job")
            yield Note(self.place, None, f"{jobs} without the first component: what it had is not counted")
        if self.never_started:
            yield Note(self.place, None, f"{counted(self.never_started, 'job')} never started: no row")

    def _values(self, job: JobRecord, start_us: int) -> Mapping[str, object]:
        """`time` is the end; of a running job, when it was seen: as far as its elapsed time goes, else `--at`."""
        duration_s, time_us = job.duration_s, job.end_us
        if time_us is None and duration_s is not None:
            time_us = start_us + round(duration_s * 1e6)
        if time_us is None:
            at_us = epoch_us(self.options.at) if self.options.at is not None else 0
            time_us = max(start_us, at_us)
        if duration_s is None and job.end_us is not None:
            duration_s = (job.end_us - start_us) / 1e6
        texts = {name: text for name, text in job.texts.items() if text is not None and not is_absent(text)}
        node_list = texts.get("node_list")
        return {
            "time": time_us,
            "filesystem": self.options.filesystem,
            "cluster": texts.pop("cluster", None) or self.cluster,
            "job_id": job.job_id,
            "start": start_us,
            "submit": job.submit_us,
            "duration_s": None if duration_s is None else float(duration_s),
            "ended": job.ended,
            "nodes": job.nodes if job.nodes is not None or node_list is None else count_nodes(node_list),
            "cores": job.cores,
            **texts,
        }


def _whole(components: Sequence[JobRecord]) -> JobRecord:
    """A heterogeneous job: the nodes and cores of all its components; user, name and state of the first."""
    first = components[0]
    if len(components) == 1:
        return first
    starts = [job.start_us for job in components if job.start_us is not None]
    ends = [job.end_us for job in components]
    end_us = None if None in ends else max(end for end in ends if end is not None)
    ended = next((known for known in (False, None) if any(job.ended is known for job in components)), True)
    lengths = [job.duration_s for job in components if job.duration_s is not None]
    nodes, node_list = _all_nodes(components)
    return replace(
        first,
        start_us=min(starts),
        end_us=end_us,
        ended=ended,
        duration_s=max(lengths, default=None) if end_us is None else (end_us - min(starts)) / 1e6,
        submit_us=min((job.submit_us for job in components if job.submit_us is not None), default=None),
        texts={**first.texts, "node_list": node_list},
        nodes=nodes,
        cores=_sum([job.cores for job in components]),
    )


def _all_nodes(components: Sequence[JobRecord]) -> tuple[int | None, str | None]:
    """Their number, a node of several components once, and all node lists; None where one is not known."""
    lists = [text for job in components if (text := job.texts.get("node_list")) is not None and not is_absent(text)]
    counts = _sum([job.nodes for job in components])
    if len(lists) < len(components):
        return counts, None
    try:
        names = [name for text in lists for name in expand_nodes(text)]
    except ValueError:
        return counts, ",".join(lists)
    shared = len(names) - len(set(names))
    return (len(names) if counts is None else counts) - shared, compact_nodes(names) if shared else ",".join(lists)


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def checked_settings(settings: Mapping[str, Any], source: str, known: Mapping[str, type], place: str) -> None:
    """Refuse keys of `[sources.NAME]` that are not known, or hold something else than expected."""
    expected: dict[type, str] = {str: "a text in quotes", list: "a list of texts", dict: "a section"}
    for key, value in settings.items():
        if key not in known:
            raise InputError(place, f"unknown key sources.{source}.{key}", f"one of {', '.join(known)}")
        inside = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
        if not isinstance(value, known[key]) or not all(isinstance(item, str) for item in inside):
            raise InputError(place, f"sources.{source}.{key} = {value!r}", expected[known[key]])
