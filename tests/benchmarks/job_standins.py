"""A program that stands in for fio where it is given a job file: it serves what the file asks for, and logs it.

Saturating jobs run at a speed of its own; jobs with rates are served to a share, at a delay. No block is moved.
"""

from __future__ import annotations

import sys
from pathlib import Path

FIO = """#!{python} -S
import configparser, json, os, sys

job = sys.argv[-1]
parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=(";",))
parser.read_string(open(job, encoding="utf-8").read())
shared = dict(parser["global"]) if parser.has_section("global") else {{}}
with open({log!r}, "a") as log:
    log.write(os.path.basename(job) + " " + os.environ["DIR"] + "\\n")
if {fail!r} == os.path.basename(job):
    print("fio: io_u error on file: No space left on device", file=sys.stderr)
    sys.exit(1)

def side(count, size, seconds):
    return {{"io_bytes": count * size, "io_kbytes": count * size >> 10, "bw_bytes": 1, "iops": 1.0,
            "runtime": round(1000 * seconds), "total_ios": count}}

jobs = []
for number, name in enumerate(name for name in parser.sections() if name != "global"):
    options = {{**shared, **parser[name]}}
    seconds = int(options.get("runtime", "1000ms")[:-2]) / 1000
    result = {{"read": side(0, 0, 0), "write": side(0, 0, 0)}}
    if "rate_iops" not in options:
        way = options["rw"].removeprefix("rand")
        if name == "layout":
            with open(os.path.join(os.environ["DIR"].replace("\\\\:", ":"), "iolens.0"), "wb"):
                pass
        result[way] = side(round({ops} * seconds), int(options["bs"]), seconds)
    else:
        ways = ["read", "write"] if options["rw"] == "randrw" else [options["rw"].removeprefix("rand")]
        with open(options["write_lat_log"] + "_lat.%d.log" % (number + 1), "w") as log:
            for way, rate, split in zip(ways, options["rate_iops"].split(","), options["bssplit"].split(",")):
                count, moved = round(int(rate) * int(options["numjobs"]) * seconds * {served}), 0
                pairs = [tuple(map(int, pair.split("/"))) for pair in split.split(":")]
                sizes = [size for size, percent in pairs for _ in range(percent)]
                for place in range(count):
                    size = sizes[place * 37 % 100]
                    moved += size
                    log.write("%d, %d, %d, %d, 0, 0\\n" % (place, {delay_ns}, ["read", "write"].index(way), size))
                result[way] = side(count, 1, seconds)
                result[way]["io_bytes"] = moved
                result[way]["io_kbytes"] = moved >> 10
    jobs.append({{"jobname": name, "groupid": 0, "error": 0, "job options": options, **result}})
print(json.dumps({{"fio version": "fio-3.40", "timestamp_ms": 1700000000000, "jobs": jobs}}, indent=1))
"""


def put_job_fio(
    folder: Path, *, ops: float = 10_000.0, served: float = 1.0, delay_s: float = 0.001, fail: str = ""
) -> Path:
    """`fio` in `folder`; returns its list of calls: job files and directories. `fail` is a job that it fails at."""
    log = folder / "fio-calls"
    script = FIO.format(
        python=sys.executable, log=str(log), ops=ops, served=served, delay_ns=round(delay_s * 1e9), fail=fail
    )
    path = folder / "fio"
    path.write_text(script, "utf-8")
    path.chmod(0o755)
    return log
