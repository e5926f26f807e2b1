"""Products and attention one row at a time, in plain torch: the slow twin of every other kernel.

What a row gets does not depend on the rows beside it, so equal bits test all bookkeeping: pages, forks, chunks.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from .interface import PAGE, Batch


class Reference:
    def product(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        y = torch.empty(len(x), len(weight), device=x.device)
        for i in range(len(x)):
            # a copy of its own: how a row lies in memory may change the order of a sum
            y[i] = F.linear(x[i : i + 1].clone(), weight)[0]
        return y if bias is None else y + bias

    def attend(
        self, q: Tensor, pool: Tensor, batch: Batch, window: int | None, scale: float, cap: float | None
    ) -> Tensor:
        out, row = torch.empty(q.shape, device=q.device), 0
        for piece, pages in zip(batch.pieces, batch.table, strict=True):
            end = piece.start + piece.count
            # [2, kv heads, positions, head size]
            cached = pool[pages[: -(-end // PAGE)]].permute(1, 2, 0, 3, 4).flatten(2, 3).float()
            for position in range(piece.start, end):
                first = 0 if window is None else max(0, position - window + 1)
                k, v = cached[:, :, first : position + 1].clone()
                scores = q[row].float().view(len(k), -1, q.shape[-1]) @ k.transpose(1, 2) * scale
                if cap is not None:
                    scores = (scores / cap).tanh() * cap
                out[row] = (scores.softmax(-1) @ v).view(q.shape[1:])
                row += 1
        return out
