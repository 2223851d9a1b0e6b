"""Before a sweep writes anything: is this a disk, is there space, is nobody using it, can memory be kept out of it."""

from __future__ import annotations

import mmap
import os
import shutil
import stat
import uuid
from pathlib import Path
from typing import Final

from iolens.benchmarks.device_counters import memory_bytes, mounted_kind, users_of_device
from iolens.benchmarks.sweep import Plan
from iolens.errors import UsageError
from iolens.units import MIB, format_bytes

IN_MEMORY: Final = ("tmpfs", "ramfs")
MARGIN_SHARE: Final = 0.1
MARGIN_BYTES: Final = 64 * MIB


def check_plan(plan: Plan, destroy_data: bool, root: Path = Path("/")) -> list[str]:
    """Refuse what would harm or mislead; returns what the user should know."""
    if not plan.place.exists():
        raise UsageError(f"{plan.place}: no such directory or device")
    if max(plan.transfer_sizes) > plan.file_bytes:
        raise UsageError(f"--size {format_bytes(plan.file_bytes)} is smaller than a transfer of the sweep")
    if plan.is_device:
        _check_device(plan, destroy_data, root)
    elif plan.place.is_dir():
        _check_directory(plan, root)
    else:
        raise UsageError(f"{plan.place}: neither a directory nor a block device")
    warnings = [] if plan.direct else ["buffered I/O: the machine's memory is measured as much as the disk"]
    if (why := memory_warning(plan.file_bytes, root)) is not None:
        warnings.append(f"{why}; the fit shows whether bandwidth settles (figure asymptote)" if plan.guard else why)
    return warnings


def memory_warning(file_bytes: int, root: Path = Path("/")) -> str | None:
    """What to know of a file that memory could hold; None where it is larger."""
    memory = memory_bytes(root)
    if memory is None or file_bytes >= memory:
        return None
    return (
        f"the file ({format_bytes(file_bytes)}) is smaller than this machine's memory ({format_bytes(memory)}):"
        " a cache of that size on the way to the disk would answer instead of it"
    )


def _check_device(plan: Plan, destroy_data: bool, root: Path) -> None:
    number = plan.place.stat().st_rdev
    users = users_of_device(str(plan.place), f"{os.major(number)}:{os.minor(number)}", root)
    if users:
        raise UsageError(f"{plan.place} is in use ({'; '.join(users)}): it is not touched")
    if not destroy_data:
        raise UsageError(
            f"{plan.place} is a device: the sweep writes all over it, and everything on it is lost."
            " Say --destroy-data if that is meant"
        )
    size = device_bytes(plan.place)
    if plan.file_bytes > size:
        raise UsageError(f"{plan.place} has {format_bytes(size)}, less than --size {format_bytes(plan.file_bytes)}")


def device_bytes(device: Path) -> int:
    """Size of a block device."""
    descriptor = os.open(device, os.O_RDONLY)
    try:
        return os.lseek(descriptor, 0, os.SEEK_END)
    finally:
        os.close(descriptor)


def _check_directory(plan: Plan, root: Path) -> None:
    number = plan.place.stat().st_dev
    kind = mounted_kind(f"{os.major(number)}:{os.minor(number)}", root)
    if kind in IN_MEMORY:
        raise UsageError(f"{plan.place} is {kind}: memory, not a disk")
    free = shutil.disk_usage(plan.place).free
    margin = max(round(MARGIN_SHARE * plan.file_bytes), MARGIN_BYTES)
    if free < plan.file_bytes + margin:
        raise UsageError(
            f"{plan.place} has {format_bytes(free)} free; the sweep needs {format_bytes(plan.file_bytes)}"
            f" and leaves at least {format_bytes(margin)}: name a smaller --size"
        )
    if plan.direct and (why := direct_io_trouble(plan.place)) is not None:
        raise UsageError(
            f"{plan.place}: O_DIRECT does not work here ({why}), so memory would be measured instead of the disk;"
            " --buffered does it all the same"
        )


def direct_io_trouble(directory: Path) -> str | None:
    """Why a file here cannot be written around the page cache; None if it can."""
    path = directory / f".iolens-direct-{uuid.uuid4().hex}"
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_DIRECT, stat.S_IRUSR | stat.S_IWUSR)
        try:
            with mmap.mmap(-1, 4096) as page:  # O_DIRECT wants memory that begins at a page
                os.write(descriptor, page)
        finally:
            os.close(descriptor)
    except OSError as error:
        return error.strerror or str(error)
    finally:
        path.unlink(missing_ok=True)
    return None
