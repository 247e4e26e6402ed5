"""How the server logs: lines for people, or JSON for machines."""

import traceback
from typing import Any, Final

# The innermost ones; those around them are the web framework's.
_FRAMES: Final = 8
_PEOPLE: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_MACHINES: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"


def trace_of(error: BaseException) -> str:
    """Say what an error is and where it came from, without its message, which may quote a document."""
    frames = "".join(traceback.format_tb(error.__traceback__, limit=-_FRAMES))
    return f"{type(error).__name__}\n{frames}"


def log_config(*, json_output: bool) -> dict[str, Any]:
    """Give what `logging.config.dictConfig` takes. uvicorn's own access log is left out for ours."""
    formatter: dict[str, Any] = {"format": _PEOPLE}
    if json_output:
        formatter = {"()": "pythonjsonlogger.json.JsonFormatter", "fmt": _MACHINES}
        formatter["rename_fields"] = {"asctime": "time", "levelname": "level", "name": "logger"}
    quiet = {"handlers": ["stderr"], "level": "INFO", "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": formatter},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines", "stream": "ext://sys.stderr"}},
        "loggers": {
            "server": quiet,
            "late_chunking": quiet,
            "uvicorn": quiet,
            "uvicorn.access": {"handlers": [], "propagate": False},
        },
    }
