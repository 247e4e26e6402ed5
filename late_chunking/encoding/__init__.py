"""Tokens, windows, batches, the encoder and pooling. Knows nothing of HTTP."""
