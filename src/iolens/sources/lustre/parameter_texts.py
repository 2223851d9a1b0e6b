"""One raw text of a parameter, as a server or a client printed it."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from iolens.sources.lustre.clock import snapshot_of, stamp_us
from iolens.sources.lustre.parameters import Parameter

_JOB_TIME: Final = re.compile(rb"^[ \t]++snapshot_time:([^\n]*)", re.MULTILINE)


class ParameterText(NamedTuple):
    """One raw text and where it was found."""

    parameter: Parameter
    data: bytes
    place: str
    line: int = 1

    @property
    def stamp_us(self) -> int | None:
        """The time the server printed it, where it says so (job_stats only tells the last activity)."""
        return snapshot_of(self.data) if self.parameter.is_timed else None

    @property
    def last_activity_us(self) -> int | None:
        """The latest `snapshot_time` of any job in a job_stats."""
        stamps = (stamp_us(result.decode("ascii", "replace")) for result in _JOB_TIME.findall(self.data))
        return max((stamp for stamp in stamps if stamp is not None), default=None)
