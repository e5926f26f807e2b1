"""How long a gradient step takes by its number of rows: from where on a GPU has enough to do.

    PYTHONPATH=trainer python bench/torch/small_steps.py --shapes 0.5b,1.7b,8b

Random weights as in throughput.py. Each step has sequences of 512 tokens, all trained. Prints one JSON object per size.
"""

import argparse
import json
import random

from tasks import sequence
from throughput import SHAPES, Ours

LENGTH = 512
STEPS = 5
# The first steps compile and warm up.
WARM_UP = 2


def measure(shape: str, counts: list[int], length: int) -> None:
    config = SHAPES[shape]
    ours = Ours(config)
    rng = random.Random(7)
    words = lambda count: [rng.randrange(config.vocab_size) for _ in range(count)]
    for count in counts:
        data = [sequence(words(1), words(length - 1), -1, rng.choice([-1.0, 1.0])) for _ in range(count)]
        found = ours.run(data, STEPS, None, WARM_UP)
        rows, seconds = count * length, found["seconds"]
        line = {"shape": shape, "rows": rows, "ms": round(seconds * 1000, 1), "rows_per_s": round(rows / seconds)}
        print(json.dumps({**line, "first_step_s": found["first_s"]}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--shapes", default="0.5b,1.7b,8b")
    parser.add_argument("--counts", default="1,2,4,8,16,32", help="sequences of a step")
    parser.add_argument("--length", type=int, default=LENGTH, help="tokens of a sequence")
    args = parser.parse_args()
    for shape in args.shapes.split(","):
        measure(shape, [int(count) for count in args.counts.split(",")], args.length)


if __name__ == "__main__":
    main()
