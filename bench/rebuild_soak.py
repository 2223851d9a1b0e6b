"""`make soak`, the part of rebuilds: random histories with clock steps, resets, late segments and kills, and a model.

`python -m bench.rebuild_soak --histories 40` plays so many of each kind; an assertion fails when a byte is invented,
when a rebuild lowers what moved, or when something that is known is missing.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import pytest
from tests.store.test_rebuild_model import KINDS, check_history


def main() -> None:
    """Play them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1000)
    options = parser.parse_args()
    for name, kind in KINDS.items():
        for seed in range(options.seed, options.seed + options.histories):
            with tempfile.TemporaryDirectory(prefix="iolens-soak-") as folder, pytest.MonkeyPatch.context() as patch:
                check_history(Path(folder), patch, kind, seed)
        print(f"{options.histories} histories of {name}: sums are true", flush=True)


if __name__ == "__main__":
    main()
