"""Kill checks of alerts at random times and count what a receiver got: nothing lost, nothing twice under another id.

    python -m bench.alerts_soak [KILLS [SEED]]

One target of a small store falls silent and comes back, again and again in simulated time. Each check runs in a process
of its own, is killed with SIGKILL at a random time, and is run again; two run at once now and then. A command takes the
notifications. At the end each occurrence must have one `firing` and one `resolved`; a kill between a delivery and its
mark may repeat a delivery, and those are counted.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.alerts.centres import END, Centre, minute, rule, silent

KILLS, SEED = 200, 1
SECONDS = 1.5  # a whole check takes about one
LONGER = 1.5  # after each kill, so that it ends on a busy machine too
TAKE = 'import json, sys; open(sys.argv[1], "a").write(json.load(sys.stdin)["id"] + "\\n")'
TIMES = (70, 80, 100, END + 10)  # of a round: still fine, silent, silent, back


def check(centre: Centre, number: int) -> subprocess.Popen[bytes]:
    """One check, as of the minute of a round."""
    words = (
        "--store",
        centre.store,
        "--state",
        centre.state,
        "--config",
        centre.config,
        "--now",
        minute(number).isoformat(),
    )
    command = [sys.executable, "-m", "iolens.cli.main", "alerts", "check", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def killed(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether it had to be killed."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True
    return False


def main() -> None:
    """Run, and print one line of JSON; exit 1 where anything was lost or sent twice under another id."""
    kills, seed = (int(text) for text in (*sys.argv[1:], *map(str, (KILLS, SEED)[len(sys.argv) - 1 :])))
    chance, began, done = random.Random(seed), time.monotonic(), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        taken, script = Path(folder) / "taken", Path(folder) / "take.py"
        script.write_text(TAKE)
        argv = json.dumps([sys.executable, str(script), str(taken)])
        receiver = f'\n[[alerts.receivers]]\nname = "c"\nkind = "command"\nargv = {argv}\n'
        centre = Centre(Path(folder), silent(), rule("dead-target") + receiver)
        while done["kills"] < kills:
            done["rounds"] += 1
            state = centre.state
            for number in TIMES:
                longest = SECONDS
                while killed(check(centre, number), chance.uniform(0.2, longest)):
                    done["kills"] += 1
                    longest *= LONGER
                if chance.random() < 0.1:
                    pair = [check(centre, number) for _ in range(2)]
                    done["pairs"] += all(process.wait() in (0, 4) for process in pair)
            centre.state = state.with_name(f"state{done['rounds']}")
        ids = Counter(taken.read_text().split())
    by_event = Counter(name.rpartition("-")[2] for name in ids)
    repeated = sum(ids.values()) - len(ids)
    result = {**done, "firing": by_event["firing"], "resolved": by_event["resolved"], "repeated": repeated,
              "seconds": round(time.monotonic() - began, 1)}  # fmt: skip
    print(json.dumps(result))
    sys.exit(by_event != {"firing": done["rounds"], "resolved": done["rounds"]})


if __name__ == "__main__":
    main()
