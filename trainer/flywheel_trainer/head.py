"""Log-probabilities and entropies of the rows that predict a trained token, without ever holding all logits.

The logits of a chunk of rows exist once in the forward pass and once more in the backward pass. Sums are float32.
"""

import torch
from torch import Tensor

# Bytes of float32 logits that exist at once.
CHUNK_BYTES = {"cpu": 2**26, "cuda": 2**30}


def head(hidden: Tensor, weight: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """hidden [rows, width], weight [vocabulary, width], targets [rows] → logprobs and entropies, [rows] float32.

    Entropies are constants: they carry no gradient.
    """
    return _Head.apply(hidden, weight, targets)


class _Head(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hidden: Tensor, weight: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        logprobs = torch.empty(len(hidden), device=hidden.device)
        entropies = torch.empty_like(logprobs)
        totals = torch.empty_like(logprobs)
        for rows in _chunks(hidden, weight):
            logits = (hidden[rows] @ weight.T).float()
            total = logits.logsumexp(-1)
            chosen = logits.gather(-1, targets[rows, None])[:, 0]
            totals[rows] = total
            logprobs[rows] = chosen - total
            # sum p (total - logit)
            probabilities = (logits - total[:, None]).exp_()
            entropies[rows] = total - torch.linalg.vecdot(probabilities, logits.nan_to_num(neginf=0.0))
        ctx.save_for_backward(hidden, weight, targets, totals)
        ctx.mark_non_differentiable(entropies)
        return logprobs, entropies

    @staticmethod
    def backward(ctx, d_logprobs: Tensor, _: Tensor | None):
        hidden, weight, targets, totals = ctx.saved_tensors
        d_hidden = torch.empty_like(hidden)
        for rows in _chunks(hidden, weight):
            logits = (hidden[rows] @ weight.T).float()
            # d logprob / d logits = onehot - p
            d_logits = (logits - totals[rows, None]).exp_().mul_(-d_logprobs[rows, None])
            d_logits.scatter_add_(-1, targets[rows, None], d_logprobs[rows, None])
            d_hidden[rows] = d_logits.to(weight.dtype) @ weight
        return d_hidden, None, None


def _chunks(hidden: Tensor, weight: Tensor):
    size = max(16, CHUNK_BYTES[hidden.device.type] // (4 * len(weight)))
    for start in range(0, len(hidden), size):
        yield slice(start, start + size)
