"""Columns of `sacct`: what each may hold, and which cell belongs to which where a text holds the separator.

`sacct -P` does not escape a `|` in a job's name or comment. Where a line has more cells than columns, the extra ones
are given to columns of free text so that every other column holds what it can; where that can be done in several ways
the line is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import combinations_with_replacement
from math import comb
from typing import Final

DEFAULT_COLUMNS: Final = (
    "JobIDRaw", "JobID", "Cluster", "User", "Account", "Partition", "State", "Submit", "Start", "End", "ElapsedRaw",
    "NNodes", "AllocCPUS", "NodeList", "JobName",
)  # fmt: skip
"""What `slurm://` asks for, and what a file without a header is taken to have: the free text is last."""

FREE_TEXT: Final = frozenset({
    "jobname", "comment", "admincomment", "systemcomment", "workdir", "submitline", "reason", "extra", "wckey",
    "container", "constraints", "licenses", "stdin", "stdout", "stderr", "reservation", "flags",
})  # fmt: skip
_MOST_DIVISIONS: Final = 5000

KNOWN: Final = frozenset({
    "account", "allocgres", "alloccpus", "allocnodes", "alloctres", "associd", "avecpu", "averss", "avevmsize",
    "avediskread", "avediskwrite", "cluster", "consumedenergy", "consumedenergyraw", "cputime", "cputimeraw", "dbindex",
    "derivedexitcode", "elapsed", "elapsedraw", "eligible", "end", "exitcode", "gid", "group", "jobid", "jobidraw",
    "jobname", "layout", "maxdiskread", "maxdiskwrite", "maxrss", "maxrssnode", "maxvmsize", "ncpus", "nnodes",
    "nodelist", "ntasks", "partition", "planned", "priority", "qos", "qosraw", "reqcpus", "reqmem", "reqnodes",
    "reqtres", "reserved", "restarts", "start", "state", "submit", "suspended", "systemcpu", "timelimit",
    "timelimitraw", "totalcpu", "uid", "user", "usercpu", "workdir", *FREE_TEXT,
})  # fmt: skip

RUNNING_STATES: Final = frozenset({"RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "SIGNALING", "STAGE_OUT",
                                   "STOPPED"})  # fmt: skip
WAITING_STATES: Final = frozenset({"PENDING", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
ENDED_STATES: Final = frozenset({
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "LAUNCH_FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
    "PREEMPTED", "RECONFIG_FAIL", "REQUEUED", "RESIZING", "REVOKED", "TIMEOUT",
})  # fmt: skip

JOB_ID: Final = re.compile(
    r"(?P<job>[0-9]++(?:_(?:[0-9]++|\[[^\]|]*+\]))?(?:\+[0-9]++)?)(?:\.(?P<step>\w++)(?:\+[0-9]++)?)?"
)
_STATES: Final = "|".join(sorted(RUNNING_STATES | WAITING_STATES | ENDED_STATES))
STATE: Final = re.compile(rf"(?P<state>{_STATES})(?:\+| by .+)?")
_COUNT = re.compile(r"[0-9]*+(?:\.[0-9]++)?[KMGTP]?")
_NAME = re.compile(r"[^\s|]*+")
_TIME = re.compile(r"|Unknown|None|N/A|[0-9]{9,11}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]++(?:Z|[+-][0-9:]++)?")
_SPAN = re.compile(r"|INVALID|UNLIMITED|Partition_Limit|(?:[0-9]++-)?(?:[0-9]++:)?[0-9]++:[0-9]{2}(?:\.[0-9]++)?")
_TRES = re.compile(r"|[^=|]++=[^|]*+")

PATTERNS: Final[dict[str, re.Pattern[str]]] = {
    "jobid": JOB_ID, "jobidraw": JOB_ID, "state": STATE,
    **dict.fromkeys(("submit", "start", "end", "eligible"), _TIME),
    **dict.fromkeys(("elapsed", "cputime", "totalcpu", "usercpu", "systemcpu", "timelimit", "planned", "reserved",
                     "suspended", "avecpu"), _SPAN),
    **dict.fromkeys(("elapsedraw", "nnodes", "allocnodes", "alloccpus", "ncpus", "reqcpus", "reqnodes", "ntasks", "uid",
                     "gid", "cputimeraw", "priority", "timelimitraw", "maxrss", "maxvmsize", "averss", "avevmsize",
                     "dbindex", "associd", "restarts"), _COUNT),
    **dict.fromkeys(("user", "account", "partition", "cluster", "group", "qos"), _NAME),
    **dict.fromkeys(("exitcode", "derivedexitcode"), re.compile(r"(?:[0-9]++:[0-9]++)?")),
    **dict.fromkeys(("alloctres", "reqtres"), _TRES),
    "nodelist": re.compile(r"|None assigned|[^\s|]++"),
}  # fmt: skip


def header_of(cells: Sequence[str]) -> tuple[str, ...] | None:
    """The columns that a line names, in lower case; None where it is no header."""
    names = [cell.strip().lower() for cell in cells]
    if names and not names[-1]:
        names.pop()  # --parsable ends each line with a separator
    known = sum(name in KNOWN for name in names)
    is_header = ("jobid" in names or "jobidraw" in names) and known >= 3 and known * 2 > len(names)
    return tuple(names) if is_header and all(name.isidentifier() for name in names) else None


def divided(cells: Sequence[str], columns: Sequence[str]) -> list[str]:
    """The text of each column; ValueError says why the line cannot be divided, or not in one way only."""
    cells = list(cells)
    if len(cells) == len(columns) + 1 and not cells[-1] and not _fits(cells, columns, _shares(columns, 1)):
        cells.pop()
    extra = len(cells) - len(columns)
    if extra == 0:
        return cells
    if extra < 0:
        raise ValueError(f"{len(cells)} of {len(columns)} columns: not a line of sacct, or cut")
    free = [place for place, name in enumerate(columns) if name in FREE_TEXT]
    if not free or comb(len(free) + extra - 1, extra) > _MOST_DIVISIONS:
        raise ValueError(f"{len(cells)} cells for {len(columns)} columns, and no text that the rest could belong to")
    fitting = _fits(cells, columns, _shares(columns, extra))
    if len(fitting) != 1:
        why = "several columns could hold it" if fitting else "no column fits"
        names = ", ".join(columns[place] for place in free)
        raise ValueError(f"a separator inside a text ({names}) cannot be resolved: {why}; put JobName last in --format")
    return fitting[0]


def _shares(columns: Sequence[str], extra: int) -> list[Counter[int]]:
    """All divisions of the extra cells among columns of free text."""
    free = [place for place, name in enumerate(columns) if name in FREE_TEXT]
    return [Counter(choice) for choice in combinations_with_replacement(free, extra)]


def _fits(cells: Sequence[str], columns: Sequence[str], shares: Sequence[Counter[int]]) -> list[list[str]]:
    """Those divisions in which every column holds what it can."""
    fitting = []
    for share in shares:
        texts, begin = [], 0
        for place in range(len(columns)):
            end = begin + 1 + share[place]
            texts.append("|".join(cells[begin:end]))
            begin = end
        if all(_is_possible(name, text) for name, text in zip(columns, texts, strict=True)):
            fitting.append(texts)
    return fitting


def _is_possible(column: str, text: str) -> bool:
    pattern = PATTERNS.get(column)
    return pattern is None or pattern.fullmatch(text) is not None
