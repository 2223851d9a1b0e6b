"""What the store knows of the system that a plan starts from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from iolens.api.listener import Listener
from iolens.errors import IolensError, NotKnownError
from iolens.store.scope import NARROWING, RAW, Scope

if TYPE_CHECKING:
    from datetime import date

    from iolens.analyses.contents.scans import Ages, InodeSizes
    from iolens.analyses.demand import Demand, SystemCapacity, SystemUsage
    from iolens.analyses.drives.readings import DriveReadings
    from iolens.analyses.growth import Growth
    from iolens.api.store_analyses import StoreAnalyses
    from iolens.config import Config
    from iolens.plans.cases import FileSystemWrites


@dataclass(slots=True)
class StoreAccess:
    """The store that a plan may need, opened when it is, and closed by another.

    `is_named`: the user chose it, so it is looked at anyway.
    """

    open: Callable[[], StoreAnalyses]
    config: Callable[[], Config]
    is_named: bool
    opened: StoreAnalyses | None = None


@dataclass(slots=True)
class ReferenceSystem:
    """The store's file system, asked only for what a plan needs, and for each once.

    `capacity` is what the user says the file system holds, by an option of the name `capacity_option`; `command` is how
    the plan is made again; `known` is what the store has answered.
    """

    access: StoreAccess
    scope: Scope
    timezone: str | None = None
    listener: Listener = field(default_factory=Listener)
    command: str = ""
    capacity: int | None = None
    min_coverage: float = 95.0
    drives_of: str | None = None
    capacity_option: str = "--capacity"
    known: dict[str, Any] = field(default_factory=dict)

    @property
    def opened(self) -> StoreAnalyses:
        """The store, opened when first needed."""
        if self.access.opened is None:
            self.access.opened = self.access.open()
        return self.access.opened

    @property
    def is_named(self) -> bool:
        """Whether the user named a store or a file system, so that it is looked at even where it need not be."""
        return self.access.is_named or self.scope.filesystem is not None

    @property
    def url(self) -> str | None:
        """The store that something was found in; None where there was no need, or nothing."""
        return self.access.opened.store.url if self.access.opened is not None and self.known else None

    def name(self) -> str:
        """The file system that is looked at."""
        if "filesystem" not in self.known:
            self.known["filesystem"] = self.opened.store.select(self.scope.filesystem).filesystem
        return str(self.known["filesystem"])

    def _at(self, *narrowings: str) -> Scope:
        """The file system that is looked at, with these narrowings of the scope."""
        return replace(self.scope.only(*narrowings), filesystem=self.name())

    def growth(self, method: str, cutoff: date | None = None) -> Growth:
        """Daily growth; days are those of the zone given, or configured."""
        try:
            growth: Growth = self.opened.analyse(
                "growth",
                self._at("since", "until", "targets", "source"),  # readings are never rolled up
                method=method,
                capacity_bytes=self.capacity,
                cutoff=cutoff,
                timezone=self.timezone or self.opened.config.filesystem(self.name()).timezone,
            )
        except NotKnownError as error:
            raise NotKnownError(f"{error} with {self.capacity_option}") from error
        return growth

    def ages(self, clock: str) -> list[Ages]:
        """Ages of the newest scan, by the clock asked for first, then by the other; none without a scan."""
        from iolens.analyses.contents.scans import CLOCKS, ages

        selection = self.opened.store.select(self._at("until"))
        ordered = sorted(CLOCKS, key=lambda name: name != clock)
        return [known for known in (ages(selection, name) for name in ordered) if known is not None]

    def system_capacity(self) -> SystemCapacity:
        """Its capacity, as given or as read."""
        from iolens.analyses.demand import SystemCapacity, system_capacity

        if "capacity" not in self.known:
            if self.capacity is not None:
                self.known["capacity"] = SystemCapacity(self.capacity, f"option {self.capacity_option}")
            else:
                self.known["capacity"] = self.opened.ask(system_capacity, self._at("since", "until"))
        capacity = self.known["capacity"]
        if capacity is None:
            raise NotKnownError(
                f"{self.name()}: no reading of its capacity in this window; give it with {self.capacity_option}"
            )
        assert isinstance(capacity, SystemCapacity)
        return capacity

    def usage(self) -> SystemUsage | None:
        """What it held at its last complete reading; None where no store is open or named, or nothing was read."""
        from iolens.analyses.demand import SystemUsage, system_usage

        if self.access.opened is None and not self.is_named:
            return None
        if "usage" not in self.known:
            try:
                self.known["usage"] = self.opened.ask(system_usage, self._at("until"))
            except IolensError:  # a plan whose inputs are given can do without the store
                self.known["usage"] = None
        usage = self.known["usage"]
        assert usage is None or isinstance(usage, SystemUsage)
        return usage

    def knows_capacity(self) -> bool:
        """Whether its capacity is given, or in a store that is open anyway."""
        if self.capacity is None and self.access.opened is None:
            return False
        try:
            self.system_capacity()
        except NotKnownError:
            return False
        return True

    def writes(self) -> FileSystemWrites:
        """File-system writes per day."""
        from iolens.analyses.demand import daily_writes
        from iolens.plans.endurance import file_system_writes

        if "writes" not in self.known:
            days = self.opened.ask(daily_writes, self._at(*NARROWING))
            self.known["writes"] = file_system_writes(days, self.system_capacity(), self.min_coverage)
        writes: FileSystemWrites = self.known["writes"]
        return writes

    def drives(self) -> DriveReadings:
        """The drives that tell the write amplification."""
        from iolens.plans.endurance import write_amplification

        if "drives" not in self.known:
            self.known["drives"] = self._drives()
            self.known["waf"] = write_amplification(self.known["drives"])
        drives: DriveReadings = self.known["drives"]
        return drives

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
        every = {name: self._drives_of(name) for name in names}
        read = {name: readings for name, readings in every.items() if readings.drives}
        if own is not None and own in read:
            return read[own]
        if len(read) != 1:
            advice = f"there are drives of {', '.join(read)}; name one with --drives-of" if read else "give --waf"
            raise NotKnownError(f"write amplification is not known from {self.opened.store.url}: {advice}")
        return next(iter(read.values()))

    def write_sizes(self) -> dict[int, float]:
        """Disk writes by size."""
        from iolens.analyses.demand import write_sizes

        if "sizes" not in self.known:
            self.known["sizes"] = self.opened.ask(write_sizes, self._at(*NARROWING))
        sizes: dict[int, float] = self.known["sizes"]
        if not sizes:
            raise NotKnownError(f"{self.name()}: the store has no histogram of write sizes; give --rmw")
        return sizes

    def inode_sizes(self, largest: int | None = None) -> InodeSizes:
        """Inodes by type and size of the newest scan; `largest` ends the last bin where nothing else does."""
        from iolens.analyses.contents.scans import inode_sizes

        scope = self._at("since", "until", "source")  # a scan has no targets
        sizes = self.opened.ask(lambda selection: inode_sizes(selection, largest), scope)
        if sizes is None:
            raise NotKnownError(f"{self._no_scan(largest)}; give --file-sizes, or use `iolens scan`")
        return sizes

    def _no_scan(self, largest: int | None) -> str:
        """Why the window has no scan: there is none, or it is of another time."""
        from iolens.analyses.contents.scans import inode_sizes

        known = self.opened.ask(lambda selection: inode_sizes(selection, largest), self._at("source"))
        if known is None or known.time is None:
            return f"{self.opened.store.url} holds no scan with sizes of files"
        when = f"the newest scan of {self.name()} with sizes of files is of {known.time:%Y-%m-%d %H:%M} UTC"
        if self.scope.until is not None and known.time >= self.scope.until:
            return f"{when}, later than the window, which ends {self.scope.until:%Y-%m-%d %H:%M} UTC"
        since = "" if self.scope.since is None else f", which begins {self.scope.since:%Y-%m-%d %H:%M} UTC"
        return f"{when}, earlier than the window{since}"

    def demand(self) -> Demand:
        """What it was asked for, tick by tick."""
        from iolens.analyses.demand import demand

        step = self.listener.step
        answer = self.opened.ask(
            lambda selection: demand(selection, progress=lambda day: step(str(day))), self._at(*NARROWING)
        )
        return replace(answer, resolution=self.scope.resolution or RAW)
