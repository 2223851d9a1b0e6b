"""The loop of `iolens collect`: tick, sample, spool; look after the shipper in between."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from iolens.agent.sampling.clock import Metronome, SystemClock
from iolens.agent.sampling.health import Health
from iolens.agent.sampling.sampler import Sampler
from iolens.agent.sampling.shipping import Shipping
from iolens.agent.sampling.spool import Spool, waiting
from iolens.config import DeviceRule
from iolens.sources.devices.diskstats import DISKSTATS, BlockDevices
from iolens.sources.lustre.lustre_client_proc import has_mounts
from iolens.sources.lustre.lustre_proc import PLACES
from iolens.sources.reading.options import ReadOptions

WAIT_FOR_CHILD_S: Final = 20.0  # when asked to stop


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What `iolens collect` was asked to do; `store` None: only spool."""

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

    def block_devices(self) -> BlockDevices | None:
        """The devices to sample, if any."""
        wanted = is_without_lustre(self.root) if self.devices is None else self.devices
        return BlockDevices(self.root, self.device_rule, self.filesystem) if wanted else None


@dataclass(slots=True)
class Agent:
    """One agent, from start to stop."""

    settings: AgentSettings
    say: Callable[[str], None]
    clock: SystemClock

    def run(self) -> Health:
        """Sample until asked to stop or the duration is over (then ship what is left)."""
        with Spool.open(self.settings.spool, self.settings.spool_limit_bytes) as spool:
            desk = _Desk.of(self.settings, spool, self.say)
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
        with Spool.open(self.settings.spool, self.settings.spool_limit_bytes) as spool:
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
    say: Callable[[str], None]
    ship_every_s: float
    trouble: str = ""

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
        shipping = Shipping(spool.directory, settings.store, settings.ship_every_s) if settings.store else None
        return cls(sampler, spool, shipping, say, settings.ship_every_s)

    def sample(self, tick: int, metronome: Metronome) -> None:
        """One sample, and the agent's own health."""
        health = self.sampler.health
        health.time = tick
        health.late_ticks, health.missed_ticks = metronome.late, metronome.missed
        health.clock_steps_back = metronome.stepped_back
        self.sampler.sample(tick)
        self.note()

    def note(self) -> None:
        """Write the status file and say what is new."""
        health, spool = self.sampler.health, self.spool
        health.thinned_samples, health.lost_ticks = spool.thinned_samples, spool.lost_ticks
        health.spool_bytes = spool.size()
        health.segments_waiting = len(waiting(spool.directory))
        health.measure()
        if spool.trouble and spool.trouble != self.trouble:
            self.trouble = health.trouble = spool.trouble
            self.say(f"no space for a sample: {spool.trouble}")
        try:
            health.write(spool.directory)
        except OSError as error:  # a full disk must not stop the sampling
            health.trouble = f"{spool.directory}: {error.strerror}"

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
            self.say(f"not shipped, samples stay in the spool: {said['error']}")
            return
        health.trouble = ""
        health.segments_shipped += said["shipped"]
        health.segments_late += said["late"]
        health.segments_bad += said["bad"]
        if said["bad"] or said["late"] or said["refused"]:
            self.say(f"shipped {said['shipped']} segments, {said['bad']} bad, {said['late']} late, "
                     f"{said['refused']} places refused")  # fmt: skip
            for reason in said["reasons"][:5]:
                self.say(f"  {reason}")

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
