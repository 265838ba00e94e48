#!/bin/sh
# Holds a Ray job of several workers against one run: every file must be the same. Usage: deploy/ray/test.sh BINARY
# Installs Ray into a directory of its own, which it takes away.
set -eu
binary=$(realpath "${1:?the mezzavoce program}")
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet "ray[data]==2.*"
voice="tiny=$here/../../models/tiny"
i=0
while [ $i -lt 40 ]; do
  echo "{\"id\":\"u$i\",\"text\":\"the river and the stone $i\",\"seed\":$i}"
  i=$((i + 1))
done > "$work/input.jsonl"
"$binary" batch "$work/input.jsonl" --out "$work/one" --voice "$voice"
"$work/venv/bin/python" "$here/batch.py" "$work/input.jsonl" --out "$work/ray" --shards 4 --binary "$binary" -- --voice "$voice"
rm "$work"/ray/manifest-*-of-4.*
diff -r "$work/one" "$work/ray"
echo "the same $(ls "$work/one" | wc -l) files"
