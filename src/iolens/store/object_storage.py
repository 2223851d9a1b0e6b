"""Files on object storage as Arrow sees them, through delta-rs, which knows the addresses and credentials."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake.fs import DeltaStorageHandler


class _TakesBuffers:
    """An output stream that is given Arrow's buffers and hands on bytes: delta-rs takes nothing else."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, content: Any) -> int:
        written: int = self._stream.write(bytes(content))
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Handler(DeltaStorageHandler):
    def open_output_stream(self, path: str, metadata: dict[str, str] | None = None) -> pa.PythonFile:
        return pa.PythonFile(_TakesBuffers(self._handler.open_output_stream(path, metadata)))


def arrow_filesystem(url: str) -> pafs.PyFileSystem:
    """An Arrow file system rooted at an address."""
    return pafs.PyFileSystem(_Handler(url))
