"""Pages that are sent to users: of one job, or of one user."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from iolens import __version__
from iolens.api.job_page import JobPageOptions, job_page
from iolens.api.store_analyses import StoreAnalyses
from iolens.api.user_page import user_page
from iolens.store.scope import Scope
from iolens.views.job_page import job_page_html
from iolens.views.render import atomic
from iolens.views.report.page import ReportInfo
from iolens.views.user_page import user_page_html

EVERYTHING: Final = Scope()


def write_job_page(
    opened: StoreAnalyses,
    output: Path,
    job_id: str,
    scope: Scope = EVERYTHING,
    options: JobPageOptions | None = None,
    timezone: str | None = None,
) -> int:
    """Write the page of a job; its size in bytes."""
    atomic.check_place(output)
    return _written(output, job_page_html(job_page(opened, job_id, scope, options), _about(timezone)))


def write_user_page(
    opened: StoreAnalyses,
    output: Path,
    user: str,
    scope: Scope = EVERYTHING,
    filesystems: tuple[str, ...] = (),
    timezone: str | None = None,
) -> int:
    """Write the page of a user; its size in bytes."""
    atomic.check_place(output)
    return _written(output, user_page_html(user_page(opened, user, scope, filesystems, timezone), _about(timezone)))


def _about(timezone: str | None) -> ReportInfo:
    return ReportInfo(__version__, datetime.now(UTC), timezone=timezone)


def _written(output: Path, page: str) -> int:
    atomic.write(output, page)
    return len(page.encode())
