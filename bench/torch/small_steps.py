"""How long a gradient step takes by its number of rows: from where on a GPU has enough to do.

    PYTHONPATH=trainer:bench/torch python bench/torch/small_steps.py --shapes 0.5b,1.7b,8b

Random weights as in throughput.py. Each step has sequences of 512 tokens, all trained. Prints one JSON object per size.
"""

import argparse
import json
import random
import tempfile
import time

import torch
from throughput import ADAM, LOSS, RANK, SHAPES, free, fresh_model

from flywheel_trainer.adapter import LINEARS, AdamState, Adapter, flatten, save_step
from flywheel_trainer.attention import NAME
from flywheel_trainer.model import TrainableModel
from flywheel_trainer.task import Hooks, World, run_task

LENGTH = 512
COUNTS = (1, 2, 4, 8, 16, 32)
STEPS = 7
# The first steps compile and warm up.
WARM_UP = 2


def sequence(rng: random.Random) -> dict:
    ids = [rng.randrange(150_000) for _ in range(LENGTH)]
    signal = {"advantage": rng.choice([-1.0, 1.0]), "weight": 1.0, "group": -1}
    return {"ids": ids, "mask": [0] + [1] * (LENGTH - 1), "oldLogprobs": [None] + [-12.0] * (LENGTH - 1), **signal}


def start_adapter(model: TrainableModel, folder: str) -> None:
    tensors = {}
    for layer in range(model.layers):
        for name in LINEARS:
            out, inside = model.linears[f"{layer}.{name}"].weight.shape
            tensors[f"{layer}.{name}.a"] = torch.randn(RANK, inside) / inside**0.5
            tensors[f"{layer}.{name}.b"] = torch.zeros(out, RANK)
    adapter = Adapter(RANK, 2 * RANK, False, tensors)
    save_step(folder, adapter, AdamState.fresh(flatten(adapter, torch.device("cpu"))), "policy", "random")


def measure(shape: str) -> None:
    model = TrainableModel(fresh_model(SHAPES[shape], NAME), torch.device("cuda"))
    home = tempfile.mkdtemp()
    start_adapter(model, f"{home}/start")
    rng = random.Random(7)
    for count in COUNTS:
        batch = f"{home}/{count}.jsonl"
        with open(batch, "w") as file:
            file.write("\n".join(json.dumps(sequence(rng)) for _ in range(count)))
        times = [time.perf_counter()]

        def on_step(_: dict) -> None:
            torch.cuda.synchronize()
            times.append(time.perf_counter())

        task = {
            "baseModel": "random", "weights": "bfloat16", "adapter": f"{home}/start", "optimizerState": None,
            "batch": batch, "steps": [{"from": 0, "to": count, "learningRate": 1e-5}] * STEPS,
            "objective": {"kind": "policy", "loss": LOSS, "precalculateLogprobs": False, "reference": None},
            "optimizer": ADAM, "output": f"{home}/{count}", "activationBytes": 0,
        }
        run_task(task, Hooks(on_step, lambda: False, lambda *_: model), World())
        steps = sorted(b - a for a, b in zip(times[WARM_UP:], times[WARM_UP + 1 :]))
        seconds = steps[len(steps) // 2]
        rows = count * LENGTH
        line = {"shape": shape, "rows": rows, "ms": round(seconds * 1000, 1), "rows_per_s": round(rows / seconds)}
        print(json.dumps({**line, "first_step_s": round(times[1] - times[0], 1)}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--shapes", default="0.5b,1.7b,8b")
    for shape in parser.parse_args().shapes.split(","):
        free()
        measure(shape)


if __name__ == "__main__":
    main()
