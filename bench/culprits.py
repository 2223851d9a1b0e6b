"""Random centres with a planted culprit: is it named, are its victims cleared, and is a bad pattern seen as one?

`python -m bench.culprits --centres 100`. In each centre one job with tiny random writes runs beside some runs of an
application. Asked: `blame` of the busiest hour; `explain` of one victim, of one run that nothing touched, of one that
background load slowed, and of one whose own pattern was worsened while the disks were quiet.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

from iolens.api import OpenStore
from iolens.api.explain import explanation
from iolens.simulator.random_centre import RandomCentre, random_centre


def main() -> None:
    """Count verdicts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--centres", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="number of the first centre")
    options = parser.parse_args()
    verdicts = {kind: Counter[str]() for kind in ("victim", "untouched", "loaded by background", "worsened")}
    first_of_all, began = 0, time.time()
    for seed in range(options.first, options.first + options.centres):
        with tempfile.TemporaryDirectory(prefix="iolens-bench-") as folder:
            centre = random_centre(seed, Path(folder) / "store")
            with OpenStore(centre.store) as opened:
                hour = opened.blame(centre.filesystem, busiest="1h")
                first_of_all += hour.who[0].name == centre.culprit_job_id
                for kind, job in asked(centre).items():
                    verdicts[kind][explanation(opened, job).verdict] += 1
    print(f"{options.centres} random centres, {time.time() - began:.0f} s")
    print(f"  blame of the busiest hour names the culprit first: {first_of_all}")
    for kind, counts in verdicts.items():
        said = ", ".join(f"{verdict} {count}" for verdict, count in counts.most_common())
        print(f"  explain of a run that is {kind}: {said}")


def asked(centre: RandomCentre) -> dict[str, str]:
    """A job of each kind, drawn by the centre's number."""
    chance = random.Random(centre.seed)
    jobs = {
        "victim": chance.choice(centre.victims),
        "untouched": chance.choice(centre.untouched),
        "worsened": centre.worsened,
    }
    return jobs | ({"loaded by background": chance.choice(centre.loaded)} if centre.loaded else {})


if __name__ == "__main__":
    main()
