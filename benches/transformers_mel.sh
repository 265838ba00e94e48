#!/bin/sh
# What transformers makes of a voice that this program exported, beside what we make of it: the teacher-forced mel.
#
#   benches/transformers_mel.sh [voice directory]
#
# PYTHON names an interpreter that has torch and transformers. Ends with 1 where the mels differ by more than 1e-3.
set -eu
cd "$(dirname "$0")/.."
voice=$(cd "${1:-models/default}" && pwd)
. benches/support/python.sh

file=$(mktemp)
trap 'rm -f "$file"' EXIT
cargo bench --quiet --features finetune --bench teacher_forced -- "$voice" "$file"
"$python" benches/transformers_mel.py --voice "$voice" --ours "$file"
