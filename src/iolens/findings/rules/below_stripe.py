"""Accesses of up to 1 MiB to files whose stripes are larger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolens.findings.remedies import DRISHTI, kinds_of
from iolens.findings.rule import Evidence, FindingRule, Inputs, Part

MIB: Final = 1 << 20


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    """Reads and writes apart. Where most are small, `small-accesses` says so and this adds nothing."""
    files = [file for file in inputs["striped_files"] if (file.stripe_bytes or 0) > MIB]
    for accesses in ("reads", "writes"):
        counts = [getattr(file, accesses) or 0 for file in files]
        below, small = (
            sum(getattr(file, f"{accesses}_to_{size}") or 0 for file in files) for size in ("mib", "100_kib")
        )
        limit = thresholds["share_pct"] * sum(counts)
        if sum(counts) >= thresholds["fewest_accesses"] and 100 * below > limit >= 100 * small:
            largest = max(zip(counts, files, strict=True), key=lambda pair: pair[0])[1]
            yield {
                "accesses": accesses,
                "all_accesses": sum(counts),
                "below_accesses": below,
                "below_pct": 100 * below / sum(counts),
                "stripe_bytes": largest.stripe_bytes,
                "stripe_mib": largest.stripe_bytes / MIB,
            }


def _own_words(inputs: Inputs, evidence: Evidence) -> Mapping[str, str]:
    return {"stripe": f"{float(evidence['stripe_mib']):g} MiB"}


def _about(inputs: Inputs, evidence: Evidence) -> Part:
    return Part(kinds_of(str(evidence["accesses"])), accesses=float(evidence["below_accesses"]))


RULE: Final = FindingRule(
    code="below-stripe",
    title="accesses smaller than a stripe",
    severity="info",
    inputs=("striped_files",),
    also_reads=("io_kinds_s",),
    thresholds={"share_pct": 50, "fewest_accesses": 1000},
    check=_check,
    condition="more than {share_pct:g} % of at least {fewest_accesses:,.0f} reads, or writes, of files with stripes of "
    "more than 1 MiB are of at most 1 MiB, and most of them are not small (100 KiB)",
    message="{below_pct:.0f} % of {all_accesses:,} {accesses} are 1 MiB or less, on files with stripes of "
    "{stripe_mib:g} MiB",
    remedy="Move whole stripes: {stripe} with each call, from multiples of {stripe}; MPI-IO: hint striping_unit, and "
    "cb_buffer_size of a stripe or more. Accesses that follow one another from one rank are put together by the client "
    "and need no change.",
    reference=f"Lustre Operations Manual, Configuring Lustre File Striping; {DRISHTI}",
    general_words={"stripe": "one stripe"},
    own_words=_own_words,
    about=_about,
)
