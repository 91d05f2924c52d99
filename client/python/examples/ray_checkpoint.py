"""Ray converts a model, one shard per task, on all machines that see the same folders. The bytes are those of one process.

    python ray_checkpoint.py model/ small/ --to=compressed-tensors:int8
"""

import argparse

import ray

from quantd import checkpoints


@ray.remote(num_cpus=1)
def make(source, out, to, shard):
    checkpoints.convert(source, out, to=to, shards=[shard], threads=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", help="a folder with config.json and .safetensors")
    parser.add_argument("out", help="the folder to make")
    parser.add_argument("--to", default="fp8-tiles")
    given = parser.parse_args()
    ray.get([make.remote(given.source, given.out, given.to, shard) for shard in checkpoints.shards(given.source)])
    report = checkpoints.convert(given.source, given.out, to=given.to, resume=True)  # makes the rest, and renames it
    print(f"{report['bytes_before']} bytes became {report['bytes_after']}")


if __name__ == "__main__":
    main()
