"""What is compared: strategies with sizes, and modes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from late_chunking.boundaries import Boundary, SourceText, Strategy, Waiting, make_strategies, needs_vectors
from late_chunking.boundaries.registry import options_of
from late_chunking.boundaries.strategy import settings_of
from late_chunking.errors import EmptyInput, InvalidParameter
from late_chunking.request import DEFAULT_BLEND_WEIGHT, MODES

BM25: Final = "bm25"
CONTROL: Final = "control"
COMPARED: Final = (*MODES, BM25, CONTROL)


@dataclass(frozen=True, slots=True)
class Cutting:
    """A strategy under a label of its own, so that several of one name can share a pass.

    Attributes:
        name: the label.
        strategy: the strategy.
        size: its size, if it has one.
    """

    name: str
    strategy: Strategy
    size: int | None

    @property
    def needs_vectors(self) -> bool:
        """Whether the strategy waits for vectors."""
        return needs_vectors(self.strategy)

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Cut as the strategy does."""
        return self.strategy.split(source)

    def prepare(self, source: SourceText) -> Waiting:
        """Prepare as the strategy does."""
        strategy: Any = self.strategy
        prepared: Waiting = strategy.prepare(source)
        return prepared

    @property
    def settings(self) -> dict[str, Any]:
        """What tells it from others."""
        return {"strategy": self.strategy.name, **settings_of(self.strategy)}


@dataclass(frozen=True, slots=True)
class Found:
    """The chunks that a cutting found before, to be embedded in another mode."""

    name: str
    boundaries: tuple[Boundary, ...]

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Give them."""
        return self.boundaries


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to make and rank chunks.

    Attributes:
        model: the model's name.
        cutting: where chunks are cut.
        mode: one of the library's modes, ``"bm25"``, or ``"control"``: late, but with each chunk
            among chunks of other documents.
        weight: of the late vectors in a blend.
        fused: whether its ranking is fused with BM25's.
        named: whether its label names the model, where several are compared.
    """

    model: str
    cutting: Cutting
    mode: str
    weight: float | None = None
    fused: bool = False
    named: bool = False

    @property
    def label(self) -> str:
        """What tables call it."""
        weight = "" if self.weight is None else f" {self.weight:g}"
        model = f"{self.model}: " if self.named else ""
        return f"{model}{self.cutting.name} {self.mode}{weight}{' + bm25' if self.fused else ''}"


def make_cuttings(
    strategies: Sequence[str], sizes: Sequence[int], parameters: Mapping[str, Any] | None = None
) -> tuple[Cutting, ...]:
    """Combine strategies with sizes.

    Args:
        strategies: names.
        sizes: for those strategies that take one; without any, each has its default.
        parameters: options for those strategies that take them.

    Raises:
        InvalidParameter: if an option is wrong, or no strategy takes it.
        EmptyInput: if there is no strategy.
    """
    if not strategies:
        raise EmptyInput("at least one strategy is needed")
    given = dict(parameters or {})
    for option in given:
        if not any(option in options_of(name) for name in strategies):
            raise InvalidParameter(f"none of {', '.join(strategies)} has an option {option}")
    cuttings: list[Cutting] = []
    for name in dict.fromkeys(strategies):
        options = options_of(name)
        own = {option: value for option, value in given.items() if option in options}
        for wanted in (tuple(dict.fromkeys(sizes)) if "size" in options and "size" not in own else ()) or (None,):
            (strategy,) = make_strategies(name, own if wanted is None else {**own, "size": wanted})
            size = getattr(strategy, "size", None)
            cuttings.append(Cutting(name if size is None else f"{name} {size}", strategy, size))
    return tuple(cuttings)


def make_arms(
    model: str,
    cuttings: Sequence[Cutting],
    modes: Sequence[str],
    weights: Sequence[float] = (),
    *,
    fuse: bool = False,
    named: bool = False,
) -> tuple[Arm, ...]:
    """Combine cuttings with modes.

    Args:
        model: its name.
        cuttings: where to cut.
        modes: of `COMPARED`.
        weights: of the late vectors, an arm each, in mode ``"blend"``.
        fuse: add an arm for each whose ranking is fused with BM25's.
        named: whether labels name the model.

    Raises:
        InvalidParameter: if a mode is unknown.
        EmptyInput: if there is none.
    """
    if not modes:
        raise EmptyInput("at least one mode is needed")
    for mode in modes:
        if mode not in COMPARED:
            raise InvalidParameter(f"mode must be one of {', '.join(COMPARED)}, got {mode!r}")
    arms: list[Arm] = []
    for cutting in cuttings:
        for mode in dict.fromkeys(modes):
            for weight in (weights or (DEFAULT_BLEND_WEIGHT,)) if mode == "blend" else (None,):
                arms.append(Arm(model, cutting, mode, weight, named=named))
    if fuse:
        arms += [replace(arm, fused=True) for arm in arms if arm.mode not in (BM25, CONTROL)]
    return tuple(arms)
