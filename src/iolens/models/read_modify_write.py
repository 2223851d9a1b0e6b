"""What writes smaller than a stripe cost (paper P, section IV.A): whole blocks, and parity with each of them."""

from __future__ import annotations

from collections.abc import Mapping


def stripe_bytes_written(size: int, data: int, parity: int, block_bytes: int) -> int:
    """Bytes that reach the drives for one aligned write of `size` bytes, if nothing is merged with its neighbours."""
    blocks = -(-size // block_bytes)
    stripes, rest = divmod(blocks, data)
    return (stripes * (data + parity) + (rest + parity if rest else 0)) * block_bytes


def read_modify_write_factor(writes: Mapping[int, float], data: int, parity: int, block_bytes: int) -> float | None:
    """Bytes that reach the drives ÷ those of full stripes, over writes by size; None without any.

    An upper estimate: a write-back cache that fills stripes brings it down to 1.
    """
    ideal = sum(count * size for size, count in writes.items()) * (data + parity) / data
    written = sum(count * stripe_bytes_written(size, data, parity, block_bytes) for size, count in writes.items())
    return written / ideal if ideal else None
