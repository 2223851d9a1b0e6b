"""Small random centres in which it is known who loaded the disks and why each run was slow, for proofs over many.

An application runs again and again: the same user, executable, processes, files and bytes. Something makes some of its
runs slow, the victims (`CentreKind`): a culprit with tiny random writes, two of them at once, a storm of metadata
operations, or an OST that becomes slow or full and stays so, for which no job is to blame. One of its other runs, while
the disks were quiet, has tiny accesses and many opens. Every run is slowed down by what others load its OSTs with
(`planted_load`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, get_args

import numpy as np

from iolens.arrays import Floats
from iolens.models.transaction_time import Calibration, Coefficients
from iolens.schema import DIRECTIONS
from iolens.simulator.activity import Activity, TickBlock
from iolens.simulator.job_counts import SLOWDOWN, by_job, operations_by_job
from iolens.simulator.random_store import ApplicationPattern, Illness, IllTarget, RunPattern, write_random_centre
from iolens.simulator.workload import (
    OPERATIONS,
    PHASES,
    SIZES,
    Bursts,
    JobClass,
    PlantedJob,
    SimulatedCapacity,
    SimulatedWorkload,
    Tail,
)
from iolens.units import MIB

TICK_S: Final = 60
MINUTE_S: Final = 60
FIRST_S: Final = 1_767_225_600  # 2026-01-01
FIRST_ID: Final = 70_000_000  # no stream of jobs has such numbers for centuries
SLOT_S: Final = 30 * MINUTE_S  # a run of the application begins in each
FEWEST_RUNS, MOST_RUNS = 52, 60
FEWEST_VICTIMS, MOST_VICTIMS = 3, 4  # fewer than a tenth of the runs
_NOTICED: Final = 2.0  # a run counts as loaded where background slowed it by more than so many times its own noise
_TRIES: Final = 20  # orders of patterns, of which that is taken which has least to do with the load
USERS: Final = ("ana", "bela", "chandra", "dmitri", "elif", "fatou")
PROJECTS: Final = ("climate", "fusion", "genomes", "lattice", "materials", "ocean")
CULPRIT: Final = ("mallory", "rogue", "tiny.x")
SECOND_CULPRIT: Final = ("trudy", "rogue", "scatter.x")
STORM: Final = ("mallory", "rogue", "stat.x")
APPLICATION: Final = ("vera", "weather", "wrf.exe")


CentreKind = Literal["tiny writes", "two culprits", "metadata storm", "slow OST", "full OST"]
KINDS: Final[tuple[CentreKind, ...]] = get_args(CentreKind)
ILLNESSES: Final[Mapping[CentreKind, Illness]] = {"slow OST": "slow", "full OST": "full"}


@dataclass(frozen=True, slots=True)
class RandomCentre:
    """What is true of a random centre; times in seconds since 1970. Runs are named by the ids of their jobs.

    `victims` ran beside the culprits, or when the OST `ill_target` was slow or full; `worsened` had a bad pattern. Of
    the others, `loaded` are those that background load slowed more than they vary for no reason: the system did it,
    only not the culprit. Nothing touched the rest. `culprits` are in the order of what they did.
    """

    store: str
    filesystem: str
    seed: int
    start_s: int
    end_s: int
    workload: SimulatedWorkload
    kind: CentreKind
    culprits: tuple[str, ...]
    ill_target: str | None
    culprit_start_s: int
    culprit_end_s: int
    victims: tuple[str, ...]
    untouched: tuple[str, ...]
    loaded: tuple[str, ...]
    worsened: str
    run_ids: Mapping[str, str]  # run by job
    job_disk_s: Mapping[str, float]
    metadata_operations: Mapping[str, int]
    others_pct: Mapping[str, float]  # by job: load of others on the OSTs of the run

    @property
    def culprit_job_id(self) -> str:
        """The one that did most."""
        return self.culprits[0]

    def others_beside(self, job_id: str, osts: tuple[int, ...] | None) -> dict[str, float]:
        """What other jobs did while a planted job ran: disk-seconds on these OSTs; None: metadata operations."""
        own = next(job for job in self.workload.planted if job.job_id == job_id)
        activity = Activity(self.workload, None, self.seed)
        first, ticks = own.start_s // TICK_S, (own.end_s - own.start_s) // TICK_S
        if osts is None:
            parts = operations_by_job(activity, first, ticks, self.workload.mdts)
            done = ((part.job.job_id, float(part.counts.sum())) for part in parts)
        else:
            of_disks = by_job(self.workload, activity.block(first, ticks))
            done = ((part.job.job_id, float(activity.disk_s(part.counts)[:, list(osts)].sum())) for part in of_disks)
        sums: dict[str, float] = {}
        for name, amount in done:
            if name != job_id:
                sums[name] = sums.get(name, 0.0) + amount
        return sums


@dataclass(frozen=True, slots=True)
class _Plan:
    """What happens: slots of runs by number, which of them are beside the culprit, and which is worsened."""

    first_s: int
    slots: int
    length_s: int
    victims: range
    worsened: int
    loads_pct: Floats  # by slot: what the background loads the OSTs of the application with

    @property
    def end_s(self) -> int:
        """When the last slot ends."""
        return self.first_s + self.slots * SLOT_S

    def start_of(self, slot: int) -> int:
        """When the run of a slot starts."""
        return self.first_s + slot * SLOT_S + (SLOT_S - self.length_s) // 2 // MINUTE_S * MINUTE_S


def random_centre(seed: int, store: str | Path, kind: CentreKind = "tiny writes") -> RandomCentre:
    """Draw a centre, write its telemetry, jobs and runs into a store, and say what is true of it."""
    random = np.random.default_rng((seed, 1))
    background = _background(random)
    pattern = _application(random, background.osts)
    if kind == "metadata storm":
        pattern = _with_many_opens(random, pattern)
    plan = _plan(random, background, pattern, seed, lasts=kind in ILLNESSES)
    runs = _runs(random, plan, pattern)
    culprits = _culprits(random, kind, plan, pattern, background.osts)
    ill = _ill_target(random, ILLNESSES[kind], plan, pattern) if kind in ILLNESSES else None
    jobs = tuple(pattern.job(run, background.disks) for run in runs)
    workload = replace(background, planted=(*culprits, *jobs))
    activity = Activity(workload, None, seed)
    written = write_random_centre(str(store), activity, plan.first_s, plan.end_s, pattern, runs, random, ill)
    did = written.truths.metadata_operations() if kind == "metadata storm" else written.truths.disk_s()
    ids = [run.job_id for run in runs]
    victims, worsened = tuple(ids[slot] for slot in plan.victims), ids[plan.worsened]
    loaded = _loaded({job: pct for job, pct in written.others_pct.items() if job not in (*victims, worsened)}, pattern)
    return RandomCentre(
        store=str(store),
        filesystem=workload.filesystem,
        seed=seed,
        start_s=plan.first_s,
        end_s=plan.end_s,
        workload=workload,
        kind=kind,
        culprits=tuple(sorted((job.job_id for job in culprits), key=lambda job_id: -did[job_id])),
        ill_target=None if ill is None else f"{workload.filesystem}-OST{ill.ost:04x}",
        culprit_start_s=plan.first_s + plan.victims.start * SLOT_S,
        culprit_end_s=plan.first_s + plan.victims.stop * SLOT_S,
        victims=victims,
        untouched=tuple(job_id for job_id in ids if job_id not in (*victims, worsened, *loaded)),
        loaded=loaded,
        worsened=worsened,
        run_ids=written.run_ids,
        job_disk_s=written.truths.disk_s(),
        metadata_operations=written.truths.metadata_operations(),
        others_pct=written.others_pct,
    )


def _loaded(others_pct: Mapping[str, float], pattern: ApplicationPattern) -> tuple[str, ...]:
    """Runs that background load made slower than the run with the median load, by more than noise would."""
    slower = {job_id: 1.0 + SLOWDOWN * load_pct / 100.0 for job_id, load_pct in others_pct.items()}
    noticed = float(np.median(list(slower.values()))) * (1.0 + _NOTICED * pattern.noise)
    return tuple(job_id for job_id, factor in slower.items() if factor > noticed)


def _background(random: np.random.Generator) -> SimulatedWorkload:
    """Several users' jobs at a moderate load that differs from hour to hour, never near what the disks can do."""
    osts, users = int(random.integers(4, 9)), int(random.integers(4, len(USERS) + 1))
    large, mixed = (tuple(_shares(*parts)) for parts in ((0.1, 0.9), (0.4, 0.6)))
    level = Tail(1.5, float(random.uniform(2.0, 3.5)), 15.0)
    burst = Bursts(Tail(1.5, 4.0, 12.0), every_s=float(random.uniform(7200, 14400)), length_s=900.0)
    return SimulatedWorkload(
        filesystem="centre",
        osts=osts,
        mdts=1,
        tick_s=TICK_S,
        disks=_disks(random),
        full_pct=40.0,
        correlation=0.8,
        skew=float(random.uniform(0.0, 0.2)),
        capacity=SimulatedCapacity(8 << 40, float(random.uniform(30, 70)), 6 << 30, 48_000_000),
        quiet_below_pct=0.0,
        background={"read": level, "write": level},
        bursts={"read": burst, "write": burst},
        sizes={
            (phase, direction): mixed if phase == "burst" else large for phase in PHASES for direction in DIRECTIONS
        },
        hours=tuple(random.uniform(0.1, 2.4, 24).tolist()),
        days=(1.0,) * 7,
        metadata=dict(zip(OPERATIONS, random.uniform(0.1, 40.0, len(OPERATIONS)).tolist(), strict=True)),
        jobs=tuple(
            JobClass(USERS[number], PROJECTS[number], float(random.uniform(1, 5)), 3600.0 * int(random.integers(1, 5)))
            for number in range(users)
        ),
    )


def _shares(small: float, large: float) -> list[float]:
    """Shares of I/Os by size: of 4 KiB, and of 1 MiB."""
    shares = [0.0] * len(SIZES)
    shares[0], shares[SIZES.index(MIB)] = small, large
    return shares


def _disks(random: np.random.Generator) -> Calibration:
    latency_s, s_per_byte = random.uniform(0.8e-3, 1.3e-3), random.uniform(1.4e-9, 2.0e-9)
    return Calibration(
        "simulated", Coefficients(latency_s, s_per_byte), Coefficients(0.8 * latency_s, 0.75 * s_per_byte)
    )


def _application(random: np.random.Generator, osts: int) -> ApplicationPattern:
    chosen = random.choice(osts, int(random.integers(2, 5)), replace=False)
    return ApplicationPattern(
        *APPLICATION,
        nodes=int(random.integers(2, 9)),
        osts=tuple(sorted(int(ost) for ost in chosen)),
        level_pct=float(random.uniform(6, 10)),
        read_share=float(random.choice([0.0, 0.3, 0.6])),
        length_s=MINUTE_S * int(random.integers(10, 19)),
        noise=float(random.uniform(0.02, 0.04)),
    )


def _with_many_opens(random: np.random.Generator, pattern: ApplicationPattern) -> ApplicationPattern:
    """Half of its I/O time or so are opens, which wait for the metadata servers."""
    return replace(
        pattern,
        level_pct=float(random.uniform(3, 5)),
        opens_per_process=int(random.integers(1500, 2500)),
        open_s=float(random.uniform(0.008, 0.012)),
        doubling_ops_per_s=float(random.uniform(400, 700)),
    )


def _plan(
    random: np.random.Generator,
    background: SimulatedWorkload,
    pattern: ApplicationPattern,
    seed: int,
    lasts: bool,
) -> _Plan:
    """The culprit comes when most of the history is there, and goes unless it `lasts`; the worsened run is at a quiet
    time after it or before.
    """
    slots = int(random.integers(FEWEST_RUNS, MOST_RUNS + 1))
    first_s = FIRST_S + int(random.integers(0, 300)) * 86400 + int(random.integers(0, 24)) * 3600
    plan = _Plan(first_s, slots, pattern.length_s, range(0), 0, np.zeros(slots))
    count = int(random.integers(FEWEST_VICTIMS, MOST_VICTIMS + 1))
    first = int(random.integers(slots * 6 // 10, slots - count - 1))
    if lasts:
        first = int(random.integers(slots * 6 // 10, slots * 7 // 10))
    victims = range(first, slots if lasts else first + count)
    block = Activity(background, None, seed).block(first_s // TICK_S, slots * SLOT_S // TICK_S)
    late = [slot for slot in range(slots // 2, slots * 85 // 100) if slot not in victims]
    loads_pct = np.array([_load_pct(block, plan, slot, pattern.osts) for slot in range(slots)])
    return replace(plan, victims=victims, worsened=min(late, key=lambda slot: loads_pct[slot]), loads_pct=loads_pct)


def _load_pct(block: TickBlock, plan: _Plan, slot: int, osts: tuple[int, ...]) -> float:
    first = plan.start_of(slot) // TICK_S - block.first_tick
    return float(block.fsu_pct[first : first + plan.length_s // TICK_S, list(osts)].mean())


def _runs(random: np.random.Generator, plan: _Plan, pattern: ApplicationPattern) -> list[RunPattern]:
    """Small accesses and opens differ from run to run, whatever the load; those of victims are usual, so that their
    pattern is not why they are slow.
    """
    runs = []
    evenly = min(
        (random.permutation(plan.slots) / plan.slots for _ in range(_TRIES)),
        key=lambda shares: abs(float(np.corrcoef(shares, plan.loads_pct)[0, 1])),
    )
    for slot in range(plan.slots):
        untidiness = random.uniform(0.35, 0.65) if slot in plan.victims else evenly[slot]
        runs.append(
            RunPattern(
                job_id=str(FIRST_ID + 1 + slot),
                start_s=plan.start_of(slot),
                small_share=0.055 * float(untidiness),
                opens_per_process=_opens(pattern, 8 * float(untidiness) + float(random.uniform(0, 1))),
            )
        )
    bad_opens = 120 if pattern.opens_per_process is None else 3 * pattern.opens_per_process
    runs[plan.worsened] = replace(runs[plan.worsened], small_share=0.06, small_bytes=8192, opens_per_process=bad_opens)
    return runs


def _opens(pattern: ApplicationPattern, more: float) -> int:
    """Of a process: 4 to 13, or about as many as the pattern says."""
    if pattern.opens_per_process is None:
        return 4 + round(more)
    return round(pattern.opens_per_process * (0.96 + 0.01 * more))


def _culprits(
    random: np.random.Generator, kind: CentreKind, plan: _Plan, pattern: ApplicationPattern, osts: int
) -> tuple[PlantedJob, ...]:
    """Over the slots of the victims; an OST that is slow or full has none."""
    if kind in ILLNESSES:
        return ()
    if kind == "metadata storm":
        return (_storm(random, plan),)
    if kind == "tiny writes":
        return (_culprit(random, plan, pattern, osts),)
    first = replace(_culprit(random, plan, pattern, osts), level_pct=float(random.uniform(26, 34)))
    user, project, executable = SECOND_CULPRIT
    second = replace(
        _culprit(random, plan, pattern, osts), job_id=str(FIRST_ID - 1), user=user, project=project,
        executable=executable, ios={("read", SIZES[0]): 1.0}, level_pct=float(random.uniform(14, 20)),
    )  # fmt: skip
    return first, second


def _culprit(random: np.random.Generator, plan: _Plan, pattern: ApplicationPattern, osts: int) -> PlantedJob:
    """Tiny random writes on the OSTs of the application, and maybe on others, over the slots of the victims."""
    others = [ost for ost in range(osts) if ost not in pattern.osts and random.random() < 0.5]
    user, project, executable = CULPRIT
    return PlantedJob(
        str(FIRST_ID), user, project, executable, int(random.integers(1, 5)),
        plan.first_s + plan.victims.start * SLOT_S, plan.first_s + plan.victims.stop * SLOT_S,
        level_pct=float(random.uniform(40, 55)), ios={("write", SIZES[0]): 1.0},
        osts=tuple(sorted((*pattern.osts, *others))), metadata={"open": 20.0, "close": 20.0},
    )  # fmt: skip


def _storm(random: np.random.Generator, plan: _Plan) -> PlantedJob:
    """Asks the metadata servers for attributes and opens, and moves nothing."""
    user, project, executable = STORM
    per_s = float(random.uniform(1500, 4000))
    return PlantedJob(
        str(FIRST_ID), user, project, executable, int(random.integers(1, 5)),
        plan.first_s + plan.victims.start * SLOT_S, plan.first_s + plan.victims.stop * SLOT_S,
        metadata={"getattr": 0.8 * per_s, "open": 0.1 * per_s, "close": 0.1 * per_s},
    )  # fmt: skip


def _ill_target(random: np.random.Generator, illness: Illness, plan: _Plan, pattern: ApplicationPattern) -> IllTarget:
    """One of the OSTs of the application, from the first victim on."""
    slowdown = random.uniform(2.5, 5.0) if illness == "slow" else random.uniform(1.5, 3.0)
    return IllTarget(
        int(random.choice(pattern.osts)), illness, plan.first_s + plan.victims.start * SLOT_S, float(slowdown),
        float(random.uniform(93, 99)),
    )  # fmt: skip
