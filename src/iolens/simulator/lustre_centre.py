"""One or two simulated Lustre servers, their clients, and what befalls them: resets, failover, reboots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from iolens.errors import UsageError
from iolens.simulator.client_tree import SimulatedClients
from iolens.simulator.lustre_tree import SimulatedClock, Tree
from iolens.simulator.truth import JobTruths
from iolens.units import from_epoch_us, iso

Action = Literal["reset", "dead", "failover", "reboot"]
_AT: Final = "@"


@dataclass(frozen=True, slots=True)
class SimulatedEvent:
    """Something that happens at one time; to all targets when none is named. What reboots is a client."""

    at_s: float
    action: Action
    target: str | None = None


class Centre:
    """A server, its partner if it has one, their clients if there are any, and events to come."""

    def __init__(
        self,
        server: Tree,
        partner: Tree | None = None,
        events: Sequence[SimulatedEvent] = (),
        clients: SimulatedClients | None = None,
    ) -> None:
        self.server, self.partner, self.clients = server, partner, clients
        self.events = sorted(events, key=lambda event: event.at_s)
        for event in self.events:
            self._check(event)

    def _check(self, event: SimulatedEvent) -> None:
        if event.action == "failover" and self.partner is None:
            raise UsageError("a target can only fail over to a second server: name its root with --root2")
        if event.action == "reboot":
            if self.clients is None:
                raise UsageError("only a client can reboot: ask for some with --clients")
            self.clients.tree_of(event.target or "")
        elif event.target is not None and event.target not in self.server.names:
            raise UsageError(f"no target is called {event.target!r}; they are {', '.join(self.server.names)}")

    @property
    def trees(self) -> list[Tree]:
        """The servers."""
        return [self.server] if self.partner is None else [self.server, self.partner]

    def truth(self) -> dict[str, Any]:
        """What is true since the start: of the OSTs of the server, and of each job on both servers."""
        jobs = JobTruths()
        for tree in self.trees:
            jobs.merge(tree.truth.jobs)
        times = {"from": self.server.start_s, "to": self.server.second}
        written = {name: iso(from_epoch_us(round(second * 1e6))) for name, second in times.items()}
        filesystem = {"filesystem": self.server.workload.filesystem}
        return {**filesystem, **written, **self.server.truth.summary(), "jobs": jobs.summary()}

    def advance_to(self, second: float) -> None:
        """Let time pass everywhere; events happen at their own times on the way."""
        while self.events and self.events[0].at_s <= second:
            event = self.events.pop(0)
            self._pass_time(max(event.at_s, self.server.second))
            self._happen(event)
        self._pass_time(second)

    def _pass_time(self, second: float) -> None:
        for tree in self.trees:
            tree.advance_to(second)
        if self.clients is not None:
            self.clients.advance_to(second, [name for tree in self.trees for name in tree.mounted])

    def _happen(self, event: SimulatedEvent) -> None:
        if event.action == "reboot":
            if self.clients is not None and event.target is not None:
                self.clients.reboot(event.target)
            return
        for tree in self.trees:
            here = [name for name in tree.mounted if event.target in (None, name)]
            if event.action == "reset":
                tree.reset(here)
            else:
                for name in here:
                    tree.drop(name)
        if event.action == "failover" and self.partner is not None and event.target is not None:
            self.partner.add(event.target)


def event_of(
    action: Action, text: str, start_s: float, filesystem: str, seconds: Callable[[str], float]
) -> SimulatedEvent:
    """An event from `OST0003@10min`; the time counts from the start, the file system's name may be left out."""
    name, at, when = text.partition(_AT)
    kind, example = ("node", "node0002") if action == "reboot" else ("target", "OST0003")
    if not at or not name or not when:
        raise UsageError(f"{text!r}: write a {kind} and a time, such as {example}@10min")
    full = name if action == "reboot" or name.startswith(f"{filesystem}-") else f"{filesystem}-{name}"
    try:
        return SimulatedEvent(start_s + seconds(when), action, full)
    except ValueError as error:
        raise UsageError(str(error)) from None


def run(
    centre: Centre, clock: SimulatedClock, until_s: float | None = None, step: Callable[[float], None] | None = None
) -> int:
    """Keep the servers up to date, a tick at a time, up to that time (None: for ever); updates made."""
    tick_s, updates = centre.server.workload.tick_s, 0
    while until_s is None or centre.server.second < until_s:
        following = (clock.now() // tick_s + 1) * tick_s
        clock.wait_until(following if until_s is None else min(following, until_s))
        now = max(clock.now(), centre.server.second)
        centre.advance_to(now if until_s is None else min(now, until_s))
        updates += 1
        if step is not None:
            step(centre.server.second)
    return updates
