#!/usr/bin/env bash
# Makes the adapter that the model `embedded-late` is: `embedded`, trained for late chunking.
#
#   scripts/adapt_embedded.sh TRAIN VALIDATION [OTHER …]
#
# Each is a folder of documents and queries as `late-chunking evaluate` takes it: FairytaleQA's
# training tales (Apache-2.0), which alone are trained on, its validation tales, by which the step
# to stop at is chosen, and other domains, which are only reported on. Takes about ten minutes on
# two cores. Run again after it was stopped, it goes on. PYTHON chooses the interpreter.
set -euo pipefail
train=$(realpath "$1") validation=$(realpath "$2")
shift 2
others=()
for folder in "$@"; do others+=(--other "$(realpath "$folder")"); done
cd "$(dirname "$0")/.."

target=late_chunking/adapters/embedded-late
made=${TMPDIR:-/tmp}/embedded-late
"${PYTHON:-python3}" -m late_chunking adapt "$train" --model embedded --adapter --out "$made" \
    --held-back "$validation" "${others[@]}" --strategy words --size 50 --seed 0
rm -rf "$target"
mkdir -p "$(dirname "$target")"
mv "$made" "$target"
cat >>"$target/README.md" <<'CARD'

## Data and licences

Trained on the 232 tales of FairytaleQA's training part and the questions to them (Xu et al., "Fantastic Questions and
Where to Find Them: FairytaleQA", ACL 2022), which are published under the Apache License 2.0, as is the model that the
adapter belongs to, sentence-transformers/all-MiniLM-L6-v2. The adapter is under the licence of this project, Apache-2.0.
Which step's weights are kept was chosen by FairytaleQA's validation part; nothing was chosen by the other data sets.
`report.json` has the settings, the seed and every loss; `scripts/adapt_embedded.sh` makes it again.
CARD
