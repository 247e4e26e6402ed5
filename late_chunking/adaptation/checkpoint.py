"""Where a run stands, in a file that is whole or not there."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Final, Self

import torch

from late_chunking.errors import InvalidParameter

FILE: Final = "checkpoint.pt"
PARTIAL: Final = f".{FILE}.partial"


@dataclass(slots=True)
class Checkpoint:
    """Where a run stands.

    Attributes:
        run: names the run's settings, model and data.
        step: steps done.
        losses: of each step done.
        measures: the held-back measure, by steps done.
        parameters: what is trained, as it stands.
        optimizer: the optimizer's state.
        best: what is trained, as it was where the measure was best.
        seconds: spent so far.
    """

    run: str
    step: int = 0
    losses: list[float] = field(default_factory=list)
    measures: dict[int, float] = field(default_factory=dict)
    parameters: dict[str, torch.Tensor] = field(default_factory=dict)
    optimizer: dict[str, Any] = field(default_factory=dict)
    best: dict[str, torch.Tensor] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def best_step(self) -> int:
        """Steps done where the measure was best, the earliest of equals."""
        return max(self.measures, key=lambda step: (self.measures[step], -step))

    def save(self, folder: Path) -> None:
        """Write it, in place of an earlier one."""
        partial = folder / PARTIAL
        torch.save({each.name: getattr(self, each.name) for each in fields(self)}, partial)
        partial.replace(folder / FILE)

    @classmethod
    def load(cls, folder: Path, run: str) -> Self | None:
        """Give the run to go on with in a folder, if there is one.

        Raises:
            InvalidParameter: if it is of other settings, another model or other data, or cannot be read.
        """
        path = folder / FILE
        if not path.is_file():
            return None
        try:
            found = cls(**torch.load(path, map_location="cpu", weights_only=True))
        except (OSError, EOFError, RuntimeError, UnpicklingError, TypeError) as error:
            raise InvalidParameter(f"{path} cannot be read: {error}; remove it to begin anew") from error
        if found.run != run:
            raise InvalidParameter(
                f"{path} is of a run with other settings, another model or other data; go on with the same, "
                "or remove it to begin anew"
            )
        return found
