"""Most reads or writes of a program move little data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolens.findings.remedies import CARNS, LARGER_ACCESSES, kinds_of, larger_accesses
from iolens.findings.rule import Evidence, FindingRule, Inputs, Part


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    """Reads and writes apart; both together where neither alone is enough to speak of."""
    sizes: Mapping[str, Mapping[int | None, int]] = inputs["access_sizes"]
    small, whole = {}, {}
    for direction, counts in sizes.items():
        whole[f"{direction}s"] = sum(counts.values())
        small[f"{direction}s"] = sum(
            count for size, count in counts.items() if size is not None and size <= thresholds["small_bytes"]
        )
    together = "reads and writes"
    small[together], whole[together] = sum(small.values()), sum(whole.values())
    small_kinds = [
        kind
        for kind, count in whole.items()
        if count >= thresholds["fewest_accesses"] and 100 * small[kind] > thresholds["share_pct"] * count
    ]
    for kind in small_kinds:
        if kind != together or small_kinds == [together]:
            yield {
                "accesses": kind,
                "small_accesses": small[kind],
                "all_accesses": whole[kind],
                "small_pct": 100 * small[kind] / whole[kind],
                "small_kib": thresholds["small_bytes"] / 1024,
            }


def _own_words(inputs: Inputs, evidence: Evidence) -> Mapping[str, str]:
    return {"how": larger_accesses(inputs)}


def _about(inputs: Inputs, evidence: Evidence) -> Part:
    return Part(kinds_of(str(evidence["accesses"])), accesses=float(evidence["small_accesses"]))


RULE: Final = FindingRule(
    code="small-accesses",
    title="small reads and writes",
    severity="warn",
    inputs=("access_sizes",),
    also_reads=("interface", "strategy", "io_kinds_s"),
    thresholds={"small_bytes": 102400, "share_pct": 50, "fewest_accesses": 1000},
    check=_check,
    condition="more than {share_pct:g} % of at least {fewest_accesses:,.0f} reads, writes, or both together, are in "
    "Darshan's bins up to {small_bytes:,.0f} bytes",
    message="{small_pct:.0f} % of {all_accesses:,} {accesses} are {small_kib:g} KiB or less",
    remedy="Move 1 MiB or more with each call, in the order of the file. {how}",
    reference=f"{CARNS}, Sections 5.4, 5.6 and Fig. 12",
    general_words={"how": " ".join(LARGER_ACCESSES.values())},
    own_words=_own_words,
    about=_about,
)
