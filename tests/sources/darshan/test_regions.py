"""Modules that are unpacked here hold what the library reads of them, record by record."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest

from iolens.errors import InputError
from iolens.sources.darshan.head import PackedLog, Region
from iolens.sources.darshan.heat import STORED_HEATMAP, HeatmapBuffer
from iolens.sources.darshan.log import RECORDED, Reading, RecordBuffer, layout_of, opened
from tests.sources.darshan import LOGS
from tests.sources.darshan.conftest import EVERY_LOG, label
from tests.sources.darshan.log_copies import SplitLog
from tests.sources.darshan.test_damage import POSIX, flipped
from tests.sources.darshan.test_pydarshan import REFUSED


@pytest.mark.parametrize("path", [path for path in EVERY_LOG if path.name not in REFUSED], ids=label)
def test_as_the_library_reads_it(path: Path) -> None:
    with opened(path, str(path)) as log:
        names = log.head("").names
        for module in log.index.modules:
            records = None if log.index.swapped else log.packed.records(module.region)
            if records is None:
                continue
            if module.name in RECORDED and layout_of(module.name).is_stored(module.version):
                here, library = RecordBuffer(layout_of(module.name)), RecordBuffer(layout_of(module.name))
                assert here.take(records, 0)
                assert library.read(log.handle or 0, 0) is Reading.WHOLE
                assert here.records.tobytes() == library.records.tobytes(), module.name
            if module.name == "HEATMAP" and module.version == STORED_HEATMAP:
                own, other = HeatmapBuffer(), HeatmapBuffer()
                assert own.take(records, 0, names)
                assert other.read(log.handle or 0, module.number, 0, names)
                assert np.array_equal(own.bins, other.bins)
                assert own.known == other.known


@pytest.mark.parametrize("length", [1, 100, 40_000, 500_000])
def test_packed_streams_one_after_the_other(length: int) -> None:
    """As many ranks write them: short ones, and longer ones than are unpacked at once."""
    parts = [np.random.default_rng(seed).bytes(length) for seed in range(5)]
    content = b"".join(map(zlib.compress, parts))
    packed = PackedLog(content, 0, "log")
    assert packed.inflated(Region(0, len(content)), "names", 1 << 30) == b"".join(parts)
    assert packed.inflated(Region(0, len(content)), "names", length + 1) == b"".join(parts)[: length + 1]
    with pytest.raises(InputError, match="its names break off"):
        packed.inflated(Region(0, len(content) - 1), "names", 1 << 30)


def test_current_versions_are_unpacked_here() -> None:
    """Otherwise the comparison above compares nothing."""
    path = LOGS / "nn-mpiio.darshan"
    with opened(path, str(path)) as log:
        stored = {m.name for m in log.index.modules if m.name in RECORDED and layout_of(m.name).is_stored(m.version)}
    assert stored == {"POSIX", "STDIO", "MPI-IO"}


def test_a_damaged_module_is_left_to_the_library() -> None:
    content = flipped(LOGS / "n1-write.darshan", POSIX)
    offset, length = SplitLog.of(content).maps[2 * POSIX : 2 * POSIX + 2]
    whole = (LOGS / "n1-write.darshan").read_bytes()
    packed = [PackedLog(octets, 0, "log") for octets in (whole, content, whole[: offset + length - 1])]
    read = [log.records(Region(offset, length)) for log in packed]
    assert read[0] is not None
    assert len(read[0]) == layout_of("POSIX").dtype.itemsize
    assert read[1:] == [None, None]
