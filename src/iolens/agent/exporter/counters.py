"""Raw counters that only fall when they were really reset, and what moved since the last reading.

Prometheus takes every fall for a reset and counts the whole value anew: a counter that steps back by one would become
all its traffic since boot. So a glitch, as the store knows it, is held at what it was.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from iolens.counters.differences import Baseline, CounterStep, Outcome, advance
from iolens.records import Sample


class Steady(NamedTuple):
    """One sample and the step from the one before."""

    sample: Sample
    step: CounterStep

    def counters(self, name: str = "") -> dict[str, int]:
        """The counters of a set, fit to be served: those of the sample, glitches held."""
        held = self.step.baseline.sets[name].counters
        return {counter: held[counter] for counter in self.sample.sets[name].counters}


@dataclass(slots=True)
class Baselines:
    """The last counters of every target and table; what was not seen in a round is forgotten."""

    _before: dict[Hashable, Baseline] = field(default_factory=dict)
    _now: dict[Hashable, Baseline] = field(default_factory=dict)

    def begin(self) -> None:
        """A new round of samples."""
        self._before, self._now = self._now, {}

    def take(self, sample: Sample) -> Steady:
        """The next sample of a target and table."""
        key = (sample.table, sample.filesystem, sample.target)
        step = advance(self._before.pop(key, None), sample)
        if step.outcome in (Outcome.OLDER, Outcome.UNORDERED):  # the server's clock was set back: begin anew
            step = advance(None, sample)
        self._now[key] = step.baseline
        return Steady(sample, step)
