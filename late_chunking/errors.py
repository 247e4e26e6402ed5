"""Every exception this project raises.

Knows nothing of HTTP or of exit codes: the server's status table and the command line map
from these classes. Each message names the value that was wrong and the limit it broke.
"""


class LateChunkingError(Exception):
    """Root of every error raised on purpose by this project."""


class InvalidInput(LateChunkingError, ValueError):
    """The caller's input cannot be processed; the same call will never succeed."""


class EmptyInput(InvalidInput):
    """Nothing was given where something is needed: an empty list, text or query."""


class InvalidDocument(InvalidInput):
    """A document that is not text, or that contradicts itself."""


class InvalidSpan(InvalidInput):
    """A span outside its document, reversed, empty, or owning none of its tokens."""


class DocumentTooLong(InvalidInput):
    """More tokens than the window (with ``on_overflow="error"``) or the hard limit."""


class InvalidDataset(InvalidInput):
    """Data for evaluation that are incomplete or contradict themselves."""


class InvalidParameter(InvalidInput):
    """An option with a wrong type or value."""


class UnknownStrategy(InvalidParameter):
    """No boundary strategy has this name."""


class ModelError(LateChunkingError):
    """A model cannot be used."""


class ModelNotFound(ModelError):
    """No model at this name, folder or revision."""


class UnsupportedModel(ModelError):
    """A model whose vectors would be wrong here: causal, not mean-pooled, unknown modules."""


class TamperedModel(ModelError):
    """A model file whose hash is not the published one."""


class ContextError(LateChunkingError):
    """The endpoint that writes contexts gives none."""


class ContextRefused(ContextError):
    """The endpoint that writes contexts refuses, and would again: a wrong key, no such model."""


class MissingDependency(LateChunkingError, ImportError):
    """A feature needs a package that is not installed."""


class DeviceError(LateChunkingError):
    """The device failed on a document that is valid in itself."""


class OutOfDeviceMemory(DeviceError):
    """One sequence alone does not fit in the device's memory."""


class NonFiniteVector(DeviceError):
    """A vector holds NaN or infinity."""
