"""Speaks a JSONL file on a Ray cluster: one task a shard, then one merge.

    python batch.py INPUT.jsonl --out DIR --shards N [--binary PATH] [--cpus N] [-- OPTIONS OF mezzavoce batch]

INPUT and DIR lie on a disk that every node sees. Ray decides where a shard runs and starts it again when its node dies;
what the shard had finished by then is kept.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import ray

SOME_LINES_FAILED = 2


class Shard:
    """Runs one shard for each row {"id": index}."""

    def __init__(self, binary, source, out, shards, cpus, options):
        self.command = [binary, "batch", source, "--out", out, "--threads", str(cpus), *options]
        self.shards = shards

    def __call__(self, row):
        shard = f"{row['id']}/{self.shards}"
        done = subprocess.run([*self.command, "--shard", shard], stderr=subprocess.PIPE, text=True)
        if done.returncode not in (0, SOME_LINES_FAILED):
            raise RuntimeError(f"shard {shard} ended with {done.returncode}: {done.stderr}")
        return {"id": row["id"], "status": done.returncode, "told": done.stderr}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("input", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--shards", type=int, required=True)
    parser.add_argument("--binary", default="mezzavoce")
    parser.add_argument("--cpus", type=int, default=1, help="of each shard")
    own, options = sys.argv[1:], []
    if "--" in own:
        at = own.index("--")
        own, options = own[:at], own[at + 1 :]
    args = parser.parse_args(own)
    source, out = str(args.input.resolve()), str(args.out.resolve())
    ray.init(ignore_reinit_error=True)
    shard = Shard(args.binary, source, out, args.shards, args.cpus, options)
    rows = ray.data.range(args.shards, override_num_blocks=args.shards)
    for row in rows.map(shard.__call__, num_cpus=args.cpus).take_all():
        print(f"shard {row['id']}: {row['told']}", file=sys.stderr, end="")
    return subprocess.run([args.binary, "batch", "--merge", out, "--out", out]).returncode


if __name__ == "__main__":
    sys.exit(main())
