"""Strategies by name, and what a caller may give as one."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from late_chunking.boundaries.strategy import CallerFunction, Chunking, Strategy, StrategyLike
from late_chunking.errors import EmptyInput, InvalidParameter, UnknownStrategy

_DEEPEST: Final = 8
# Filled by the package, a line a strategy.
STRATEGIES: Final[dict[str, Callable[..., Strategy]]] = {}


def make_strategies(chunking: Chunking, parameters: Mapping[str, Any] | None = None) -> tuple[Strategy, ...]:
    """Turn what a caller gave as strategy into configured strategies.

    Args:
        chunking: a registered name, a mapping of a name (under ``"strategy"``) and options, a
            configured strategy, a function ``str → (start, end) pairs``, or a list of these.
        parameters: options for a strategy given by name.

    Raises:
        UnknownStrategy: if a name is not registered.
        InvalidParameter: if an option is unknown or wrong, or given to what takes none.
        EmptyInput: if the list is empty.
    """
    if isinstance(chunking, Sequence) and not isinstance(chunking, str):
        if not chunking:
            raise EmptyInput("the list of strategies is empty")
        return tuple(make_strategy(item, parameters) for item in chunking)
    return (make_strategy(chunking, parameters),)


def make_strategy(chunking: StrategyLike, parameters: Mapping[str, Any] | None = None) -> Strategy:
    """Turn what a caller gave as one strategy into a configured one; see `make_strategies`."""
    if isinstance(chunking, str):
        return _by_name(chunking, parameters or {})
    if isinstance(chunking, Mapping):
        name, own = _named(chunking)
        return _by_name(name, {**own, **(parameters or {})})
    if parameters:
        raise InvalidParameter(f"{', '.join(parameters)}: options go with a strategy's name, not with {chunking!r}")
    if isinstance(chunking, type):
        raise InvalidParameter(f"strategy must be configured: {chunking.__name__}(…), not the class itself")
    if isinstance(chunking, Strategy):
        return chunking
    if callable(chunking):
        return CallerFunction(chunking)
    raise InvalidParameter(f"strategy must be a name, a strategy or a function, got {chunking!r}")


def make_within(chunking: StrategyLike, sizes: Mapping[str, Any] | None = None) -> Strategy:
    """Make a strategy that another one applies.

    Args:
        chunking: as for `make_strategies`, but one.
        sizes: a size and its unit, for a strategy that is given by name, takes a size in any
            unit, and is given none.
    """
    given = {"strategy": chunking} if isinstance(chunking, str) else chunking
    if not isinstance(given, Mapping):
        return make_strategy(given)
    _check_depth(given)
    name, own = _named(given)
    options = options_of(name)
    takes = "size" in options and "unit" in options and options["unit"].default == "tokens" and "size" not in own
    return _by_name(name, {**(sizes or {}), **own} if takes else own)


def _check_depth(given: Mapping[str, Any]) -> None:
    """Refuse a strategy within a strategy within a strategy, and so on."""
    levels, depth = [given], 0
    while levels:
        depth += 1
        if depth > _DEEPEST:
            raise InvalidParameter(f"strategies may stand within each other {_DEEPEST} deep at most")
        inside = [value for level in levels for value in level.values()]
        inside += [item for value in inside if isinstance(value, list | tuple) for item in value]
        levels = [value for value in inside if isinstance(value, Mapping)]


def options_of(name: str) -> Mapping[str, inspect.Parameter]:
    """Give the options that a registered strategy takes.

    Raises:
        UnknownStrategy: if there is none of that name.
    """
    if name not in STRATEGIES:
        raise UnknownStrategy(f"unknown strategy {name!r}; known: {', '.join(sorted(STRATEGIES))}")
    return inspect.signature(STRATEGIES[name]).parameters


def _named(chunking: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Take a mapping apart into a strategy's name and its options."""
    name = chunking.get("strategy")
    if not isinstance(name, str):
        raise InvalidParameter(f"a strategy given as a mapping needs its name under 'strategy', got {chunking!r:.80}")
    return name, {str(option): value for option, value in chunking.items() if option != "strategy"}


def _by_name(name: str, parameters: Mapping[str, Any]) -> Strategy:
    """Make a registered strategy."""
    known = options_of(name)
    if unknown := [parameter for parameter in parameters if parameter not in known]:
        raise InvalidParameter(f"strategy {name!r} has no option {', '.join(unknown)}; it has {', '.join(known)}")
    needed = [option.name for option in known.values() if option.default is option.empty]
    if missing := [option for option in needed if option not in parameters]:
        raise InvalidParameter(f"strategy {name!r} needs {', '.join(missing)}")
    return STRATEGIES[name](**parameters)
