"""Where names in tables lead: a target, job, user or file system has a page of its own."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from iolens.views.render.tables import TableView

OF_COLUMNS: Final = {
    "job": "/jobs/{}",
    "job_id": "/jobs/{}",
    "jobid": "/jobs/{}",
    "user": "/users/{}",
    "filesystem": "/filesystems/{}",
}
OF_SHARES: Final = {"job": "/jobs/{}", "user": "/users/{}"}  # of `iolens blame --by`


def cell_link(result: Any, window: str, table: TableView, column: str, value: Any) -> str:
    """The address of what a cell names, with the window of the page; "": it has none."""
    if not isinstance(value, str) or not value or value in (".", ".."):
        return ""
    if column == "target":
        own = getattr(result, "filesystem", None)
        return f"/filesystems/{quote(own, '')}/targets/{quote(value, '')}{window}" if own else ""
    if column == "name" and table.name == "shares":
        is_one = any(line.name == value for line in result.who)  # not the sum of others, nor what is nobody's
        return _filled(OF_SHARES.get(result.by, ""), value) if is_one else ""
    return _filled(OF_COLUMNS.get(column, ""), value)


def _filled(path: str, value: str) -> str:
    return path.format(quote(value, "")) if path else ""
