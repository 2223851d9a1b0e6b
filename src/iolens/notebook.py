"""The Python API for notebooks: the same analyses, on a store or on frames the user already has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from iolens.analyses import analysis_names, get_analysis
from iolens.analyses.calibrations import find_calibration
from iolens.config import load_config
from iolens.errors import StoreError
from iolens.models.transaction_time import Calibration
from iolens.store.selection import FrameSelection, StoreSelection
from iolens.store.store import Store
from iolens.units import from_epoch_us, parse_rate, parse_time

ENGINES: Final = ("duckdb", "_duckdb", "pyspark", "py4j", "pyarrow")  # modules whose errors mean damaged files


class OpenStore:
    """A store with every analysis as a method: `store.utilization("scratch", since="2012-10-22")`."""

    def __init__(self, url: str | None = None, *, engine: str | None = None, config: str | None = None) -> None:
        self.config = load_config(config)
        self.store = Store(self.config.store_url(url), engine or self.config.engine)

    def __enter__(self) -> OpenStore:
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

    def frame(self, table: str, filesystem: str | None = None, *, since: Any = None, until: Any = None) -> Any:
        """A table's rows as a Narwhals lazy frame; `.collect()` or `.to_native()` it."""
        return self.store.select(filesystem, since=_moment(since), until=_moment(until)).frame(table)

    def analyse(
        self,
        name: str,
        filesystem: str | None = None,
        *,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        targets: Sequence[str] = (),
        source: str | None = None,
        resolution: str | None = None,
        **options: Any,
    ) -> Any:
        """Run one analysis by name, with what the configuration knows of the file system as defaults."""
        selection = self.store.select(
            filesystem,
            since=_moment(since),
            until=_moment(until),
            targets=targets,
            source=source,
            resolution=None if resolution in (None, "raw") else resolution,
        )
        known = self.config.filesystem(selection.filesystem)
        selection.source_order = known.sources
        try:
            return get_analysis(name).run(selection, **self._defaults(name, selection, options))
        except Exception as error:
            if type(error).__module__.partition(".")[0] not in ENGINES:
                raise
            raise StoreError(f"{self.store.url}: the engine could not read it: {str(error).splitlines()[0]}") from error

    def _defaults(self, name: str, selection: StoreSelection, options: dict[str, Any]) -> dict[str, Any]:
        if name != "utilization":
            return options
        filesystem = selection.filesystem
        known = self.config.filesystem(filesystem)
        peak, calibration = options.pop("peak", None), options.pop("calibration", None)
        found: dict[str, Any] = {}
        if peak is not None:
            found["peak_bytes_per_s"] = parse_rate(peak) if isinstance(peak, str) else float(peak)
        elif known.peak_bytes_per_s is not None:
            found |= {"peak_bytes_per_s": known.peak_bytes_per_s, "peak_origin": "configured"}
        if isinstance(calibration, Calibration):
            found["calibration"] = calibration
        else:
            chosen = calibration or known.calibration
            extent = selection.extent_us("target_sizes")
            at = from_epoch_us(extent[0]) if extent else selection.window[0]
            found["calibration"], notes = find_calibration(
                self.store.calibrations(), self.config, chosen, filesystem, at
            )
            found["notes"] = notes
        limits = self.config.thresholds
        found |= {
            "plateau_minimum_s": limits.plateau_minimum_s,
            "plateau_spread": limits.plateau_spread,
            "plateau_median_pct": limits.plateau_median_pct,
        }
        return {**found, **options}


def on_frames(name: str) -> Callable[..., Any]:
    """One analysis over frames by table name: pandas, Polars, PyArrow, DuckDB or Spark."""

    def run(
        *, filesystem: str = "", since: str | datetime | None = None, until: str | datetime | None = None, **given: Any
    ) -> Any:
        from iolens.schema import TABLES

        frames = {table: given.pop(table) for table in list(given) if table in TABLES}
        selection = FrameSelection(frames, filesystem, (_moment(since), _moment(until)))
        return get_analysis(name).run(selection, **given)

    run.__name__ = name
    run.__doc__ = get_analysis(name).run.__doc__
    return run


def _moment(value: str | datetime | None) -> datetime | None:
    if value is None:
        return None
    moment = parse_time(value) if isinstance(value, str) else value
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
