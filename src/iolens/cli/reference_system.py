"""What the store knows of the system that a plan starts from, for every `iolens plan`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from iolens.errors import IolensError, NotKnownError
from iolens.store.scope import NARROWING, RAW, Scope

if TYPE_CHECKING:
    from datetime import date, datetime

    from iolens.analyses.contents.ages import Ages
    from iolens.analyses.contents.inode_sizes import InodeSizes
    from iolens.analyses.demand.analysis import Demand
    from iolens.analyses.demand.daily_writes import SystemCapacity, SystemUsage
    from iolens.analyses.drives.readings import DriveReadings
    from iolens.analyses.growth.analysis import Growth
    from iolens.api import OpenStore
    from iolens.cli.options import Selected
    from iolens.plans.cases import FileSystemWrites


@dataclass(slots=True)
class ReferenceSystem:
    """The store's file system, asked only for what a plan needs, and for each once.

    `opening` is the store, engine and configuration as given, `capacity` what the user says the file system holds, by
    an option of the name `capacity_option`.
    """

    opening: tuple[str | None, str | None, str | None]
    scope: Scope
    timezone: str | None = None
    capacity: int | None = None
    min_coverage: float = 95.0
    drives_of: str | None = None
    capacity_option: str = "--capacity"
    found: dict[str, Any] = field(default_factory=dict)
    _opened: OpenStore | None = None

    @classmethod
    def of(cls, asked: Selected, **told: Any) -> ReferenceSystem:
        """The one that the options select, with what else the user told of it."""
        return cls(asked.opening, asked.scope, asked.timezone, **told)

    def __enter__(self) -> ReferenceSystem:
        return self

    def __exit__(self, *_: object) -> None:
        if self._opened is not None:
            self._opened.close()

    @property
    def opened(self) -> OpenStore:
        """The store, opened when first needed."""
        if self._opened is None:
            from iolens.api import OpenStore

            url, engine, config = self.opening
            self._opened = OpenStore(url, engine=engine, config=config)
        return self._opened

    @property
    def is_named(self) -> bool:
        """Whether the user named a store or a file system, so that it is looked at even where it need not be."""
        return self.opening[0] is not None or self.scope.filesystem is not None

    @property
    def url(self) -> str | None:
        """The store that something was found in; None where there was no need, or nothing."""
        return self._opened.store.url if self._opened is not None and self.found else None

    def name(self) -> str:
        """The file system that is looked at."""
        if "filesystem" not in self.found:
            self.found["filesystem"] = self.opened.store.select(self.scope.filesystem).filesystem
        return str(self.found["filesystem"])

    def _at(self, *narrowings: str) -> Scope:
        """The file system that is looked at, with these narrowings of the scope."""
        return replace(self.scope.only(*narrowings), filesystem=self.name())

    def growth(self, method: str, cutoff: datetime | None = None) -> Growth:
        """Daily growth; days are those of the zone given, or configured."""
        try:
            growth: Growth = self.opened.analyse(
                "growth",
                self._at("since", "until", "targets", "source"),  # readings are never rolled up
                method=method,
                capacity_bytes=self.capacity,
                cutoff=cutoff.date() if cutoff is not None else None,
                timezone=self.timezone or self.opened.config.filesystem(self.name()).timezone,
            )
        except NotKnownError as error:
            raise NotKnownError(f"{error} with {self.capacity_option}") from error
        return growth

    def ages(self, clock: str) -> list[Ages]:
        """Ages of the newest scan, by the clock asked for first, then by the other; none without a scan."""
        from iolens.analyses.contents.ages import CLOCKS, ages

        selection = self.opened.store.select(self._at("until"))
        ordered = sorted(CLOCKS, key=lambda one: one != clock)
        return [one for one in (ages(selection, name) for name in ordered) if one is not None]

    def system_capacity(self) -> SystemCapacity:
        """Its capacity, as given or as read."""
        from iolens.analyses.demand.daily_writes import SystemCapacity, system_capacity

        if "capacity" not in self.found:
            if self.capacity is not None:
                self.found["capacity"] = SystemCapacity(self.capacity, f"option {self.capacity_option}")
            else:
                self.found["capacity"] = self.opened.ask(system_capacity, self._at("since", "until"))
        found = self.found["capacity"]
        if found is None:
            raise NotKnownError(
                f"{self.name()}: no reading of its capacity in this window; give it with {self.capacity_option}"
            )
        assert isinstance(found, SystemCapacity)
        return found

    def usage(self) -> SystemUsage | None:
        """What it held at its last complete reading; None where no store is open or named, or nothing was read."""
        from iolens.analyses.demand.daily_writes import SystemUsage, system_usage

        if self._opened is None and not self.is_named:
            return None
        if "usage" not in self.found:
            try:
                self.found["usage"] = self.opened.ask(system_usage, self._at("until"))
            except IolensError:  # a plan whose inputs are given can do without the store
                self.found["usage"] = None
        usage = self.found["usage"]
        assert usage is None or isinstance(usage, SystemUsage)
        return usage

    def knows_capacity(self) -> bool:
        """Whether its capacity is given, or in a store that is open anyway."""
        if self.capacity is None and self._opened is None:
            return False
        try:
            self.system_capacity()
        except NotKnownError:
            return False
        return True

    def writes(self) -> FileSystemWrites:
        """File-system writes per day."""
        from iolens.analyses.demand.daily_writes import daily_writes
        from iolens.plans.endurance import file_system_writes

        if "writes" not in self.found:
            days = self.opened.ask(daily_writes, self._at(*NARROWING))
            self.found["writes"] = file_system_writes(days, self.system_capacity(), self.min_coverage)
        found: FileSystemWrites = self.found["writes"]
        return found

    def drives(self) -> DriveReadings:
        """The drives that tell the write amplification."""
        from iolens.plans.endurance import write_amplification

        if "drives" not in self.found:
            self.found["drives"] = self._drives()
            self.found["waf"] = write_amplification(self.found["drives"])
        found: DriveReadings = self.found["drives"]
        return found

    def _drives_of(self, name: str) -> DriveReadings:
        """Each drive at its last reading before the window's end; else at its first after it."""
        from iolens.analyses.drives.readings import drive_readings, with_later

        until = self.scope.until
        before = self.opened.ask(drive_readings, name, until=until)
        if until is None:
            return before
        return with_later(before, self.opened.ask(lambda later: drive_readings(later, first=True), name, since=until))

    def _drives(self) -> DriveReadings:
        """Those of the file system named; else its own; else those of the only one that has any."""
        known = sorted(self.opened.store.targets_by_filesystem())
        own = self.drives_of or (self.scope.filesystem if self.scope.filesystem in known else None)
        names = [own] if own is not None else known
        if own is not None and self.drives_of is None:
            names += [name for name in known if name != own]
        found = {name: self._drives_of(name) for name in names}
        there = {name: one for name, one in found.items() if one.drives}
        if own is not None and own in there:
            return there[own]
        if len(there) != 1:
            told = f"there are drives of {', '.join(there)}; name one with --drives-of" if there else "give waf"
            raise NotKnownError(f"write amplification is not known from {self.opened.store.url}: {told}")
        return next(iter(there.values()))

    def write_sizes(self) -> dict[int, float]:
        """Disk writes by size."""
        from iolens.analyses.demand.daily_writes import write_sizes

        if "sizes" not in self.found:
            self.found["sizes"] = self.opened.ask(write_sizes, self._at(*NARROWING))
        found: dict[int, float] = self.found["sizes"]
        if not found:
            raise NotKnownError(f"{self.name()}: the store has no histogram of write sizes; give --rmw")
        return found

    def inode_sizes(self, largest: int | None = None) -> InodeSizes:
        """Inodes by type and size of the newest scan; `largest` ends the last bin where nothing else does."""
        from iolens.analyses.contents.inode_sizes import inode_sizes

        scope = self._at("since", "until", "source")  # a scan has no targets
        found = self.opened.ask(lambda selection: inode_sizes(selection, largest), scope)
        if found is None:
            raise NotKnownError(
                f"{self.opened.store.url} holds no scan with sizes of files; give --file-sizes, or use `iolens scan`"
            )
        return found

    def demand(self, progress: Callable[[date], None] | None = None) -> Demand:
        """What it was asked for, tick by tick."""
        from iolens.analyses.demand.analysis import demand

        asked = self.opened.ask(lambda selection: demand(selection, progress=progress), self._at(*NARROWING))
        return replace(asked, resolution=self.scope.resolution or RAW)
