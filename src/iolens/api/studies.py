"""Studies of `iolens bench`: made, run, resumed and stored; their results from a folder or a store."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from iolens.analyses.bench_list import StoredStudy
from iolens.analyses.bench_report import ReportedStudies
from iolens.benchmarks.imitation.file_groups import COLUMNS
from iolens.benchmarks.imitation.run_imitation import NodeSums, imitation_of_run, imitation_of_sums, ior_commands
from iolens.benchmarks.studies.imitate_study import ImitateParameters
from iolens.benchmarks.studies.plan import KINDS, PLAN, StudyFolder, StudyPlace, StudyPlan, new_folder
from iolens.benchmarks.studies.run import ExpectedWork, check_study, expected_work
from iolens.config import Config
from iolens.errors import InputError, UsageError
from iolens.nearest_names import not_among
from iolens.records import Row
from iolens.sources import ReadOptions, recognise
from iolens.sources.benchmarks.study_runs import RUNS, SOURCE, StudyJournal, study_rows
from iolens.store.store import Store
from iolens.units import from_epoch_us

if TYPE_CHECKING:
    from iolens.analyses.bench_imitate import ImitationResult
    from iolens.analyses.job_report import JobReport
    from iolens.analyses.runs.used_files import RunColumns, RunRecord
    from iolens.api.runs import RunAccess
    from iolens.models.ior_parameters import Imitation, IorParameters


Rows = list[dict[str, Any]]
RESULT_SOURCES: Final = ("fio", "io500", "ior", "mdtest")
# The analysis of each kind: module and function. It is given the rows of one study.
RESULTS: Final[Mapping[str, tuple[str, str]]] = {
    "sequential": ("bench_bandwidth", "study_bandwidth"),
    "ior": ("bench_bandwidth", "study_bandwidth"),
    "stripe": ("bench_stripe", "stripe_recommendation"),
    "cache": ("bench_cache", "cache_study"),
    "metadata": ("bench_metadata", "metadata_study"),
    "latency": ("bench_latency", "bench_latency"),
    "imitate": ("bench_bandwidth", "study_bandwidth"),
}


def study_places(given: Sequence[str], config: Config, filesystems: Collection[str] = ()) -> tuple[StudyPlace, ...]:
    """Places from `NAME=DIR` or `DIR`.

    A NAME that is one of the configured `filesystems`, or of those given, is that; else a configured mount tells it.
    """
    names = {*config.filesystems, *filesystems}
    places = []
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or "/" in name:
            name, path = text, text
        if not path or not name:
            raise UsageError(f"{text!r}: a place is DIR or NAME=DIR")
        known = _mounted(Path(path).resolve(), config)
        places.append(StudyPlace(name, Path(path).resolve(), name if name in names else known))
    return tuple(places)


def _mounted(path: Path, config: Config) -> str | None:
    """The file system of a configured mount point that the path is below."""
    filesystems = config.filesystems.items()
    return next((name for name, known in filesystems if any(map(path.is_relative_to, known.mounts))), None)


def begin_study(plan: StudyPlan, folder: Path | None) -> StudyFolder:
    """A folder for a new plan, after it was checked; named after the study where none is given."""
    check_study(plan, StudyJournal())
    return new_folder(folder or Path(plan.name), plan)


def work_of(plan: StudyPlan, journal: StudyJournal | None = None) -> ExpectedWork:
    """What is to come, after the plan was checked."""
    check_study(plan, journal or StudyJournal())
    return expected_work(plan, journal or StudyJournal())


def store_study(folder: StudyFolder, url: str) -> str:
    """Load the runs into a store; those that are there already are not loaded again. The store's address."""
    store = Store(url)
    store.ingest(SOURCE.captures([folder.path], ReadOptions()), SOURCE.name)
    return store.url


def study_folder(place: str) -> StudyFolder | None:
    """The folder that a path means: itself, or that of its plan or runs; None where it is no study's."""
    path = Path(place)
    folder = path.parent if path.name in (PLAN, RUNS) else path
    return StudyFolder(folder) if (folder / PLAN).is_file() or (folder / RUNS).is_file() else None


def folder_rows(folder: StudyFolder) -> Rows:
    """Rows of all points that a folder has on record."""
    return study_rows(folder.journal(), str(folder.runs_path))


def named_rows(place: str, store: Callable[[], Store]) -> Rows:
    """Rows of a study: a folder, or a name in the store."""
    folder = study_folder(place)
    if folder is not None:
        rows = folder_rows(folder)
        if not rows:
            raise UsageError(f"{folder.path}: nothing was measured yet; `iolens bench run {folder.path}`")
        return rows
    if Path(place).exists():
        return _rows_of_results(Path(place))
    opened = store()
    rows = [row for row in _study_rows(opened) if row["sweep"] == place]
    if not rows:
        names = [study.name for study in stored_studies(opened)]
        raise UsageError(f"{opened.url} has no study {place!r}{not_among(place, names)}")
    return rows


def _rows_of_results(path: Path) -> Rows:
    """Rows of files that another benchmark wrote."""
    files = [path] if path.is_file() or _is_whole(path) else sorted(file for file in path.rglob("*") if file.is_file())
    sources = [(file, recognise(file)) for file in files]
    others = [f"{file} ({source.name})" for file, source in sources if source.name not in RESULT_SOURCES]
    if others or not files:
        known = ", ".join(RESULT_SOURCES)
        raise UsageError(f"{others[0] if others else path}: neither a study nor results of a benchmark ({known})")
    return [
        {**item.values, "time": item.values.get("time")}
        for file, source in sources
        for capture in source.captures([file], ReadOptions())
        for item in capture.items()
        if isinstance(item, Row)
    ]


def _is_whole(directory: Path) -> bool:
    """Whether one source reads all of a directory."""
    try:
        return bool(recognise(directory))
    except InputError:
        return False


def _study_rows(store: Store) -> Rows:
    store.check_that_it_exists()
    rows: Rows = [row for row in store.benchmark_runs() if row.get("study") in KINDS and row.get("sweep")]
    return sorted(rows, key=lambda row: row["time"] or 0)


def stored_studies(store: Store) -> list[StoredStudy]:
    """All studies of a store, the newest first."""
    by_name: dict[str, Rows] = {}
    for row in _study_rows(store):
        by_name.setdefault(str(row["sweep"]), []).append(row)
    studies = []
    for name, rows in by_name.items():
        times = [row["time"] for row in rows if row["time"]]
        places, hosts = (
            tuple(dict.fromkeys(str(row[column]) for row in rows if row.get(column))) for column in ("place", "host")
        )
        began, ended = (from_epoch_us(pick(times)) if times else None for pick in (min, max))
        studies.append(StoredStudy(name, str(rows[0]["study"]), places, hosts, len(rows), began, ended))
    return studies[::-1]


def reported_studies(store: Store) -> ReportedStudies | None:
    """The newest study of each kind and place; None: there is none."""
    newest: dict[tuple[str, tuple[str, ...]], StoredStudy] = {}
    for study in stored_studies(store):
        newest.setdefault((study.kind, study.places), study)
    rows = _study_rows(store)
    studies = []
    for study in newest.values():
        with suppress(UsageError):  # a study that was begun only
            studies.append((study, study_result([row for row in rows if row["sweep"] == study.name])))
    return ReportedStudies(studies) if studies else None


def study_result(rows: Rows) -> Any:
    """The answer of a study's kind; of results of other benchmarks, rates of mdtest or bandwidths."""
    kinds = {str(row["study"]) for row in rows if row.get("study")}
    if not kinds and rows:
        kinds = {"metadata" if {row.get("tool") for row in rows} == {"mdtest"} else "ior"}
    if len(kinds) != 1 or not kinds <= set(RESULTS):
        raise UsageError(f"runs of no one kind of study: {', '.join(sorted(kinds)) or 'none'}")
    module, function = RESULTS[kinds.pop()]
    return getattr(import_module(f"iolens.analyses.{module}"), function)(rows)


# The IOR runs that imitate a job --------------------------------------------------------------------------------------
# From a Darshan log, a stored run, or the counters of a job's nodes.

LISTED: Final = 4  # runs that a message names
TEXTS: Final = ("module", "path")
IDENTIFIERS: Final = ("record_id",)


def imitation_of(which: str, access: RunAccess) -> Imitation:
    """By a log, a run id, the id of a job with one log or with counters of its nodes, or the folder of its samples."""
    from iolens.api.runs import log_path, record_of_log

    if Path(which).is_dir():
        from iolens.api.job_report import report_of_folder

        return imitation_of_report(report_of_folder(Path(which)))
    path = log_path(which)
    if path is not None:
        return imitation_of_record(record_of_log(path))
    stored = access.stored()
    runs = stored.named(which)
    if len(runs) > 1:
        names = ", ".join(f"{str(row['run_id'])[:12]} ({row['executable']})" for row in runs[:LISTED])
        raise UsageError(f"{which} names {len(runs):,} runs: name one by its run id, such as {names}")
    if runs:
        return imitation_of_record(stored.record(runs[0]))
    from iolens.api.stored_job import report_of_opened_job

    try:
        report = report_of_opened_job(stored.store, which)
    except InputError:
        raise InputError(
            stored.url, f"no run and no job {which!r}", "a run or job id of this store, or a log"
        ) from None
    return imitation_of_report(report)


def imitation_of_record(record: RunRecord) -> Imitation:
    """From all that a log says."""
    return imitation_of_run(record.run, file_rows(record.files))


def file_rows(files: RunColumns) -> Iterator[dict[str, Any]]:
    """The columns that are looked at, record by record; None is not known."""
    if not len(files):
        return
    columns: dict[str, list[Any]] = {}
    for name in COLUMNS:
        if name in TEXTS:
            columns[name] = files.texts(name).tolist()
        elif name in IDENTIFIERS:
            columns[name] = files.identifiers(name).tolist()
        else:
            columns[name] = [None if value != value else int(value) for value in files.numbers(name).tolist()]
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def imitation_of_report(report: JobReport) -> Imitation:
    """From sums of a job's nodes: of the file system that most bytes went to."""
    if not report.filesystems:
        raise UsageError(f"job {report.jobid}: neither a Darshan log nor counters of its nodes are in the store")
    busiest = max(report.filesystems, key=lambda item: (item.read_bytes or 0) + (item.write_bytes or 0))
    others = [item.filesystem for item in report.filesystems if item is not busiest]
    sums = NodeSums(
        filesystem=busiest.filesystem,
        tasks=report.processes,
        nodes=report.nodes,
        read_bytes=busiest.read_bytes,
        write_bytes=busiest.write_bytes,
        opens=busiest.metadata.get("open"),
        rpcs={"read": {rpc.size_bytes: rpc.reads for rpc in busiest.rpc_sizes},
              "write": {rpc.size_bytes: rpc.writes for rpc in busiest.rpc_sizes}},
        duration_s=busiest.duration_s,
        other_filesystems=tuple(others),
    )  # fmt: skip
    return imitation_of_sums(sums)


def scaled_runs(imitation: Imitation, share: float, tasks: int | None) -> list[IorParameters]:
    """The runs of IOR in the size in which they are made: a share of the bytes, by at most so many tasks."""
    return [run.parameters.scaled(share, tasks) for run in imitation.runs]


def shown_commands(runs: Sequence[IorParameters], launcher: str | None) -> list[list[str]]:
    """Command lines for people, with `DIR` for the directory."""
    words = launcher or "mpirun -np {tasks}"
    return [command.argv(words, "ior") for run in runs for command in ior_commands(run)]


def planned_result(
    job: str, imitation: Imitation, share: float, tasks: int | None, launcher: str | None
) -> ImitationResult:
    """Parameters, evidence and commands, with nothing run."""
    from iolens.analyses.bench_imitate import imitation_result

    return imitation_result(job, imitation, shown_commands(scaled_runs(imitation, share, tasks), launcher))


def imitate_parameters(
    job: str, imitation: Imitation, share: float, tasks: int | None, launcher: str | None
) -> ImitateParameters:
    """What the study runs: a share of the job's bytes, by at most so many tasks, or as many as there are processors."""
    runs = scaled_runs(imitation, share, tasks or len(os.sched_getaffinity(0)))
    return ImitateParameters.of(job, share, runs, launcher)


def study_result_of(job: str, imitation: Imitation, folder: StudyFolder) -> ImitationResult:
    """How near the runs of a study came."""
    from iolens.analyses.bench_imitate import imitation_result

    parameters: ImitateParameters = folder.plan().parameters
    rows = [row for rows in folder.journal().rows.values() for row in rows]
    runs = parameters.runs()
    return imitation_result(job, imitation, shown_commands(runs, parameters.launcher), runs, rows)
