"""How the store knows the segments of one agent's run: as one stream with a sequence, not as a batch each.

Every table keeps a mark for each batch it has. 500 agents make 144,000 segments a day, and looking for a mark takes
longer the more there are (25 ms among 144,000); a stream has one mark, which moves on. It tells only what came in
order: a segment that comes after a later one, or that was begun as a batch of its own, is loaded as such a batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from deltalake import DeltaTable

from iolens.agent.sampling.segment_loading import OfferedSegment
from iolens.records import Capture
from iolens.sources.spool import SegmentHeader
from iolens.store.duckdb_engine import query
from iolens.store.store import Store
from iolens.store.tables import PARTS_PER_SEQUENCE


def stream_of(header: SegmentHeader) -> str:
    """The identity that all segments of an agent's run share."""
    return f"agent/{header.host}/{header.run}"


@dataclass(slots=True)
class StreamMarks:
    """What the store knows of streams before a batch is loaded."""

    store: Store
    baselines: DeltaTable | None
    batches: DeltaTable | None
    _reached: dict[str, int] = field(default_factory=dict)  # by stream: the last segment that was begun

    @classmethod
    def of(cls, store: Store) -> StreamMarks:
        """As the tables are now."""
        return cls(store, store.tables.load("baselines"), store.tables.load("batches"))

    def capture(self, segment: OfferedSegment) -> Capture:
        """A segment under the identity that it was begun with, or else that of its stream."""
        header, own = segment.segment.header, segment.capture()
        if header.run.isdecimal() or self._is_begun_alone(own.identity):  # a number would be taken for that of a piece
            return own
        stream = stream_of(header)
        if header.sequence <= self._last(stream) and not self._is_in_stream(stream, header.sequence):
            return own
        return replace(own, identity=stream, sequence=header.sequence)

    def _is_begun_alone(self, identity: str) -> bool:
        return _version(self.baselines, identity) >= 0 or _version(self.batches, f"{identity}/complete") >= 0

    def _last(self, stream: str) -> int:
        if stream not in self._reached:
            claimed = _version(self.baselines, stream) // PARTS_PER_SEQUENCE
            self._reached[stream] = max(claimed, _version(self.batches, f"{stream}/complete"))
        return self._reached[stream]

    def _is_in_stream(self, stream: str, sequence: int) -> bool:
        """Whether the tables have, or expect, this very segment."""
        first = sequence * PARTS_PER_SEQUENCE
        sql = "SELECT count(*) FROM stored WHERE batch = ? AND part BETWEEN ? AND ?"
        values = [stream, first, first + PARTS_PER_SEQUENCE - 1]
        named = (("batches", self.batches), ("baselines", self.baselines))
        return any(
            handle is not None and query(self.store.tables, handle, name, sql, values)[0][0] for name, handle in named
        )


def _version(handle: DeltaTable | None, identity: str) -> int:
    """The highest number that a table has under an identity, -1 for none."""
    version = None if handle is None else handle.transaction_version(identity)
    return -1 if version is None else version
