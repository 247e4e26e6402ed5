#!/usr/bin/env bash
# Checks and measures the encoder on this machine's GPU, or, without one, on the CPU with small
# sizes. Needs torch, transformers, accelerate, numpy and regex, and no network.
#
#   scripts/gpu_check.sh [--out FILE]     the last line of stdout is JSON
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
[ -n "${PYTHON:-}" ] || [ ! -x .venv/bin/python ] || python=.venv/bin/python
# A batch that nearly fills the card should not fail for fragments.
export PYTORCH_ALLOC_CONF=${PYTORCH_ALLOC_CONF:-expandable_segments:True}
PYTHONPATH=. PYTHONUNBUFFERED=1 exec "$python" scripts/gpu_check.py "$@"
