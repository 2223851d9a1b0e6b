"""The applications of the demo: Darshan logs of the jobs of `scratch` in its two days, loaded into a store."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from iolens.analyses.runs.strategy import strategy_of
from iolens.api.demo_workload import NODES
from iolens.api.open_store import OpenStore
from iolens.api.stored_runs import StoredRuns, WantedRuns
from iolens.errors import UsageError
from iolens.simulator.activity import Activity
from iolens.simulator.darshan_jobs import truth_of
from iolens.sources.darshan.library import library_path

HOURS: Final = 48


@dataclass(frozen=True, slots=True)
class DemoRuns:
    """Logs that were loaded: how many, of how many jobs, and how many were read back as they truly are."""

    jobs: int
    runs: int
    same_bytes: int
    same_strategy: int
    example_job: str  # that spends most of its time in I/O


def loaded_runs(
    store: str, activity: Activity, end: datetime, progress: Callable[[str], None], hours: int = HOURS
) -> DemoRuns | None:
    """Write the logs, load them and the list of jobs, and compare; None: libdarshan-util is not installed."""
    try:
        library_path()
    except UsageError:
        return None
    from iolens.simulator.darshan_jobs import LOGS, SACCT_FILE, write_job_logs

    end_s = int(end.timestamp())
    with tempfile.TemporaryDirectory(prefix="iolens-demo-") as folder, OpenStore(store) as opened:
        written = write_job_logs(
            Path(folder),
            activity,
            mdts=1,
            nodes=NODES,
            start_s=end_s - hours * 3600,
            end_s=end_s,
            progress=progress,
        )
        opened.ingest(Path(folder) / LOGS, source="darshan", filesystem="scratch")
        opened.ingest(Path(folder) / SACCT_FILE, source="slurm")
    rows = {row["job_id"]: row for row in StoredRuns.opened(store, None).wanted(WantedRuns())}
    pairs = [(truth_of(run), rows[str(run.job_id)]) for run in written.runs if str(run.job_id) in rows]
    return DemoRuns(
        written.jobs,
        len(pairs),
        sum((truth.read_bytes, truth.write_bytes) == (row["read_bytes"], row["write_bytes"]) for truth, row in pairs),
        sum(truth.strategy == strategy_of(row)[0] for truth, row in pairs),
        str(max(pairs, key=lambda pair: pair[0].slowest_rank_s / pair[1]["duration_s"])[1]["job_id"]),
    )
