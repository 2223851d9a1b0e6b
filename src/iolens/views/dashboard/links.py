"""Where names in tables lead: a target, job, user or file system has a page of its own."""

from __future__ import annotations

import re
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
LONGEST_NAME: Final = 1000  # characters, as written in an address
_TRICKS: Final = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]|%[0-9A-Fa-f]{2}")  # refused by `web.access` in any path
OF_SHARES: Final = {"job": "/jobs/{}", "user": "/users/{}"}  # of `iolens blame --by`


def cell_link(result: Any, window: str, table: TableView, column: str, value: Any) -> str:
    """The address of what a cell names, with the window of the page; "": it has none."""
    if not isinstance(value, str) or not _fits_in_a_path(value):
        return ""
    if column == "target":
        own = getattr(result, "filesystem", None)
        return f"/filesystems/{quote(own, '')}/targets/{quote(value)}{window}" if own else ""
    if column == "name" and table.name == "shares":
        # not the sum of others, nor what is nobody's; an id without a record may be a job, but is no user
        is_one = any(line.name == value and (line.is_known or result.by == "job") for line in result.who)
        return _filled(OF_SHARES.get(result.by, ""), value) if is_one else ""
    return _filled(OF_COLUMNS.get(column, ""), value)


def _fits_in_a_path(name: str) -> bool:
    """Whether the server takes the name as the end of an address: others are shown without a link."""
    is_plain = not _TRICKS.search(name) and not {"", ".", ".."} & set(name.split("/"))
    return is_plain and len(quote(name)) <= LONGEST_NAME


def _filled(path: str, value: str) -> str:
    return path.format(quote(value)) if path else ""
