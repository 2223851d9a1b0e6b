"""Files of equal work took much longer on one OST than on the others (DEFINITIONS, Slow target)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from iolens.findings.rule import Evidence, FindingRule, Inputs, OstTimes, Part


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    """Each slow OST once, by the group of files that lost most time on it; the most expensive first."""
    by_ost: dict[tuple[str | None, int], dict[str, float | int | str]] = {}
    for group in inputs["ost_times"]:
        for evidence in _slow_of(group, thresholds, inputs.get("duration_s")):
            key = str(evidence["place"]), int(str(evidence["ost"]))
            if key not in by_ost or float(evidence["lost_s"]) > float(by_ost[key]["lost_s"]):
                by_ost[key] = evidence
    yield from sorted(by_ost.values(), key=lambda evidence: -float(evidence["lost_s"]))


def _slow_of(
    group: Sequence[OstTimes], thresholds: Mapping[str, float], duration_s: float | None
) -> Iterator[dict[str, float | int | str]]:
    known = [times for times in group if times.files >= thresholds["fewest_files"]]
    if len(known) < thresholds["fewest_osts"]:
        return
    for times in known:
        usual_s = _median([other.mean_s for other in known if other is not times])
        if times.mean_s > thresholds["factor"] * usual_s > 0 and times.p < thresholds["p"]:
            yield {
                "ost": times.ost,
                "ost_name": f"OST{times.ost:04x}",
                "place": f" of {times.mount}" if times.mount else "",
                "files": times.files,
                "file_bytes": times.file_bytes,
                "mean_s": times.mean_s,
                "other_osts": len(known) - 1,
                "other_mean_s": usual_s,
                "factor": times.mean_s / usual_s,
                "p": times.p,
                "io_s": times.io_s,
                "lost_s": times.lost_s if duration_s is None else min(times.lost_s, duration_s),
            }


def _median(values: Sequence[float]) -> float:
    """As `statistics.median`, which takes as long to import as a log to read."""
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def _own_words(inputs: Inputs, evidence: Evidence) -> Mapping[str, str]:
    return {"name": str(evidence["ost_name"])}


def _about(inputs: Inputs, evidence: Evidence) -> Part:
    return Part(seconds=float(evidence["io_s"]), waited_s=float(evidence["lost_s"]))


RULE: Final = FindingRule(
    code="slow-ost",
    title="a slow OST",
    severity="high",
    inputs=("ost_times",),
    also_reads=("duration_s", "slowest_rank_s"),
    thresholds={"factor": 3, "fewest_files": 5, "fewest_osts": 3, "p": 0.01},
    check=_check,
    condition="files of one stripe, with equal ranks and with bytes within 10 %, took more than {factor:g} times as "
    "long on one OST as in the median of the others, of at least {fewest_osts:g} OSTs with at least {fewest_files:g} "
    "of them each, and a rank test (Mann and Whitney, one-sided) gives p < {p:g}",
    message="files on OST {ost} ({ost_name}{place}) took {mean_s:,.3g} s each, {factor:,.3g} times as long as files of "
    "as many bytes on {other_osts:,} other OSTs ({other_mean_s:,.3g} s): about {lost_s:,.3g} s of run time lost",
    remedy="The program is not the reason. Tell the operators of the file system: a disk that fails, a RAID that "
    "rebuilds, a target that is full or busy for others (`lctl get_param obdfilter.*-{name}.brw_stats` on its server, "
    "`iolens latency` on telemetry). Until it is mended they keep new files off it (`lctl set_param "
    "osp.*-{name}-osc-MDT*.max_create_count=0`); files that are needed move with `lfs migrate`.",
    reference="DEFINITIONS of iolens, Slow target; Lustre Operations Manual, Handling Full or Degraded OSTs",
    general_words={"name": "OST000e"},
    own_words=_own_words,
    about=_about,
    subject="OST {ost}{place}",
)
