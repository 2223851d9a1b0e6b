"""Who else used what the verdict names in a run's time, out of what blame says of it (B1, B9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from iolens.analyses.attribution.job_ids import JobIdParts
from iolens.analyses.blame.results import Basis, Blame
from iolens.analyses.explain.results import SYSTEM, ExplainedFactor, RunNeighbour, ShareOf

MOST: Final = 10
DISK: Final[Basis] = "disk"


@dataclass(frozen=True, slots=True)
class NamedResource:
    """What neighbours share with the run: disks of these OSTs (none: all of the run's), or the metadata servers."""

    basis: Basis
    targets: tuple[str, ...] = ()


def named_resources(evidence: Sequence[ExplainedFactor]) -> list[NamedResource]:
    """What the named factors of the system are about, in their order; the run's OSTs where none is named."""
    named = [line for line in evidence if line.factor in SYSTEM]
    bases = [*dict.fromkeys(_basis(line) for line in named)] or [DISK]
    on_disks = [line for line in named if _basis(line) == "disk"]
    is_of_single_osts = all(line.target is not None for line in on_disks)
    osts = dict.fromkeys(line.target for line in on_disks if line.target is not None) if is_of_single_osts else {}
    return [NamedResource(basis, tuple(osts) if basis == "disk" else ()) for basis in bases]


def neighbours_of(blame: Blame, job_id: str | None, parts_of: Callable[[str], JobIdParts]) -> list[RunNeighbour]:
    """Other jobs by their share of what the targets did, the largest first."""
    others = [line for line in blame.who if job_id is None or job_id not in (line.name, parts_of(line.name).job_id)]
    used = [line for line in others if line.share_pct > 0]
    share_of = _share_of(blame)
    return [RunNeighbour(line.name, line.share_pct, line.user, line.executable, share_of) for line in used[:MOST]]


def _share_of(blame: Blame) -> ShareOf:
    if blame.basis == "disk":
        return "disk_seconds"
    return "metadata_operations" if blame.disk_seconds is None else "metadata_seconds"


def _basis(line: ExplainedFactor) -> Basis:
    return "metadata" if line.factor == "mdt_ops_per_s" else "disk"
