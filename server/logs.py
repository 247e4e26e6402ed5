"""How the server logs: lines for people, or JSON for machines."""

from typing import Any, Final

_PEOPLE: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_MACHINES: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"


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
