"""Programs that stand in for fio and IOR: they answer as the real ones print, from a simulated device.

The stand-in for fio also moves the counters of a pretended Lustre target, so that a sweep can be observed. Asked for
all sizes at once, the device takes a quarter longer than its I/Os would take one by one: it is full at an FSU of 80.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from iolens.models.transaction_time import GRACE_2012
from tests.simulator.device import SimulatedDevice

FIO = """#!{python} -S
import json, os, sys, time

options = dict(word[2:].partition("=")[::2] for word in sys.argv[1:])
with open({log!r}, "a") as log:
    log.write(json.dumps(options) + "\\n")
if os.path.exists({log!r} + ".hold") and len(open({log!r}).readlines()) > int(open({log!r} + ".hold").read()):
    time.sleep(3600)  # until it is killed
name, size = options["filename"], int(options["size"])
if options["rw"] == "write":
    open(name, "wb").truncate(size)
    print(json.dumps({{"fio version": "fio-3.40", "jobs": []}}))
    sys.exit(0)
answers = json.load(open({answers!r}))
if options["rw"] == "randrw":
    sizes = [word.removesuffix("/") for word in options["bssplit"].split(":")]
    rows = [answers[way + size] for way in ("read", "write") for size in sizes]
else:
    rows = [answers[options["rw"].removeprefix("rand") + options["bs"]]]
state = {state!r}
counts = json.load(open(state))
for row in rows:
    for bin_, count in json.loads(row["device_sizes"]).items():
        counts[row["direction"]][bin_] = counts[row["direction"]].get(bin_, 0) + count
json.dump(counts, open(state, "w"))
lines = []
for power in range(3, 27):
    label = 1 << power
    text = f"{{label >> 20}}M" if label >= 1 << 20 else f"{{label >> 10}}K" if label >= 1024 else str(label)
    reads, writes = (counts[way].get(str(label), 0) for way in ("read", "write"))
    lines.append(f"{{text}}:  {{reads}}  0 100 | {{writes}} 0 100\\n")
open({brw!r}, "w").write(
    "snapshot_time: 1700000000.1 (secs.usecs)\\n\\n    read | write\\n"
    "disk I/O size   ios % cum % | ios % cum %\\n" + "".join(lines) + "\\n")
seconds = sum(row["duration_s"] for row in rows) * (1.25 if options["rw"] == "randrw" else 1)
def side(way):
    mine = [row for row in rows if row["direction"] == way]
    moved = sum(row["bytes"] for row in mine)
    return {{"io_bytes": moved, "io_kbytes": moved >> 10, "bw_bytes": 1, "iops": 1.0,
            "runtime": seconds * 1000 if mine else 0, "total_ios": sum(row["operations"] for row in mine)}}
job = {{"jobname": "iolens", "groupid": 0, "error": 0, "job options": options, "read": side("read"),
       "write": side("write")}}
print(json.dumps({{"fio version": "fio-3.40", "timestamp_ms": time.time_ns() // 10**6, "jobs": [job]}}, indent=1))
"""

IOR = '''#!{python}
import sys
words = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(" ".join(words) + "\\n")
value = lambda name: words[words.index(name) + 1]
if "-D" not in words:
    open(value("-o"), "wb").close()
block, transfer = int(value("-b")), int(value("-t"))
if "-z" in words and (block == transfer or ("-C" in words and "-F" not in words)):
    sys.exit("ERROR: random offsets with one transfer, or with -C in a shared file, (ior.c:1536)")
access = "write" if "-w" in words else "read"
seconds = 2 * block / transfer * (1.04e-3 + 1.73e-9 * transfer)
rate = 2 * block / seconds / 2**20
print(f"""IOR-4.0.0: MPI Coordinated Test of Parallel I/O
Began               : Tue Mar  3 11:00:00 2026
Command line        : ior {{" ".join(words)}}
TestID              : 0
StartTime           : Tue Mar  3 11:00:00 2026
api                 : POSIX
access              : single-shared-file
segments            : 1
ordering in a file  : {{"random" if "-z" in words else "sequential"}}
nodes               : 1
tasks               : 2
repetitions         : 1
xfersize            : {{transfer}} bytes
blocksize           : {{block}} bytes

access    bw(MiB/s)  IOPS  Latency(s)  block(KiB) xfer(KiB)  open(s)  wr/rd(s)  close(s)  total(s)  iter
{{access}} {{rate:.4f}} 1.0 0.1 {{block // 1024}} {{transfer / 1024}} 0.1 0.1 0.1 {{seconds:.6f}} 0
Finished            : Tue Mar  3 11:00:09 2026
""")
'''


def put_fio(folder: Path, *, read_ahead: bool = False) -> None:
    """`fio` in `folder`, and the tree of a Lustre server with one target in `folder/lustre`."""
    target = folder / "lustre/proc/fs/lustre/osd-ldiskfs/lake-OST0000"
    target.mkdir(parents=True)
    state = folder / "counts.json"
    state.write_text('{"read": {}, "write": {}}')
    brw = target / "brw_stats"
    brw.write_text(
        "snapshot_time: 1700000000.1 (secs.usecs)\n\n    read | write\ndisk I/O size   ios % cum % | ios % cum %\n"
        "4K:  0  0 100 | 0 0 100\n\n"
    )
    answers = folder / "answers.json"
    rows = SimulatedDevice(GRACE_2012, read_ahead=read_ahead).sweep(requested_bytes=1 << 30)
    answers.write_text(json.dumps({f"{row['direction']}{row['transfer_bytes']}": row for row in rows}))
    places = {"log": folder / "log", "state": state, "brw": brw, "answers": answers}
    script = FIO.format(python=sys.executable, **{name: str(path) for name, path in places.items()})
    _put(folder / "fio", script)


def put_ior(folder: Path) -> None:
    """`ior` and a launcher that starts it."""
    _put(folder / "ior", IOR.format(python=sys.executable, log=str(folder / "log")))
    _put(folder / "mpirun", f'#!/bin/sh\necho "mpirun $1 $2" >> {folder / "log"}\nshift 2\nexec "$@"\n')


def _put(path: Path, script: str) -> None:
    path.write_text(script)
    path.chmod(0o755)
