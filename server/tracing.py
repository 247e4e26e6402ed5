"""Traces by OTLP: a span a request, with its wait, its tokenizing and its time on the device within."""

import time
from typing import Any, Final

from starlette.datastructures import Headers

from late_chunking.dependencies import require
from server.jobs import Timings

_NANOSECONDS: Final = 1_000_000_000
_PATH: Final = "/v1/traces"


class Tracer:
    """Sends spans to a collector, in the background and in batches."""

    def __init__(self, endpoint: str, service: str) -> None:
        """Set up the sending.

        Args:
            endpoint: the collector's address, with or without the path for traces.
            service: this service's name in traces.

        Raises:
            MissingDependency: without OpenTelemetry's packages.
        """
        purpose, extra = "sending traces", "tracing"
        exporter = require("opentelemetry.exporter.otlp.proto.http.trace_exporter", purpose=purpose, extra=extra)
        trace = require("opentelemetry.sdk.trace", purpose=purpose, extra=extra)
        export = require("opentelemetry.sdk.trace.export", purpose=purpose, extra=extra)
        resources = require("opentelemetry.sdk.resources", purpose=purpose, extra=extra)
        self._propagation = require("opentelemetry.trace.propagation.tracecontext", purpose=purpose, extra=extra)
        self._api = require("opentelemetry.trace", purpose=purpose, extra=extra)
        address = endpoint if endpoint.rstrip("/").endswith(_PATH) else endpoint.rstrip("/") + _PATH
        self._provider = trace.TracerProvider(resource=resources.Resource.create({"service.name": service}))
        self._provider.add_span_processor(export.BatchSpanProcessor(exporter.OTLPSpanExporter(endpoint=address)))
        self._tracer = self._provider.get_tracer("late_chunking")

    def begin(self, method: str, headers: Headers) -> "RequestSpan":
        """Begin a request's span, within the caller's own if its headers name one."""
        context = self._propagation.TraceContextTextMapPropagator().extract(dict(headers))
        kind = self._api.SpanKind.SERVER
        return RequestSpan(self, self._tracer.start_span(method, context=context, kind=kind))

    def part(self, parent: Any, name: str, begun: float, seconds: float) -> None:  # noqa: ANN401 - a span
        """Add what took part of a request's time; `begun` in seconds since 1970."""
        context = self._api.set_span_in_context(parent)
        span = self._tracer.start_span(name, context=context, start_time=int(begun * _NANOSECONDS))
        span.end(end_time=int((begun + seconds) * _NANOSECONDS))

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()


class RequestSpan:
    """The span of one request."""

    def __init__(self, tracer: Tracer, span: Any) -> None:  # noqa: ANN401 - an OpenTelemetry span
        """Hold a span that has begun."""
        self._tracer = tracer
        self._span = span
        self._begun = time.time()

    def end(self, route: str, status: int, request_id: str, timings: Timings) -> None:
        """End it, named by its route, and with the parts of its time in their order."""
        self._span.update_name(route)
        self._span.set_attributes({"http.route": route, "http.response.status_code": status, "request_id": request_id})
        begun = self._begun
        for name in ("tokenization", "queue", "inference"):
            seconds = getattr(timings, name)
            if seconds:
                self._tracer.part(self._span, name, begun, seconds)
                begun += seconds
        self._span.end()
