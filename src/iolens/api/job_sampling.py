"""`job end` and `job run` from the sample to the report. Standard library only: they run on compute nodes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from iolens.agent.jobs.nodes import run_command
from iolens.agent.jobs.requests import SamplingRequest
from iolens.agent.jobs.sampling import JobContext
from iolens.analyses.job_report import JobReport
from iolens.api.job_report import report_of_folder
from iolens.errors import OptionError
from iolens.findings import Thresholds


def end_job(request: SamplingRequest, wait_s: float, thresholds: Thresholds) -> JobReport:
    """Sample the end of the job of this environment; what it did."""
    job = request.job()
    request.end(job, wait_s)
    return report_of_folder(request.place(job), thresholds)


def run_job(request: SamplingRequest, command: Sequence[str], thresholds: Thresholds) -> tuple[int, JobReport]:
    """Run a command between two samples; its exit code, and what it did."""
    if request.spool is not None and request.via is not None:
        raise OptionError("--spool and --via do not go together here: the samples of other nodes are not seen")
    job = JobContext.of_command(os.environ, command, request.job_id)
    if request.via is None:
        job = replace(job, nodes=())  # this node alone is sampled, and none is missed
    request.begin(job)
    code = run_command(command, request.say)
    request.end(job)
    report = report_of_folder(request.place(job), thresholds)
    request.hand_over(job)
    return code, report
