"""Random centres in which something made runs slow: is the right one named first, and are those beside it right?

`python -m bench.culprits --centres 100`, or with `--first 5000` others. Kinds of centres take turns: a culprit with
tiny random writes, two at once, a storm of metadata operations, an OST that becomes slow, and one that becomes full.
Right is what the simulator knows:

- a culprit: `blame` of the busiest hour has it first (of two, both in their order), with `--metadata` that of a storm;
- an OST: `explain` of a run that it slowed says `system`, and the first that it names is the OST, and why; how often it
  also names a load of other jobs, which there may be, is counted;
- where `explain` of a slowed run says `system`, its first neighbour is the job that did most on what the verdict names
  (or has at least 95 % of what that one did).

Asked as well: a run whose own pattern was worsened while the disks were quiet, one that background load slowed, and one
that nothing touched. Stopped early, it prints what it has.
"""

from __future__ import annotations

import argparse
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from iolens.analyses.explain.analysis import RunExplanation
from iolens.api import OpenStore
from iolens.api.explain import explanation
from iolens.simulator.random_centre import ILLNESSES, KINDS, CentreKind, RandomCentre, random_centre

ALMOST = 0.95  # of what the first did
LASTING = 2  # victims of an OST before the asked one: a change is one that lasts
FACTORS = {"slow": "slowest_ost_ratio", "full": "fullness_pct"}
OF_JOBS = {"fsu_others_pct", "mdt_ops_per_s", "coverage_factor"}


@dataclass
class Counts:
    """Of one kind of centres."""

    centres: int = 0
    first: int = 0
    also_load: int = 0
    neighbours: int = 0
    verdicts: dict[str, Counter[str]] = field(default_factory=dict)

    def take(self, asked: str, verdict: str) -> None:
        """An answer about such a run."""
        self.verdicts.setdefault(asked, Counter())[verdict] += 1


def main() -> None:
    """Count what is right, kind by kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--centres", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="number of the first centre")
    parser.add_argument("--slowed-only", action="store_true", help="ask of no other runs, which takes half the time")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    counts = {kind: Counts() for kind in KINDS}
    began = time.time()
    try:
        for seed in range(options.first, options.first + options.centres):
            kind = KINDS[seed % len(KINDS)]
            judge(seed, kind, counts[kind], options.slowed_only)
    except KeyboardInterrupt:
        print("stopped")
    report(counts, time.time() - began)


def judge(seed: int, kind: CentreKind, counts: Counts, slowed_only: bool) -> None:
    """Ask one centre; what is wrong is printed at once."""
    with tempfile.TemporaryDirectory(prefix="iolens-bench-") as folder:
        centre = random_centre(seed, Path(folder) / "store", kind)
        with OpenStore(centre.store) as opened:
            jobs = [(asked, job) for asked, job in asked_of(centre).items() if asked == "slowed" or not slowed_only]
            answers = {asked: explanation(opened, job) for asked, job in jobs}
            slowed = answers["slowed"]
            is_first = names_target(centre, slowed) if kind in ILLNESSES else names_culprits(centre, opened)
    is_beside = slowed.verdict == "system" and neighbours_are_right(centre, slowed)
    counts.centres += 1
    counts.first += is_first
    counts.also_load += kind in ILLNESSES and any(line.factor in OF_JOBS for line in slowed.evidence)
    counts.neighbours += is_beside
    for asked, answer in answers.items():
        counts.take(asked, answer.verdict)
    if not is_first or not is_beside:
        named = [line.factor for line in slowed.evidence]
        print(f"seed {seed}, {kind}: first {'right' if is_first else 'wrong'}; {slowed.verdict} by {named}, neighbours"
              f" {[line.name for line in slowed.neighbours[:2]]} on {slowed.neighbours_on}", flush=True)  # fmt: skip


def asked_of(centre: RandomCentre) -> dict[str, str]:
    """A job of each sort, drawn by the centre's number."""
    chance = random.Random(centre.seed)
    lasting = centre.victims[LASTING:] if centre.kind in ILLNESSES else centre.victims
    jobs = {
        "slowed": chance.choice(lasting),
        "untouched": chance.choice(centre.untouched),
        "worsened": centre.worsened,
    }
    return jobs | ({"loaded by background": chance.choice(centre.loaded)} if centre.loaded else {})


def names_culprits(centre: RandomCentre, opened: OpenStore) -> bool:
    """Whether they come first in the busiest hour of what they did."""
    is_storm = centre.kind == "metadata storm"
    hour = opened.blame(centre.filesystem, busiest="1h", metadata=is_storm)
    return [line.name for line in hour.who[: len(centre.culprits)]] == [*centre.culprits]


def names_target(centre: RandomCentre, answer: RunExplanation) -> bool:
    """Whether the run was slow because of the OST first of all, and for the right reason."""
    first = next(iter(answer.evidence), None)
    if answer.verdict != "system" or first is None:
        return False
    return (first.factor, first.target) == (FACTORS[ILLNESSES[centre.kind]], centre.ill_target)


def neighbours_are_right(centre: RandomCentre, answer: RunExplanation) -> bool:
    """Whether the first neighbour is the job that did most beside the run, on what the verdict should name."""
    if not answer.neighbours or answer.job_id is None:
        return False
    first, is_storm = answer.neighbours[0], centre.kind == "metadata storm"
    is_of_right_kind = (first.share_of != "disk_seconds") == is_storm
    osts = None if is_storm else osts_of(centre, answer.job_id)
    beside = centre.others_beside(answer.job_id, osts)
    return is_of_right_kind and beside.get(first.name, 0.0) >= ALMOST * max(beside.values())


def osts_of(centre: RandomCentre, job_id: str) -> tuple[int, ...]:
    """Of the run, or the one that is slow or full."""
    if centre.ill_target is not None:
        return (int(centre.ill_target[-4:], 16),)
    return next(job.osts or () for job in centre.workload.planted if job.job_id == job_id)


def report(counts: dict[CentreKind, Counts], seconds: float) -> None:
    """A line for each kind and all together, then verdicts."""
    print(f"{sum(part.centres for part in counts.values())} random centres, {seconds:.0f} s")
    print(f"  {'kind':16}{'centres':>8}{'right one first':>17}{'system':>8}{'neighbours right':>18}")
    for kind, part in [*counts.items(), ("all", whole(list(counts.values())))]:
        system = part.verdicts.get("slowed", Counter())["system"]
        print(f"  {kind:16}{part.centres:>8}{part.first:>17}{system:>8}{part.neighbours:>11} of {system}")
    for kind in ILLNESSES:
        print(f"  {kind}: a load of other jobs is named as well in {counts[kind].also_load}")
    for kind, part in counts.items():
        for asked, verdicts in part.verdicts.items():
            said = ", ".join(f"{verdict} {count}" for verdict, count in verdicts.most_common())
            print(f"  {kind}, explain of a run that is {asked}: {said}")


def whole(parts: Sequence[Counts]) -> Counts:
    """All kinds together."""
    result = Counts()
    for part in parts:
        result.centres, result.first = result.centres + part.centres, result.first + part.first
        result.neighbours += part.neighbours
        for asked, verdicts in part.verdicts.items():
            result.verdicts.setdefault(asked, Counter()).update(verdicts)
    return result


if __name__ == "__main__":
    main()
