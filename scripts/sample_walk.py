"""The walk of one number of a Lustre sample from the captured file to the report, function by function.

`python scripts/sample_walk.py` makes a capture of three OSTs with two samples, loads it, asks for its utilization as
JSON, and prints every function of iolens that the bytes written to one OST pass: each that is given them as an
argument, or returns or yields them, be it in a text, a record, a list, a mapping or an array. Each function counts
once, where the number first comes to it. Comprehensions and lambdas are part of their function; an object that has the
number and is only asked for something (`self`), an open stream and a function are not looked into.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import iolens
from iolens.cli.main import iolens as command

PACKAGE = str(Path(iolens.__file__).parent)
SECONDS = 5
BEFORE = 1_000_003_000_017
MOVED = {"scratch-OST0000": 61_000_000_007, "scratch-OST0001": 77_003_000_019, "scratch-OST0002": 93_000_000_011}
FOLLOWED = "scratch-OST0001"  # neither the smallest nor the largest of its column, which file statistics repeat
DATUM = (BEFORE + MOVED[FOLLOWED], MOVED[FOLLOWED], MOVED[FOLLOWED] / SECONDS, sum(MOVED.values()))
"""The number as counted, as moved in the interval, as a rate, and within the sum over all OSTs."""
TEXTS = tuple(form for number in DATUM for form in (str(number), str(float(number))))
DEEPEST = 8
VARIADIC = 4  # flag of a function with *arguments


def capture() -> str:
    """Two samples of three OSTs, as `lctl get_param` prints them."""
    return "".join(
        f"obdfilter.{target}.stats=\nsnapshot_time             {1_700_000_000 + second}.000000000 secs.nsecs\n"
        f"write_bytes               {10 + second} samples [bytes] 4096 1048576 {BEFORE + moved * (second // SECONDS)}\n"
        f"osd-ldiskfs.{target}.brw_stats=\n"
        f"snapshot_time:         {1_700_000_000 + second}.000000000 secs.nsecs\n\n"
        "                           read      |     write\n"
        "disk I/O size          ios   % cum % |  ios         % cum %\n"
        f"1M:                      0   0   0   |  {10 + second}   100 100\n"
        for second in (0, SECONDS)
        for target, moved in MOVED.items()
    )


def holds(value: Any, depth: int = 0) -> bool:
    """Whether the number is in a value."""
    if isinstance(value, bool | type(None)):
        return False
    if isinstance(value, int | float):
        return value in DATUM
    if isinstance(value, bytes | str):
        text = value.decode("ascii", "replace") if isinstance(value, bytes) else value
        return any(form in text for form in TEXTS)
    if depth > DEEPEST:
        return False
    return any(holds(part, depth + 1) for part in _parts(value))


def _parts(value: Any) -> list[Any]:
    """What a container, record or array is made of."""
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, tuple | list | set | frozenset):
        return list(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    kind = type(value).__module__.partition(".")[0]
    if kind == "numpy" and hasattr(value, "tolist"):
        return list(value.tolist()) if value.ndim else [value.item()]
    if kind == "pyarrow" and hasattr(value, "to_pylist"):
        return list(value.to_pylist())
    return [value.to_native()] if kind == "narwhals" and hasattr(value, "to_native") else []


class Walk:
    """The functions that the number passes, in order."""

    def __init__(self) -> None:
        self.hops: dict[tuple[str, str], None] = {}

    def profile(self, frame: FrameType, event: str, value: object) -> None:
        """What the interpreter calls at each call and return."""
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(PACKAGE):
            return
        hop = (code.co_filename[len(PACKAGE) + 1 :], code.co_qualname)
        if hop in self.hops or code.co_name.startswith("<"):
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & VARIADIC)]
        given = [frame.f_locals.get(name) for name in names if name not in ("self", "cls")]
        if any(map(holds, given if event == "call" else [value])):
            self.hops[hop] = None

    def run(self, *arguments: object) -> str:
        """One command in this process; what it prints."""
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
            sys.setprofile(self.profile)
            try:
                command.main([str(argument) for argument in arguments], standalone_mode=False)
            finally:
                sys.setprofile(None)
        return out.getvalue()


def walk() -> list[tuple[str, str]]:
    """Module and name of every function passed."""
    done = Walk()
    with tempfile.TemporaryDirectory() as folder:
        file, store = Path(folder) / "capture.txt", Path(folder) / "store"
        file.write_text(capture())
        done.run("ingest", "lustre-lctl", file, "--store", store, "--workers", 1)
        report = done.run("utilization", "--store", store, "--format", "json")
    if not holds(report):
        raise SystemExit("the number is not in the report")
    return list(done.hops)


def main() -> None:
    """Print the walk."""
    hops = walk()
    for number, (module, name) in enumerate(hops, 1):
        print(f"{number:3} {module.removesuffix('.py').replace('/', '.')}.{name}")


if __name__ == "__main__":
    main()
