"""Analyses on a store, or on frames the user already has."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import date, datetime
from typing import Any, Final, Self, TypeVar, Unpack

from iolens import __version__
from iolens.analyses import Analysis, Options, StoreKnowledge, analysis_names, get_analysis
from iolens.analyses.intervals.tick_matrix import PartsTogether, TickParts
from iolens.analyses.results import OverIntervals
from iolens.config import load_config
from iolens.errors import IolensError
from iolens.messages import detail
from iolens.store.engines import check_engine
from iolens.store.frames import FrameSelection
from iolens.store.scope import RAW, Narrowing, Scope
from iolens.store.selection import StoreSelection
from iolens.store.store import RESOLUTIONS, Store
from iolens.store.tables import unreadable
from iolens.times import utc_time
from iolens.units import parse_duration

Answer = TypeVar("Answer")

INTERVALS: Final = ("target_io", "target_sizes", "target_histograms", "metadata_ops")  # what analyses read
ENGINES: Final = ("duckdb", "_duckdb", "pyspark", "py4j", "pyarrow")  # modules whose errors mean damaged files


class StoreAnalyses:
    """A store with every analysis as a method: `store.utilization("scratch", since="2012-10-22")`."""

    def __init__(
        self,
        url: str | None = None,
        *,
        engine: str | None = None,
        config: str | None = None,
        workers: int | None = None,
        fresh: bool = False,
    ) -> None:
        """`workers` are processes on this machine [one per core]; `fresh`: nothing that was remembered is used."""
        self.config = load_config(config)
        check_engine(engine or self.config.engine)  # before any file is opened
        self.store = Store(self.config.store_url(url), engine or self.config.engine, workers=workers, fresh=fresh)
        detail(f"store: {self.store.url}, engine {engine or self.config.engine}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the engine."""
        self.store.close()

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *analysis_names()]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in analysis_names():
            raise AttributeError(f"a store has no {name!r}; its analyses are: {', '.join(analysis_names())}")
        return lambda *args, **options: self.analyse(name, *args, **options)

    def frame(self, table: str, filesystem: str | Scope | None = None, **narrowing: Unpack[Narrowing]) -> Any:
        """A table's rows as a Narwhals lazy frame; `.collect()` or `.to_native()` it."""
        return self.store.select(filesystem, **narrowing).frame(table)

    def analyse(
        self,
        name: str,
        filesystem: str | Scope | None = None,
        *,
        selected: StoreSelection | None = None,
        **options: Any,
    ) -> Any:
        """Run one analysis by name, with what the configuration knows of the file system as defaults.

        `since`, `until`, `targets`, `source` and `resolution` narrow the rows; other options are those of the analysis.
        Without a `resolution`: raw rows; where none of the window is left, the finest rollup that has any. `selected`
        are the rows of that scope, where several analyses are asked about them.
        """
        analysis, began = get_analysis(name), time.monotonic()
        scope = Scope.taken_from(options, filesystem)
        with self._reading(scope, selected) as selection:
            chosen = self._finest(selection, analysis, scope)
            understood = self._options(analysis, chosen, options)
            if analysis.answer is None:
                result = analysis.run(chosen, **understood)
            else:
                path = _answer_at(chosen, analysis, understood)
                result = chosen.remembered_at(analysis.answer(), path, lambda: _answered(chosen, analysis, understood))
            detail(f"{name} of {chosen.filesystem}, {chosen.resolution or RAW} rows: {time.monotonic() - began:.2f} s")
            if not isinstance(result, OverIntervals):
                return result
            servers = chosen.target_servers() if hasattr(result, "servers") else None
            known: dict[str, Any] = {"servers": servers} if servers is not None and servers.of_targets else {}
            return replace(result, **_rows_read(chosen, analysis), **known)

    def together(
        self, asked: Mapping[str, Options], filesystem: str | Scope | None = None, **narrowing: Unpack[Narrowing]
    ) -> Iterator[tuple[str, Any]]:
        """Several analyses of the same rows, by name with their options; what they need alike is read once.

        Names and results, in this order; where an analysis refuses, its error instead.
        """
        scope = Scope.of(filesystem, **narrowing)
        with self._reading(scope) as selection:
            self._gather(selection, asked, scope)
            for name, options in asked.items():
                try:
                    yield name, self.analyse(name, scope, selected=selection.for_another_question(), **options)
                except IolensError as error:
                    yield name, error

    def _gather(self, selection: StoreSelection, asked: Mapping[str, Options], scope: Scope) -> None:
        makers: list[TickParts] = []
        with suppress(IolensError), self._one_line_of_damage():  # whoever cannot be answered says so when it is asked
            for name, options in asked.items():
                analysis = get_analysis(name)
                if analysis.makers is not None and self._finest(selection, analysis, scope) is selection:
                    understood = self._options(analysis, selection, dict(options))
                    is_known = _is_known(selection, analysis, understood)
                    makers += () if is_known else analysis.makers(selection, understood)
            steps = (options.get("progress") for options in asked.values())
            if len(makers) > 1:
                selection.gather(PartsTogether(tuple(makers)), next(filter(None, steps), None))

    def ask(
        self,
        question: Callable[[StoreSelection], Answer],
        filesystem: str | Scope | None = None,
        **narrowing: Unpack[Narrowing],
    ) -> Answer:
        """Any function of a selection, asked as an analysis is: sources in their order, damage in one line."""
        with self._reading(filesystem, **narrowing) as selection:
            return question(selection)

    def ask_all(self, question: Callable[[StoreSelection], Answer], scope: Scope) -> Answer:
        """The same of rows of any file system, as those of runs and jobs are; a scope with one keeps its rows."""
        with self._one_line_of_damage():
            return question(self.store.select_all(scope))

    @contextmanager
    def _reading(
        self,
        filesystem: str | Scope | None = None,
        selected: StoreSelection | None = None,
        **narrowing: Unpack[Narrowing],
    ) -> Iterator[StoreSelection]:
        """A selection with its sources in their order; what the engine says of damaged files becomes one line."""
        selection = selected or self.store.select(filesystem, **narrowing)
        configured = self.config.filesystem(selection.filesystem)
        selection.source_order, selection.servers = configured.sources, configured.servers
        with self._one_line_of_damage():
            yield selection

    @contextmanager
    def _one_line_of_damage(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if type(error).__module__.partition(".")[0] not in ENGINES:
                raise
            raise unreadable(f"{self.store.url}: the engine could not read it", error) from error

    def _options(self, analysis: Analysis, selection: StoreSelection, options: dict[str, Any]) -> dict[str, Any]:
        """The options of an analysis in its own words, with what the store and the configuration know beside them."""
        if isinstance(every := options.pop("every", None), str | int | float):
            options["every_s"] = parse_duration(every) if isinstance(every, str) else float(every)
        return analysis.defaults(self.known, selection, options)

    @property
    def known(self) -> StoreKnowledge:
        """What the store and the configuration know beside rows."""
        return StoreKnowledge(self.config, self.store.calibrations, self.store.benchmark_runs)

    def _finest(self, selection: StoreSelection, analysis: Analysis, scope: Scope) -> StoreSelection:
        """Raw rows, or the finest rollup where all raw rows were dropped and no parts were kept of the window."""
        if scope.resolution is not None or selection.days(*INTERVALS):
            return selection
        makers = analysis.kept_of(self.known, selection) if analysis.kept_of is not None else ()
        if any(selection.has_kept(maker) for maker in itertools.islice(makers, 1)):
            return selection
        rollups = (_at(selection, resolution) for resolution in RESOLUTIONS)
        return next((rollup for rollup in rollups if rollup.days(*INTERVALS)), selection)


def on_frames(name: str) -> Callable[..., Any]:
    """One analysis over frames by table name: pandas, Polars, PyArrow, DuckDB or Spark."""

    def run(
        *, filesystem: str = "", since: str | datetime | None = None, until: str | datetime | None = None, **given: Any
    ) -> Any:
        from iolens.schema import TABLES

        frames = {table: given.pop(table) for table in list(given) if table in TABLES}
        selection = FrameSelection(frames, filesystem, (utc_time(since), utc_time(until)))
        return get_analysis(name).run(selection, **given)

    run.__name__ = name
    run.__doc__ = get_analysis(name).run.__doc__
    return run


def _at(selection: StoreSelection, resolution: str) -> StoreSelection:
    return selection.another(resolution=resolution)


def _answer_at(selection: StoreSelection, analysis: Analysis, options: Options) -> str | None:
    """Where the answer is kept; it may be another one in another version."""
    if analysis.answer is None:
        return None
    asked = repr(sorted(item for item in options.items() if item[0] != "progress"))
    servers = selection.target_servers().of_targets
    return selection.answer_at(analysis.answer(), INTERVALS, [__version__, asked, *([servers] if servers else [])])


def _answered(selection: StoreSelection, analysis: Analysis, options: Options) -> Any:
    """The result; parts of several kinds that it needs of the same ticks are made of one reading."""
    makers = tuple(analysis.makers(selection, options)) if analysis.makers is not None else ()
    if len(makers) > 1 and not any(map(selection.has_gathered, makers)):
        selection.gather(PartsTogether(makers), options.get("progress"))
    return analysis.run(selection, **options)


def _is_known(selection: StoreSelection, analysis: Analysis, options: Options) -> bool:
    path = _answer_at(selection, analysis, options)
    return path is not None and selection.memory is not None and selection.memory.holds(path)


def _rows_read(selection: StoreSelection, analysis: Analysis) -> dict[str, Any]:
    """What an answer says of the rows it was read from: a rollup's, or how many days only a rollup could report."""
    if selection.resolution is not None:
        return {"resolution": selection.resolution}
    rolled = set[date]().union(*(_at(selection, resolution).days(*INTERVALS) for resolution in RESOLUTIONS))
    kept = selection.days_from_parts.get(analysis.name, set())
    return {
        "days_only_in_rollups": len(rolled - selection.days(*INTERVALS) - kept),
        "days_from_parts": len(kept) or None,
    }
