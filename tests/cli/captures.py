"""Made-up `lctl get_param` captures with known counts."""

from __future__ import annotations

T0 = 1_700_000_000
LABELS = {4096 << power: f"{4 << power}K" if power < 8 else "1M" for power in range(9)}


def snapshot(
    second: float, ios: dict[tuple[str, int], int], *, target: str = "scratch-OST0000", start: int = T0 - 100
) -> str:
    """`obdfilter.*.stats` and `osd-ldiskfs.*.brw_stats` of one OST: I/Os by direction and size, cumulative."""
    clock = (
        f"snapshot_time:         {T0 + second:.9f} secs.nsecs\nstart_time:            {start}.000000000 secs.nsecs\n"
    )
    lines = []
    for direction in ("read", "write"):
        count = sum(number for (item, _), number in ios.items() if item == direction)
        moved = sum(number * size for (item, size), number in ios.items() if item == direction)
        if count:
            lines.append(f"{direction}_bytes               {count} samples [bytes] 4096 1048576 {moved}\n")
    rows = "".join(
        f"{label}:\t\t{ios.get(('read', size), 0):>9}   0   0   | {ios.get(('write', size), 0):>6}   0   0\n"
        for size, label in LABELS.items()
    )
    return (
        f"obdfilter.{target}.stats=\n{clock.replace('time:', 'time ')}{''.join(lines)}"
        f"osd-ldiskfs.{target}.brw_stats=\n{clock}\n                           read      |     write\n"
        f"disk I/O size          ios   % cum % |  ios         % cum %\n{rows}"
    )
