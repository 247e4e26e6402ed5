"""Optional packages: one import function with one clear error."""

import importlib
from typing import Any

from late_chunking.errors import MissingDependency


def require(module: str, *, purpose: str, extra: str | None = None) -> Any:  # noqa: ANN401 - a module
    """Import a package that not every installation has.

    Raises:
        MissingDependency: if it is not installed, naming the command that brings it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = f"late-chunking[{extra}]" if extra else module.partition(".")[0]
        raise MissingDependency(f"{purpose} needs the package {module!r}: pip install '{package}'") from error
