"""Jobs in the report of a centre: sentences agree with the numbers beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolens.analyses.job_list_reported import ReportedJobs
from iolens.api import OpenStore
from iolens.api.jobs import reported_jobs
from iolens.store.scope import Scope
from iolens.store.store import Store
from iolens.views.job_list_reported import report_answers, report_methods, report_sections
from iolens.views.render.tables import TableView
from tests.analyses.like_jobs import five_applications, stored_like_jobs


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> ReportedJobs:
    folder = tmp_path_factory.mktemp("store")
    stored_like_jobs(Store(folder), five_applications())
    with OpenStore(str(folder)) as opened:
        return reported_jobs(opened, Scope("scratch"))


def test_the_summary_names_who_moved_most(jobs: ReportedJobs) -> None:
    first = jobs.listed.jobs[0]
    ((words,),) = [answer.words for answer in report_answers(jobs)]
    assert words == f"Of 7 jobs with counters, job {first.jobid} (enzo, 110 GB) moved most."
    assert jobs.listed.jobs_known == 7


def test_the_first_two_are_reported_in_full(jobs: ReportedJobs) -> None:
    titles = [section.title for section in report_sections(jobs)]
    assert titles == ["Jobs", *(f"Job {job.jobid}: {job.name}" for job in jobs.listed.jobs[:2])]
    tables = [part for part in report_sections(jobs)[1].parts if isinstance(part, TableView)]
    sizes = next(table for table in tables if table.title == "RPCs by size")
    rows = list(sizes.rows)
    assert (rows[0], rows[-1]) == (("4 KiB", 12243, 393), ("1 MiB", 26572, 52606))
    assert sizes.note == "54 GB read and 56 GB written."


def test_a_report_of_a_store_has_the_section(tmp_path: Path) -> None:
    stored_like_jobs(Store(tmp_path / "store"), five_applications())
    with OpenStore(str(tmp_path / "store")) as opened:
        opened.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "RPCs by size" in page
    assert len(report_methods([reported_jobs(OpenStore(str(tmp_path / "store")), Scope("scratch"))])) == 1
