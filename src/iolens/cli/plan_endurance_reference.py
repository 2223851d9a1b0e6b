"""What the store knows of the reference system, for `iolens plan endurance`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from iolens.errors import UsageError

if TYPE_CHECKING:
    from iolens.analyses.daily_writes import SystemCapacity
    from iolens.analyses.drive_waf import DriveWafs
    from iolens.notebook import OpenStore
    from iolens.plans.endurance import FileSystemWrites


@dataclass(slots=True)
class Reference:
    """What the store knows, asked for only when a case needs it, and once."""

    opening: tuple[str | None, str | None, str | None]
    filesystem: str | None
    where: Mapping[str, Any]
    capacity: int | None
    min_coverage: float
    drives_of: str | None
    found: dict[str, Any] = field(default_factory=dict)
    _opened: OpenStore | None = None

    def __enter__(self) -> Reference:
        return self

    def __exit__(self, *_: object) -> None:
        if self._opened is not None:
            self._opened.close()

    @property
    def opened(self) -> OpenStore:
        """The store, opened when first needed."""
        if self._opened is None:
            from iolens.notebook import OpenStore

            url, engine, config = self.opening
            self._opened = OpenStore(url, engine=engine, config=config)
        return self._opened

    def name(self) -> str:
        """The file system that is looked at."""
        if "filesystem" not in self.found:
            self.found["filesystem"] = self.opened.store.select(self.filesystem).filesystem
        return str(self.found["filesystem"])

    def system_capacity(self) -> SystemCapacity:
        """Its capacity, as given or as read."""
        from iolens.analyses.daily_writes import SystemCapacity, system_capacity

        if "capacity" not in self.found:
            if self.capacity is not None:
                self.found["capacity"] = SystemCapacity(self.capacity, "option --capacity")
            else:
                window = {name: self.where[name] for name in ("since", "until")}
                self.found["capacity"] = self.opened.ask(system_capacity, self.name(), **window)
        found = self.found["capacity"]
        if found is None:
            raise UsageError(f"{self.name()}: no reading of its capacity in this window; give it with --capacity")
        assert isinstance(found, SystemCapacity)
        return found

    def writes(self) -> FileSystemWrites:
        """File-system writes per day."""
        from iolens.analyses.daily_writes import daily_writes
        from iolens.plans.endurance import file_system_writes

        if "writes" not in self.found:
            days = self.opened.ask(daily_writes, self.name(), **self.where)
            self.found["writes"] = file_system_writes(days, self.system_capacity(), self.min_coverage)
        found: FileSystemWrites = self.found["writes"]
        return found

    def drives(self) -> DriveWafs:
        """The drives that tell the write amplification."""
        from iolens.plans.endurance import write_amplification

        if "drives" not in self.found:
            self.found["drives"] = self._drives()
            self.found["waf"] = write_amplification(self.found["drives"])
        found: DriveWafs = self.found["drives"]
        return found

    def _drives(self) -> DriveWafs:
        """Those of the file system named; else its own; else those of the only one that has any."""
        from iolens.analyses.drive_waf import drive_wafs

        known = sorted(self.opened.store.targets_by_filesystem())
        own = self.drives_of or (self.filesystem if self.filesystem in known else None)
        names = [own] if own is not None else known
        if own is not None and self.drives_of is None:
            names += [name for name in known if name != own]
        found = {name: self.opened.ask(drive_wafs, name, until=self.where["until"]) for name in names}
        there = {name: one for name, one in found.items() if one is not None}
        if own is not None and own in there:
            return there[own]
        if len(there) != 1:
            told = f"there are drives of {', '.join(there)}; name one with --drives-of" if there else "give waf"
            raise UsageError(f"write amplification is not known from {self.opened.store.url}: {told}")
        return next(iter(there.values()))

    def write_sizes(self) -> dict[int, float]:
        """Disk writes by size."""
        from iolens.analyses.daily_writes import write_sizes

        if "sizes" not in self.found:
            self.found["sizes"] = self.opened.ask(write_sizes, self.name(), **self.where)
        found: dict[int, float] = self.found["sizes"]
        if not found:
            raise UsageError(f"{self.name()}: the store has no histogram of write sizes; give --rmw")
        return found
