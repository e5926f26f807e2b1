"""How exact float32 is with sums in float64, which GPUs with a fast float64 get. Prints differences as JSON.

Computes on any machine what such a GPU would. Arguments as for fixtures.py: a folder with config.json and
model.safetensors, and the fixture's folder.
"""

import json
import sys

import torch

import fixtures
import flywheel_trainer.attention as attention
import flywheel_trainer.model as model
from flywheel_trainer.adapter import flatten, load_adapter
from flywheel_trainer.batch import Memory, Sequence, plan_micro_batches


def widen(dtype: torch.dtype, _: torch.device) -> bool:
    return dtype is torch.float32


def passes(base: str, fixture: str) -> dict[bool, tuple[torch.Tensor, torch.Tensor]]:
    """Log-probabilities and gradient of a group of replies, by whether they share the rows of their prompt."""
    device = torch.device("cpu")
    trainable = model.TrainableModel.load(base, "float32", device)
    adapter = load_adapter(fixture, trainable.layers)
    params = flatten(adapter, device)
    found = {}
    for shared in (True, False):
        gradient = torch.zeros_like(params)
        trainable.set_adapter(params, adapter, adapter.scale, gradient)
        sequences = []
        for index in range(6):
            ids = [3 + (p * 7 if p < 24 else p * 13 + index * 29) % 250 for p in range(40 + index)]
            trained = list(range(23, len(ids) - 1))
            sequences.append(Sequence(index, ids, trained, torch.zeros(len(trained)), 0.0, 1.0, 0 if shared else -1))
        logprobs = []
        for part in [sequences] if shared else [[one] for one in sequences]:
            for batch in plan_micro_batches(part, Memory(10**6, 10**6)):
                out = trainable.forward(batch).logprobs
                out.backward(torch.ones_like(out))
                logprobs.append(out.detach())
        found[shared] = torch.cat(logprobs), gradient
    return found


def main(base: str, fixture: str) -> None:
    plain = passes(base, fixture)[False]
    attention.widens = model.widens = widen
    # several parts of a segment's scores
    attention.MOST_SCORES = 1000
    wide = passes(base, fixture)
    relative = lambda a, b: float((a - b).norm() / b.norm())
    found = {
        "shared": float((wide[True][0] - wide[False][0]).abs().max()),
        "shared_gradient": relative(wide[True][1], wide[False][1]),
        "plain": float((wide[False][0] - plain[0]).abs().max()),
        "plain_gradient": relative(wide[False][1], plain[1]),
    }
    print(json.dumps(found | fixtures.compare(base, fixture)))


if __name__ == "__main__":
    main(*sys.argv[1:3])
