"""Products by the library and attention in plain torch, for a GPU. What a row gets may depend on the rows beside it in the
last bits."""

import torch
from torch import Tensor

from .interface import PAGE, Batch

# Entries of scores that exist at once.
MOST_SCORES = 2**26


class Plain:
    def product(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        y = torch.mm(x, weight.t(), **_wide(x))
        return y if bias is None else y + bias

    def attend(
        self, q: Tensor, pool: Tensor, batch: Batch, window: int | None, scale: float, cap: float | None
    ) -> Tensor:
        out, positions, pieces = torch.empty(q.shape, device=q.device), batch.positions, batch.pieces
        # Rows that decode come first and go together.
        single = next((i for i, piece in enumerate(pieces) if piece.count > 1), len(pieces))
        longest = max((piece.start + 1 for piece in pieces[:single]), default=0)
        for part in _parts(0, single, q.shape[1], longest):
            pages = batch.table[part, : -(-longest // PAGE)]
            out[part] = _attend(q[part, None], pool, pages, positions[part, None], window, scale, cap)[:, 0]
        row = single
        for i, piece in enumerate(pieces[single:], single):
            end = piece.start + piece.count
            pages = batch.table[i : i + 1, : -(-end // PAGE)]
            for part in _parts(row, row + piece.count, q.shape[1], end):
                out[part] = _attend(q[None, part], pool, pages, positions[None, part], window, scale, cap)[0]
            row += piece.count
        return out


def _parts(start: int, end: int, heads: int, keys: int) -> list[slice]:
    """Rows start .. end - 1, as many at a time as their scores allow."""
    most = max(1, MOST_SCORES // (heads * max(PAGE, keys)))
    return [slice(first, min(first + most, end)) for first in range(start, end, most)]


def _attend(
    q: Tensor, pool: Tensor, pages: Tensor, positions: Tensor, window: int | None, scale: float, cap: float | None
) -> Tensor:
    """q: [b, n, heads, head size], pages: [b, p], positions: [b, n] -> float32 [b, n, heads, head size]"""
    (b, n, heads, size), kv = q.shape, pool.shape[2]
    # One copy: [2, kv heads x b, positions, head size]
    k, v = pool.permute(1, 2, 0, 3, 4)[:, :, pages].reshape(2, kv * b, -1, size)
    grouped = q.view(b, n, kv, heads // kv, size).permute(2, 0, 3, 1, 4).reshape(kv * b, -1, size)
    scores = _products(grouped, k.transpose(1, 2)) * scale
    if cap is not None:
        scores = (scores / cap).tanh() * cap
    behind = positions[:, :, None] - torch.arange(k.shape[1], device=q.device)  # [b, n, positions]
    hidden = (behind < 0) if window is None else (behind < 0) | (behind >= window)
    scores = scores.view(kv, b, -1, n, k.shape[1]).masked_fill(hidden[None, :, None], -torch.inf)
    mixed = _products(scores.softmax(-1).to(v.dtype).view(kv * b, -1, k.shape[1]), v)
    return mixed.view(kv, b, -1, n, size).permute(1, 3, 0, 2, 4).reshape(b, n, heads, size)


def _products(a: Tensor, b: Tensor) -> Tensor:
    """float32 [batch, n, m]"""
    return torch.bmm(a, b, **_wide(a))


def _wide(x: Tensor) -> dict:
    """float32 results of rounded factors."""
    return {} if x.dtype == torch.float32 else {"out_dtype": torch.float32}
