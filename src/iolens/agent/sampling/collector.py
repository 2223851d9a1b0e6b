"""The loop of `iolens collect`: tick, sample, spool; its settings and its clock."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, Protocol

from iolens.agent.sampling.hub_client import HubAddress
from iolens.agent.sampling.sampler import Health, SampledTick, Sampler
from iolens.agent.sampling.shipping import Shipping
from iolens.agent.sampling.spool import BAD, LATE, Spool, waiting
from iolens.config import AgentConfig, Config, DeviceRule
from iolens.errors import OptionError
from iolens.messages import ERROR, TroubleLog, cause
from iolens.sources.devices.block_devices import stated_host
from iolens.sources.devices.diskstats import DISKSTATS, BlockDevices
from iolens.sources.lustre import lustre_client_proc
from iolens.sources.lustre.lustre_client_proc import has_mounts
from iolens.sources.lustre.lustre_proc import PLACES
from iolens.sources.reading.options import ReadOptions
from iolens.sources.spool import fit_for_file

# Ticks on the clock ---------------------------------------------------------------------------------------------------
# Multiples of the interval since 1970, never drifting, never caught up in a burst.

LONGEST_WAIT_S: Final = 10.0  # so that a clock that was set back is noticed
LATE_SHARE: Final = 10  # a sample that begins more than a tenth of the interval after its tick is late
MISSED_SHARE: Final = 2  # more than half: that tick is missed


class Clock(Protocol):
    """Wall time and waiting; tests have one of their own."""

    def now_us(self) -> int:
        """Microseconds since 1970."""

    def wait(self, seconds: float) -> bool:
        """Wait that long, or shorter; True when asked to stop."""


class SystemClock:
    """The machine's clock; SIGTERM and SIGINT end a wait at once."""

    def __init__(self) -> None:
        self.stopped = False
        self._wake, self._woken = os.pipe()
        os.set_blocking(self._woken, False)

    def listen(self) -> None:
        """Take SIGTERM and SIGINT as a request to stop."""
        signal.set_wakeup_fd(self._woken)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)

    def _stop(self, number: int, frame: object) -> None:
        self.stopped = True

    def now_us(self) -> int:
        """Microseconds since 1970."""
        return time.time_ns() // 1000

    def wait(self, seconds: float) -> bool:
        """Wait that long, or shorter; True when asked to stop."""
        if not self.stopped:
            select.select([self._wake], [], [], max(seconds, 0.0))
        return self.stopped


@dataclass(slots=True)
class Metronome:
    """Gives each tick at its time and counts those that came late or not at all."""

    clock: Clock
    interval_us: int
    late: int = 0
    missed: int = 0
    stepped_back: int = 0
    _last: int | None = None

    def floor(self, time_us: int) -> int:
        """The tick at or before a time."""
        return time_us // self.interval_us * self.interval_us

    def next_tick(self) -> int | None:
        """Wait for the next tick and return its nominal time; None when asked to stop."""
        while True:
            due = self._wait()
            if due is None:
                return None
            now = self.clock.now_us()
            tick = max(self.floor(now), due)
            self.missed += (tick - due) // self.interval_us
            self._last = tick
            if now - tick > self.interval_us // MISSED_SHARE:
                self.missed += 1
                continue
            self.late += now - tick > self.interval_us // LATE_SHARE
            return tick

    def _wait(self) -> int | None:
        due = self._due()
        while (ahead := due - self.clock.now_us()) > 0:
            if ahead > 2 * self.interval_us:  # the clock was set back: go on with its new time
                self.stepped_back += 1
                self._last = None
                due = self._due()
            elif self.clock.wait(min(ahead / 1e6, LONGEST_WAIT_S)):
                return None
        return None if self.clock.wait(0.0) else due

    def _due(self) -> int:
        last = self._last if self._last is not None else self.floor(self.clock.now_us())
        return last + self.interval_us


# The loop of `iolens collect` -----------------------------------------------------------------------------------------
# Tick, sample, spool; look after the shipper in between.

WAIT_FOR_CHILD_S: Final = 20.0  # when asked to stop
PLACE, SPOOL, STATUS, SHIPPING = "place", "spool", "status", "shipping"  # what trouble is about


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What `iolens collect` was asked to do; `store` and `hub` None: only spool."""

    root: Path
    spool: Path
    store: str | None
    interval_s: float = 5.0
    slow_interval_s: float = 60.0
    ship_every_s: float = 300.0
    spool_limit_bytes: int = 1 << 30
    duration_s: float | None = None
    filesystem: str | None = None
    devices: bool | None = None  # None: where there is no Lustre
    device_interval_s: float | None = None  # None: with everything else
    device_rule: DeviceRule = field(default_factory=DeviceRule)
    client: Mapping[str, Any] = field(default_factory=dict)  # `[sources.lustre-client-proc]`: node, page_size
    hub: HubAddress | None = None  # takes what a store would, and wins over it

    def block_devices(self) -> BlockDevices | None:
        """The devices to sample, if any."""
        wanted = is_without_lustre(self.root) if self.devices is None else self.devices
        return BlockDevices(self.root, self.device_rule, self.filesystem) if wanted else None

    @property
    def host(self) -> str | None:
        """The name of the machine that is sampled, under which everything is stored; None: its own."""
        name = self.client.get("node") or stated_host(self.root)
        return fit_for_file(name) if isinstance(name, str) else None

    @property
    def destination(self) -> str | HubAddress | None:
        """Where segments go."""
        return self.hub or self.store

    def announcement(self) -> str:
        """What is done, in a line for the log."""
        where = self.destination
        name = where.url if isinstance(where, HubAddress) else where
        ship = f"shipped to {name} every {self.ship_every_s:g} s" if where else "not shipped"
        return f"sampling {self.root} every {self.interval_s:g} s into {self.spool}, {ship}"


@dataclass(slots=True)
class Agent:
    """One agent, from start to stop."""

    settings: AgentSettings
    say: Callable[[str], None]  # lines of a log, each a `Message` with its level
    clock: SystemClock

    def run(self) -> Health:
        """Sample until asked to stop or the duration is over (then ship what is left)."""
        with Spool.open(self.settings.spool, self.settings.spool_limit_bytes, self.settings.host) as spool:
            desk = _Desk.of(self.settings, spool, self.say)
            self.say(self.settings.announcement())
            metronome = Metronome(self.clock, _us(self.settings.interval_s))
            until = _until(self.clock, self.settings.duration_s)
            while (tick := metronome.next_tick()) is not None and (until is None or tick <= until):
                desk.sample(tick, metronome)
                desk.tend()
                if until is not None and tick + metronome.interval_us > until:
                    break
            desk.stop(ship=not self.clock.stopped)
        return desk.sampler.health

    def once(self) -> Health:
        """One sample now, shipped."""
        with Spool.open(self.settings.spool, self.settings.spool_limit_bytes, self.settings.host) as spool:
            desk = _Desk.of(self.settings, spool, self.say)
            metronome = Metronome(self.clock, _us(self.settings.interval_s))
            desk.sample(metronome.floor(self.clock.now_us()), metronome)
            desk.stop(ship=True)
        return desk.sampler.health


@dataclass(slots=True)
class _Desk:
    """The parts of a running agent."""

    sampler: Sampler
    spool: Spool
    shipping: Shipping | None
    troubles: TroubleLog
    ship_every_s: float
    lost_ticks: int = 0

    @classmethod
    def of(cls, settings: AgentSettings, spool: Spool, say: Callable[[str], None]) -> _Desk:
        health = Health(spool.host, spool.run)
        sampler = Sampler(
            settings.root,
            spool,
            health,
            _us(settings.slow_interval_s),
            settings.filesystem,
            devices=settings.block_devices(),
            device_us=_us(settings.device_interval_s or settings.interval_s),
            client_options=ReadOptions(settings=settings.client),
        )
        where = settings.destination
        shipping = Shipping(spool.directory, where, settings.ship_every_s) if where else None
        return cls(sampler, spool, shipping, TroubleLog(say), settings.ship_every_s)

    def sample(self, tick: int, metronome: Metronome) -> None:
        """One sample, and the agent's own health."""
        health = self.sampler.health
        health.time = tick
        health.late_ticks, health.missed_ticks = metronome.late, metronome.missed
        health.clock_steps_back = metronome.stepped_back
        self.tell_of_places(self.sampler.sample(tick))
        self.note()

    def tell_of_places(self, tick: SampledTick) -> None:
        """A line for each reason that places were not read for; only a tick that reads everything ends one."""
        for kind, places in tick.refused.items():
            more = f" and {places.count - 1} more places" if places.count > 1 else ""
            text = f"not sampled: {cause(places.first)}{more}; `iolens doctor` says what is missing"
            self.troubles.tell((PLACE, kind), text)
        for key in self.troubles.going_on() if tick.is_slow else ():
            if key[0] == PLACE and key[1] not in tick.refused:
                self.troubles.over(key, f"sampled again: no place says any more: {cause(key[1])}")

    def note(self) -> None:
        """Write the status file and say what is new."""
        health, spool = self.sampler.health, self.spool
        health.thinned_samples, health.lost_ticks = spool.thinned_samples, spool.lost_ticks
        health.spool_bytes = spool.size()
        health.segments_waiting = len(waiting(spool.directory))
        health.measure()
        if spool.lost_ticks > self.lost_ticks:
            self.lost_ticks, health.trouble = spool.lost_ticks, spool.trouble
            self.troubles.tell((SPOOL,), f"a sample is lost: {spool.trouble}; make space there", ERROR)
        elif (SPOOL,) in self.troubles.going_on():
            health.trouble = "" if health.trouble == spool.trouble else health.trouble
            self.troubles.over((SPOOL,), f"samples fit into {spool.directory} again")
        try:
            health.write(spool.directory)
        except OSError as error:  # a full disk must not stop the sampling
            health.trouble = f"{spool.directory}: {error.strerror}"
            self.troubles.tell((STATUS,), f"the status is not written: {health.trouble}; make space there")
        else:
            self.troubles.over((STATUS,), f"the status is written to {spool.directory} again")

    def tend(self) -> None:
        """Take the shipper's report; start it when due. A segment is finished in time even while nothing is shipped."""
        writer = self.spool.writer
        if writer is not None and time.monotonic() - writer.began >= self.ship_every_s:
            self.spool.close_segment()
        if self.shipping is None:
            return
        self.hear(self.shipping.poll())
        if self.shipping.is_due:
            self.spool.close_segment()
            if waiting(self.spool.directory):
                self.shipping.start()
            else:
                self.shipping.put_off()

    def hear(self, said: dict[str, Any] | None) -> None:
        """Count what the shipper did."""
        if said is None:
            return
        health = self.sampler.health
        if said["error"]:
            health.ship_failures += 1
            health.trouble = said["error"]
            self.troubles.tell(
                (SHIPPING,),
                f"not shipped, samples stay in the spool {self.spool.directory}: {cause(said['error'])}; tried again"
                " by itself, `iolens doctor` checks the store or hub",
            )
            return
        self.troubles.over((SHIPPING,), f"shipped again, {said['left']} segments wait")
        health.trouble = ""
        health.segments_shipped += said["shipped"]
        health.segments_late += said["late"]
        health.segments_bad += said["bad"]
        if said["bad"]:
            reasons = [reason for reason in said["reasons"] if f"moved to {BAD}/" in reason]
            self.troubles.tell((BAD,), f"{said['bad']} segments cannot be read: {cause(', '.join(reasons[:1]))}")
        if said["late"]:
            late = self.spool.directory / LATE
            text = f"{said['late']} segments are older than what is stored: `iolens ingest spool {late} --rebuild`"
            self.troubles.tell((LATE,), text)

    def stop(self, *, ship: bool) -> None:
        """Finish the segment; ship all that waits, or let the child that is under way end."""
        self.spool.close_segment()
        if self.shipping is not None:
            self.hear(self.shipping.wait() if ship else self.shipping.wait(WAIT_FOR_CHILD_S))
            while ship and waiting(self.spool.directory):
                self.shipping.start()
                said = self.shipping.wait()
                self.hear(said)
                if said is None or said["error"] or not said["shipped"] + said["bad"]:
                    break
        self.note()


def is_without_lustre(root: Path) -> bool:
    """Whether a root is of a machine that neither serves nor mounts Lustre and lists its block devices."""
    if not (root / DISKSTATS).is_file() or any((root / place.directory).is_dir() for place in PLACES):
        return False
    return not has_mounts(root)


def _us(seconds: float) -> int:
    return round(seconds * 1e6)


def _until(clock: SystemClock, duration_s: float | None) -> int | None:
    return None if duration_s is None else clock.now_us() + _us(duration_s)


# What the agent does --------------------------------------------------------------------------------------------------
# As options say, else the configuration, else the defaults.

SHORTEST_INTERVAL_S: Final = 0.05
DEFAULT_ROOT: Final = Path("/")
DEFAULT_SPOOL: Final = Path("/var/spool/iolens")


def agent_settings(
    config: Config, given: AgentConfig, url: str | None, hub: HubAddress | None, duration_s: float | None
) -> AgentSettings:
    """The settings; `url` is where segments go, `hub` says how where that is a hub."""
    stated = {**_known(config.agent), **_known(given)}
    settings = AgentSettings(
        Path(stated.pop("root", DEFAULT_ROOT)),
        Path(stated.pop("spool", DEFAULT_SPOOL)),
        url,
        duration_s=duration_s,
        device_rule=config.devices,
        client=config.sources.get(lustre_client_proc.NAME, {}),
        hub=hub,
        **stated,
    )
    others = (settings.slow_interval_s, settings.ship_every_s, settings.device_interval_s)
    if settings.interval_s < SHORTEST_INTERVAL_S or any(other is not None and other <= 0 for other in others):
        raise OptionError(f"intervals are above zero, --interval at least {SHORTEST_INTERVAL_S} s")
    return replace(settings, slow_interval_s=max(settings.slow_interval_s, settings.interval_s))


def _known(part: AgentConfig) -> dict[str, Any]:
    names = (field.name for field in fields(part) if not field.name.startswith("hub"))
    return {name: value for name in names if (value := getattr(part, name)) is not None}
