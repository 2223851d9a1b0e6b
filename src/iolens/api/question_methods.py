"""Every question as a method of an open store: `store.runs_interfaces(since="2026-11-01", projects=["climate"])`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, Final

from iolens.api.access.listener import Listener
from iolens.errors import UsageError
from iolens.nearest_names import not_among
from iolens.store.scope import Narrowing, Scope
from iolens.times import time_zone

if TYPE_CHECKING:
    from iolens.api.access.store_analyses import StoreAnalyses
    from iolens.question import Question

QUESTIONS: Final = "iolens.questions"  # found by name: questions ask through an open store, not the other way
ASKING: Final = "iolens.questions.asking"


def method_words() -> Mapping[str, str]:
    """Words of all questions by the names of their methods."""
    return {words.replace(" ", "_"): words for words in import_module(QUESTIONS).declarations()}


def method_of(store: StoreAnalyses, name: str) -> Callable[..., Any]:
    """The method of a question, with the docstring and the signature that a notebook shows."""
    question = import_module(QUESTIONS).get_question(method_words()[name])

    def method(*arguments: Any, **options: Any) -> Any:
        written = {key: value for key, value in options.items() if key != "listener"}
        command = call_text(f"iolens.open({store.store.url!r}).{name}", *arguments, **written)
        return answer_call(question, arguments, options, open=lambda: store, command=command)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"{question.text}\n\n{_options_text(question)}"
    method.__signature__ = _signature(question)  # type: ignore[attr-defined]
    return method


def call_text(function: str, *arguments: Any, **options: Any) -> str:
    """How the call is written in Python."""
    given = [repr(argument) for argument in arguments if argument is not None]
    return f"{function}({', '.join([*given, *(f'{name}={value!r}' for name, value in options.items())])})"


def answer_call(question: Question, arguments: tuple[Any, ...], options: dict[str, Any], **how: Any) -> Any:
    """The answer to a call with these arguments and options; `how` are further fields of the asking."""
    needed = (option.name for option in question.options if option.is_argument and option.is_needed)
    positional = [*needed, "filesystem"]
    if len(arguments) > len(positional):
        raise TypeError(f"{question.name}() takes at most {len(positional)} arguments: {', '.join(positional)}")
    options = {**dict(zip(positional, arguments, strict=False)), **options}
    zone, listener = options.pop("timezone", None), options.pop("listener", None)
    zone = None if zone is None else time_zone(zone).key
    own = {option.name: options.pop(option.name) for option in question.options if option.name in options}
    scope = Scope.taken_from(options, options.pop("filesystem", None))
    given = _given(question, {**own, **options}, zone)
    asking = {"scope": scope, "timezone": zone, "listener": listener or Listener(), "given": frozenset(given), **how}
    with import_module(ASKING).Ask(**asking) as ask:
        return question.answer(ask, **question.keywords(given))


def _given(question: Question, options: dict[str, Any], zone: str | None) -> dict[str, Any]:
    known = {option.name: option for option in question.options}
    gathered = {part.name for part in question.parts} - known.keys()
    for name in options:
        if name not in known and name not in gathered:
            raise UsageError(f"{question.name} has no option {name!r}{not_among(name, known)}")
    given = {
        name: value if name in gathered else known[name].in_python(value, zone)
        for name, value in options.items()
        if value is not None
    }
    if missing := [option.name for option in question.options if option.is_needed and option.name not in given]:
        raise UsageError(f"{question.name} needs {missing[0]}: {known[missing[0]].meaning}")
    return given


def _signature(question: Question) -> Signature:
    arguments = [
        Parameter(option.name, Parameter.POSITIONAL_OR_KEYWORD, annotation=option.kind.python)
        for option in question.options
        if option.is_argument and option.is_needed
    ]
    filesystem = Parameter("filesystem", Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=str | Scope | None)
    own = {option.name for option in question.options}
    only = [
        Parameter(option.name, Parameter.KEYWORD_ONLY, default=option.usual, annotation=option.kind.python)
        for option in question.options
        if not (option.is_argument and option.is_needed)
    ]
    shared = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in {**Narrowing.__annotations__, "timezone": "str", "listener": "Listener"}.items()
        if name not in own
    ]
    return Signature([*arguments, *([] if filesystem.name in own else [filesystem]), *only, *shared])


def _options_text(question: Question) -> str:
    return "\n".join(f"`{option.name}`: {option.meaning}" for option in question.options)
