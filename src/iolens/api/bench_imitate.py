"""The IOR runs that imitate a job: from a Darshan log, a stored run, or the counters of a job's nodes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from iolens.benchmarks.imitation.file_groups import COLUMNS
from iolens.benchmarks.imitation.run_imitation import NodeSums, imitation_of_run, imitation_of_sums, ior_commands
from iolens.benchmarks.studies.imitate_study import ImitateParameters
from iolens.errors import InputError, UsageError

if TYPE_CHECKING:
    from iolens.analyses.bench_imitate.results import ImitationResult
    from iolens.analyses.job_report.results import JobReport
    from iolens.analyses.runs.columns import RunColumns
    from iolens.analyses.runs.records import RunRecord
    from iolens.api.runs import RunAccess
    from iolens.benchmarks.studies.plan import StudyFolder
    from iolens.models.ior_parameters import Imitation, IorParameters

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
    from iolens.api.stored_job_report import report_of_opened_job

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
    from iolens.analyses.bench_imitate.results import imitation_result

    return imitation_result(job, imitation, shown_commands(scaled_runs(imitation, share, tasks), launcher))


def imitate_parameters(
    job: str, imitation: Imitation, share: float, tasks: int | None, launcher: str | None
) -> ImitateParameters:
    """What the study runs: a share of the job's bytes, by at most so many tasks, or as many as there are processors."""
    runs = scaled_runs(imitation, share, tasks or len(os.sched_getaffinity(0)))
    return ImitateParameters.of(job, share, runs, launcher)


def study_result_of(job: str, imitation: Imitation, folder: StudyFolder) -> ImitationResult:
    """How near the runs of a study came."""
    from iolens.analyses.bench_imitate.results import imitation_result

    parameters: ImitateParameters = folder.plan().parameters
    rows = [row for rows in folder.journal().rows.values() for row in rows]
    runs = parameters.runs()
    return imitation_result(job, imitation, shown_commands(runs, parameters.launcher), runs, rows)
