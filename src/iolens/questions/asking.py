"""What a question is answered with: a store, what part of it is meant, and who hears what happens meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from iolens.api.listener import Listener
from iolens.errors import NotKnownError
from iolens.store.scope import Scope

if TYPE_CHECKING:
    from iolens.api import OpenStore
    from iolens.config import Config


@dataclass(slots=True)
class Ask:
    """One asking. The store is opened when it is first needed, and closed by whoever opened it.

    `given` are the names of options that were given. `draws`: figures are wanted. `must_have_data`: an answer without
    data is an error that says what is stored. `command`: how it is asked again. `load_config` reads the
    configuration where no store is open.
    """

    open: Callable[[], OpenStore]
    scope: Scope = field(default_factory=Scope)
    timezone: str | None = None
    listener: Listener = field(default_factory=Listener)
    given: frozenset[str] = frozenset()
    draws: bool = True
    must_have_data: bool = False
    is_named: bool = True  # the user chose the store, so that it is looked at even where it need not be
    is_lent: bool = True
    command: str = ""
    load_config: Callable[[], Config] | None = None
    _opened: OpenStore | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._opened is not None and not self.is_lent:
            self._opened.close()

    @property
    def store(self) -> OpenStore:
        """The store, open."""
        if self._opened is None:
            self._opened = self.open()
        return self._opened

    @property
    def config(self) -> Config:
        """The configuration; the store is not opened for it where it need not be."""
        return self.store.config if self.load_config is None else self.load_config()

    def day_done(self, day: object) -> None:
        """A day of the window was read."""
        self.listener.step(str(day))

    def analyse(self, name: str, *others: str, **options: Any) -> Any:
        """The result of an analysis of the rows asked for; with other file systems a list, of which one has data."""
        from inspect import signature

        from iolens.analyses import get_analysis
        from iolens.analyses.results import has_data

        known = signature(get_analysis(name).run).parameters
        usual: dict[str, Any] = {"progress": self.day_done, "timezone": self.timezone}
        more = {key: value for key, value in usual.items() if key in known and value is not None}
        scopes = [self.scope, *(replace(self.scope, filesystem=other) for other in others)]
        try:
            results = [self.store.analyse(name, scope, **{**more, **options}) for scope in scopes]
        except NotKnownError as error:
            raise self._with_what_is_stored(name, error) from error
        if self.must_have_data and not any(map(has_data, results)):
            raise self._without_data(name, results)
        return results if others else results[0]

    def _with_what_is_stored(self, name: str, error: NotKnownError) -> NotKnownError:
        from iolens.api.store_state import stored_words

        if not self.must_have_data or not (self.scope.since or self.scope.until):
            return error
        said = stored_words(self.store, name, self.scope.filesystem)
        return NotKnownError("; ".join(filter(None, [str(error), said])))

    def _without_data(self, name: str, results: list[Any]) -> NotKnownError:
        from iolens.api.store_state import nothing_stored
        from iolens.views.render.doubts import warnings

        return NotKnownError(
            "; ".join([nothing_stored(self.store, name, results[0].filesystem), *warnings(results[0])])
        )
