"""The commands of IOR for parameters: what is only read is written first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from iolens.benchmarks.ior_command import IorCommand
from iolens.models.ior_parameters import IorParameters

SHOWN_FILE: Final = Path("DIR/data")  # where a reader puts his own directory


def ior_commands(parameters: IorParameters, file: Path = SHOWN_FILE) -> list[IorCommand]:
    """One command, or two: files that were there before the job are written, and kept, before they are read."""
    command = IorCommand(
        file=file,
        api=parameters.api,
        tasks=parameters.tasks,
        transfer_bytes=parameters.transfer_bytes,
        block_bytes=parameters.block_bytes,
        segments=parameters.segments,
        file_per_process=parameters.file_per_process,
        collective=parameters.collective,
        random=parameters.random,
        fsync=parameters.fsync,
        reorder=parameters.reorder,
        write=parameters.write,
        read=parameters.read,
        keep=not parameters.write and parameters.repetitions > 1,  # IOR removes what it has read, before the next
        repetitions=parameters.repetitions,
    )
    if parameters.write:
        return [command]
    before = replace(command, write=True, read=False, random=False, fsync=True, keep=True, repetitions=1)
    return [before, command]
