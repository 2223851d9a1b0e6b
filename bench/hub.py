"""500 agents and one hub: `python -m bench.hub` prints what is accepted and stored, what it costs, and the lag.

A simulated server of 8 OSTs is sampled every 5 s by the real sampler; 500 agents send the same for OSTs of their own, a
segment every five minutes each, spread over that time, through the real client to a real server. Segments are made
before the clock runs. `--burst` sends everything as fast as the hub takes it.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tests.hub.served_hub import ServedHub

from iolens.agent.sampling.hub_client import TOKEN_VARIABLE
from iolens.agent.sampling.pushing import push_spool
from iolens.agent.sampling.sampler import Health, Sampler
from iolens.agent.sampling.spool import Spool
from iolens.hub.takeovers import WriterRecord
from iolens.records import Item, Row, Sample
from iolens.schema import TABLES
from iolens.simulator.lustre_tree import Tree
from iolens.simulator.workload import load_workload
from iolens.sources.spool import (
    SegmentHeader,
    Tick,
    decode_tick,
    encode_header,
    encode_tick,
    in_lines,
    lines_without_header,
)
from iolens.store.store import Store

TICK_S = 5
OSTS = 8
SEGMENT_TICKS = 60
AGENTS_PER_FILESYSTEM = 50
OST = re.compile(r"[A-Za-z0-9]+-OST([0-9a-f]{4})")


def main() -> None:
    """Make segments, send them, and print figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=500)
    parser.add_argument("--segments", type=int, default=3, help="of each agent, five minutes each")
    parser.add_argument("--senders", type=int, default=8, help="threads that send")
    parser.add_argument("--burst", action="store_true", help="as fast as the hub takes it")
    options = parser.parse_args()
    os.environ[TOKEN_VARIABLE] = "agent"
    with tempfile.TemporaryDirectory(prefix="iolens-hub-", dir=os.environ.get("BENCH_DIR")) as name:
        folder = Path(name)
        print(f"{options.agents} agents × {OSTS} OSTs every {TICK_S} s, a segment every {SEGMENT_TICKS * TICK_S} s",
              flush=True)  # fmt: skip
        made = make_spools(folder, options.agents, options.segments)
        print(made, flush=True)
        with ServedHub(folder / "state", folder / "store") as hub:
            run(hub, folder, options)


def make_spools(folder: Path, agents: int, segments: int) -> str:
    """A spool for each agent with its segments, which the clock of the run brings into play one after the other."""
    pieces = list(sampled_pieces(folder / "root", segments))
    size = samples = 0
    for agent in range(agents):
        spool = folder / "spools" / f"oss{agent:03d}"
        spool.mkdir(parents=True, mode=0o700)
        for sequence, ticks in enumerate(pieces, 1):
            header = SegmentHeader(spool.name, "20260105T000000.000000-00000000", sequence)
            own = [Tick(tick.time_us, [of_agent(item, agent) for item in tick.items]) for tick in ticks]
            lines = (encode_tick(Tick(tick.time_us, part)) for tick in own for part in in_lines(tick.items))
            content = encode_header(header) + b"".join(lines)
            (spool / f"{header.stem}.later").write_bytes(content)
            size += len(content)
            samples += sum(isinstance(item, Sample) for tick in own for item in tick.items)
    count = agents * segments
    return f"{count} segments, {size / count / 1024:.0f} KiB and {samples / count:.0f} samples each"


def sampled_pieces(root: Path, segments: int) -> Iterator[list[Tick]]:
    """What the sampler spools of one server, in pieces of one segment."""
    start_s = int(time.time()) // 300 * 300 - segments * SEGMENT_TICKS * TICK_S
    tree = Tree(root, "2.15", load_workload("scratch"), start_s=start_s, osts=OSTS, mdts=0, seed=1, uptime_s=600)
    with Spool.open(root.parent / "sampled", 64 << 30) as spool:
        sampler = Sampler(root, spool, Health(spool.host, "run"), 60_000_000)
        for segment in range(segments):
            for number in range(segment * SEGMENT_TICKS, (segment + 1) * SEGMENT_TICKS):
                tree.advance_to(start_s + number * TICK_S)
                sampler.sample(round((start_s + number * TICK_S) * 1e6))
            path = spool.close_segment()
            assert path is not None
            yield [decode_tick(line.payload) for line in lines_without_header(path) if line.payload is not None]


def of_agent(item: Item, agent: int) -> Item:
    """The same of the OSTs of another server, in one of several file systems."""
    filesystem = f"scratch{agent // AGENTS_PER_FILESYSTEM}"
    first = agent % AGENTS_PER_FILESYSTEM * OSTS
    if isinstance(item, Sample):
        return replace(item, filesystem=filesystem, target=_renamed(item.target, filesystem, first))
    if isinstance(item, Row):
        values = dict(item.values)
        if "filesystem" in values:
            values["filesystem"] = filesystem
        for column in ("target", "server", "host"):
            if isinstance(values.get(column), str):
                values[column] = _renamed(str(values[column]), filesystem, first)
        return Row(item.table, values)
    return item


def _renamed(target: str, filesystem: str, first: int) -> str:
    """OST numbers go on where those of the server before end; all other names get a number of their own."""
    if OST.search(target) is None:
        return f"{target}-{filesystem}-{first}"
    return OST.sub(lambda match: f"{filesystem}-OST{int(match[1], 16) + first:04x}", target)


def run(hub: ServedHub, folder: Path, options: argparse.Namespace) -> None:
    """Send every segment at its time, wait until all are stored, and say how it went."""
    chance = random.Random(1)
    spools = sorted((folder / "spools").iterdir())
    span_s = SEGMENT_TICKS * TICK_S
    schedule = sorted(
        (0.0 if options.burst else (sequence + chance.random()) * span_s, sequence, spool)
        for spool in spools
        for sequence in range(options.segments)
    )
    began = time.monotonic()
    with ThreadPoolExecutor(options.senders) as senders:
        pushes = []
        lags: list[float] = [0.0]
        peaks: list[float] = []
        for at, _, spool in schedule:
            time.sleep(max(began + at - time.monotonic(), 0.0))
            path = sorted(spool.glob("*.later"))[0]
            path.rename(path.with_suffix(".seg"))
            pushes.append(senders.submit(push_spool, spool, hub.address))
            if len(pushes) % 10 == 0:
                lags.append(hub.now().oldest_waiting_s or 0.0)
                peaks.append(peak_mib(WriterRecord.read(hub.state / "hub").pid))
        done = [push.result() for push in pushes]
    accepted_s = time.monotonic() - began
    errors = sum(bool(shipment.error) for shipment in done)
    state = hub.wait_until_stored(1200.0)
    stored_s = time.monotonic() - began
    peaks.append(peak_mib(WriterRecord.read(hub.state / "hub").pid))
    print_figures(hub, options, accepted_s, stored_s, (max(lags), max(peaks)), errors)
    assert state.writer.segments == len(schedule), state.writer


def print_figures(
    hub: ServedHub,
    options: argparse.Namespace,
    accepted_s: float,
    stored_s: float,
    worst: tuple[float, float],  # lag in seconds, memory of the writer in MiB
    errors: int,
) -> None:
    """In one table, after all is stored."""
    record = WriterRecord.read(hub.state / "hub")
    segments, server = options.agents * options.segments, hub.process
    assert server is not None
    handles = [Store(hub.store).tables.load(name) for name in TABLES]
    commits = sum(handle.version() for handle in handles if handle is not None)
    target_samples = segments * SEGMENT_TICKS * OSTS
    print(f"accepted  {segments / accepted_s:8.1f} segments/s {target_samples / accepted_s:8.0f} OST samples/s"
          f" {record.samples / accepted_s:8.0f} samples/s of all tables, {errors} refused")  # fmt: skip
    print(f"stored    {record.rows / stored_s:8.0f} rows/s, {record.rows} rows in {stored_s:.0f} s,"
          f" {stored_s - accepted_s:.0f} s after the last was accepted")  # fmt: skip
    print(f"commits   {commits / stored_s * 60:8.1f} a minute over all tables, {record.batches} batches")
    print(f"writer    {cpu_s(hub, 'writer') / stored_s:8.2f} of a core, {worst[1]:.0f} MiB at most")
    print(f"server    {cpu_s(hub, 'server') / stored_s:8.2f} of a core, {peak_mib(server.pid):.0f} MiB at most")
    print(f"lag       {worst[0]:8.1f} s at most from arrival to the store")
    print(datetime.now(UTC).isoformat(timespec="seconds"))


def cpu_s(hub: ServedHub, which: str) -> float:
    """Processor time; that of the writer includes writers that were replaced."""
    assert hub.process is not None
    fields = Path(f"/proc/{hub.process.pid}/stat").read_text().rpartition(")")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    own, waited = (int(fields[11]) + int(fields[12])) / ticks, (int(fields[13]) + int(fields[14])) / ticks
    if which == "server":
        return own
    try:
        fields = Path(f"/proc/{WriterRecord.read(hub.state / 'hub').pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:  # just replaced
        return waited
    return waited + (int(fields[11]) + int(fields[12])) / ticks


def peak_mib(pid: int) -> float:
    """The largest resident memory of a process."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return 0.0
    peak = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")]  # none of one that ended
    return max(peak, default=0) / 1024


if __name__ == "__main__":
    main()
