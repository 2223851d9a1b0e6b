"""Studies of `iolens bench`: made, run, resumed and stored; their results from a folder or a store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from iolens.analyses.bench_list.results import StoredStudy
from iolens.analyses.bench_report.results import ReportedStudies
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
    return getattr(import_module(f"iolens.analyses.{module}.results"), function)(rows)
