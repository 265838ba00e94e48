#!/bin/sh
# Our f32 training step beside PyTorch's: the same network, batch, threads and machine.
#
#   benches/torch_step.sh [voice directory]
#
# THREADS is how many both use (default: all). PYTHON names an interpreter that has torch and transformers. Only time is
# compared: the labels are made up. Prints the ratio of ours to torch's, below 1 where ours is faster.
set -eu
cd "$(dirname "$0")/.."
voice=$(cd "${1:-models/default}" && pwd)
threads=${THREADS:-$(nproc)}
. benches/support/python.sh

# Built first, so that the compiler does not share the time that is measured.
cargo bench --quiet --features finetune --bench training --no-run
ours=$(RAYON_NUM_THREADS=$threads cargo bench --quiet --features finetune --bench training -- "$voice" 32)
echo "$ours"
ours=$(echo "$ours" | sed -n 's/^ *32: \([0-9.]*\) s a step.*/\1/p')
theirs=$("$python" benches/torch_step.py --voice "$voice" --threads "$threads")
echo "torch: $theirs s a step"
awk -v ours="$ours" -v theirs="$theirs" -v threads="$threads" \
    'BEGIN { printf "ratio %.2f with %d threads\n", ours / theirs, threads }'
