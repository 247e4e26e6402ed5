"""What Prometheus is told: counters, gauges and histograms of one server."""

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_TOKENS: Final = (16, 64, 256, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536)
_DOCUMENTS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The metrics of one server, in a registry of its own.

    Attributes:
        requests: by route and status.
        request_seconds: from the first byte to the last of an answer, by route.
        queue_seconds: a request's wait for a tokenizing thread and for the device.
        tokenization_seconds: cutting and tokenizing a request.
        inference_seconds: a request's time on the device.
        batch_tokens: tokens a batch.
        batch_documents: documents in a batch.
        device_seconds: in which the device owed an answer.
        tokens: tokens read.
        chunks: chunks answered.
        windowed: documents that were read in several windows.
        splits: batches halved because the device's memory ran out.
        nonfinite: documents that failed with a vector that is not finite.
        rejected: requests refused for want of room, by reason.
    """

    def __init__(self) -> None:
        """Begin at nothing."""
        self._registry = CollectorRegistry()

        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(name, text, labels, buckets=buckets, registry=self._registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, labels, registry=self._registry)

        self.requests = counter("lc_requests", "Requests answered.", "route", "status")
        self.request_seconds = histogram("lc_request_duration_seconds", "Time of a request.", _SECONDS, "route")
        self.queue_seconds = histogram("lc_queue_duration_seconds", "Wait for a thread and the device.", _SECONDS)
        self.tokenization_seconds = histogram("lc_tokenization_duration_seconds", "Cutting, tokenizing.", _SECONDS)
        self.inference_seconds = histogram("lc_inference_duration_seconds", "Time on the device.", _SECONDS)
        self.batch_tokens = histogram("lc_batch_tokens", "Tokens a batch.", _TOKENS)
        self.batch_documents = histogram("lc_batch_documents", "Documents a batch.", _DOCUMENTS)
        self.device_seconds = counter("lc_device_seconds", "Seconds in which the device owed an answer.")
        self.tokens = counter("lc_tokens", "Tokens read.")
        self.chunks = counter("lc_chunks", "Chunks answered.")
        self.windowed = counter("lc_windowed_documents", "Documents read in several windows.")
        self.splits = counter("lc_oom_splits", "Batches halved because the device's memory ran out.")
        self.nonfinite = counter("lc_nonfinite", "Documents with a vector that is not finite.")
        self.rejected = counter("lc_rejected", "Requests refused for want of room.", "reason")

    def watch(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Add a gauge that is read whenever it is asked for."""
        Gauge(name, text, registry=self._registry).set_function(read)

    def batch(self, tokens: int, documents: int, seconds: float, splits: int) -> None:
        """Note a batch that the device has read."""
        self.tokens.inc(tokens)
        self.batch_tokens.observe(tokens)
        self.batch_documents.observe(documents)
        self.device_seconds.inc(seconds)
        self.splits.inc(splits)

    def exposed(self) -> bytes:
        """Give all of them in Prometheus's text format."""
        return generate_latest(self._registry)
