"""Where an alert leads: the page of the dashboard and the command that show the same."""

from __future__ import annotations

import shlex
from datetime import datetime
from typing import Final
from urllib.parse import quote, urlencode

from iolens.alerts.rule import Page, RuleKind
from iolens.units import iso

Stretch = tuple[datetime, datetime]
_PLACES: Final[dict[Page, str]] = {
    "filesystem": "/filesystems/{filesystem}",
    "target": "/filesystems/{filesystem}/targets/{subject}",
    "job": "/jobs/{subject}",
    "contents": "/filesystems/{filesystem}/contents",
    "data": "/data",
}
_WITH_TIMES: Final = ("filesystem", "target")


def link_of(base: str | None, page: Page, filesystem: str | None, subject: str, stretch: Stretch) -> str | None:
    """The address of the page; None without the address of a dashboard."""
    if base is None:
        return None
    place = _PLACES[page].format(filesystem=quote(filesystem or "", safe=""), subject=quote(subject, safe=""))
    times = f"?{urlencode({'from': iso(stretch[0]), 'to': iso(stretch[1])})}" if page in _WITH_TIMES else ""
    return f"{base}{place}{times}"


def command_of(kind: RuleKind, filesystem: str | None, stretch: Stretch) -> str:
    """The command line; names are quoted as a shell needs it."""
    words = ["iolens", *kind.verb]
    if filesystem is not None and not kind.of_store:
        words += ["-f", filesystem, "--from", iso(stretch[0]), "--to", iso(stretch[1])]
    return shlex.join(words)
