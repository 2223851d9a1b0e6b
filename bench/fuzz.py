"""`make soak`, the sources' part: thousands of damaged files per source, and long lines in each of its formats.

`python -m bench.fuzz --mutations 10000` exits non-zero when one ends in a traceback, a hang, an impossible value or the
loss of a row of the whole file beside it. `--first` begins at another mutation; a fault names its own again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.long_inputs import faults_of_long_inputs
from tests.fuzz.runs import run_source

from iolens.sources import source_names

LONG_BYTES = 1_000_000  # just below the longest line that is read


def main() -> None:
    """Every source, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=10_000, help="per source")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("sources", nargs="*", default=source_names())
    options = parser.parse_args()
    faults = 0
    for source in options.sources:
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="iolens-fuzz-") as folder:
            report = run_source(source, options.mutations, Path(folder) / "mutations", options.first)
            result = [str(fault) for fault in report.faults]
            result += faults_of_long_inputs(source, LONG_BYTES, Path(folder) / "long")
        faults += len(result)
        seconds = time.monotonic() - began
        print(f"{source}: {report.mutations} mutations, {report.beside} beside a whole file, long inputs of "
              f"{LONG_BYTES} bytes, {len(result)} faults, {seconds:.0f} s", flush=True)  # fmt: skip
        for fault in result:
            print(f"  {fault}", flush=True)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
