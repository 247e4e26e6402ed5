"""The HTTP service: a thin layer between requests and `late_chunking.LateChunker`."""
