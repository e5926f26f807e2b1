"""Attention over rows: each row sees its own segment up to itself, and the segment it continues.

Registered with transformers under the name "flywheel". The models pass `rows` through as a keyword argument, so every
family that does so works. bfloat16 on CUDA uses flex attention with a block mask; float32 computes segment by segment,
which is exact, simple and fast enough to compare with.
"""

import functools
from typing import Iterable

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention.flex_attention import BlockMask, flex_attention
from torch.utils.checkpoint import checkpoint
from transformers import AttentionInterface

from .batch import Rows, Segment, whole_numbers

NAME = "flywheel"
# Rows of a block of flex attention.
BLOCK = 128
PADDING = -2
# Scores in float64 that exist at once.
MOST_SCORES = 2**26
# Compute capabilities of GPUs that multiply float64 about as fast as float32: P100, V100, A100, H100 and H200, B200.
FAST_FLOAT64 = {(6, 0), (7, 0), (8, 0), (9, 0), (10, 0)}


@functools.cache
def widens(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether sums of this type are computed in float64 on this device and rounded once.

    CUDA adds up the same float32 product in another order when it has another number of rows. Log-probabilities are off
    by more than 1e-5 then; in float64 the order does not show.
    """
    if dtype is not torch.float32 or device.type != "cuda":
        return False
    return torch.cuda.get_device_capability(device) in FAST_FLOAT64


class RowMask:
    """What the rows of one pass may see, for every window that the model has. None: no window."""

    def __init__(self, rows: Rows, padded: int, windows: Iterable[int | None], device: torch.device, flex: bool):
        """`padded`: number of rows with padding at the end, a multiple of BLOCK for flex attention."""
        self.segments = [segment for segment in rows.segments if segment.count > 0]
        self.parents = [rows.segments[s.parent] if s.parent >= 0 else None for s in self.segments]
        self.blocks: dict[int | None, BlockMask] | None = None
        if flex:
            self.blocks = {window: _block_mask(rows, padded, window, device) for window in windows}


def _block_mask(rows: Rows, padded: int, window: int | None, device: torch.device) -> BlockMask:
    """Made block by block: asking for every pair of rows would take more memory than attention itself."""
    own = torch.full((padded,), PADDING, dtype=torch.int32)
    parent = torch.full((padded,), -1, dtype=torch.int32)
    position = torch.zeros(padded, dtype=torch.int32)
    position[: len(rows.positions)] = whole_numbers(rows.positions)
    count = padded // BLOCK
    some = torch.eye(count, dtype=torch.bool)
    whole = torch.zeros_like(some)
    for index, segment in enumerate(rows.segments):
        if segment.count == 0:
            continue
        end = segment.row + segment.count
        own[segment.row : end], parent[segment.row : end] = index, segment.parent
        queries = _blocks_of(segment)
        inside = slice(-(-segment.row // BLOCK), end // BLOCK)
        for q in range(queries.start, queries.stop):
            some[q, queries.start : q + 1] = True
            if window is None and inside.start <= q < inside.stop:
                whole[q, inside.start : q] = True
        if segment.parent >= 0:
            before = rows.segments[segment.parent]
            some[queries, _blocks_of(before)] = True
            if window is None:
                whole[inside, -(-before.row // BLOCK) : (before.row + before.count) // BLOCK] = True
    own, parent, position = own.to(device), parent.to(device), position.to(device)

    def sees(_b, _h, q, k):
        same = (own[k] == own[q]) | (own[k] == parent[q])
        allowed = (q >= k) & same & ((own[q] >= 0) | (q == k))
        return allowed if window is None else allowed & (position[q] - position[k] < window)

    partial = _listed(some & ~whole, device)
    return BlockMask.from_kv_blocks(*partial, *_listed(whole, device), BLOCK_SIZE=BLOCK, mask_mod=sees)


def _blocks_of(segment: Segment) -> slice:
    return slice(segment.row // BLOCK, (segment.row + segment.count - 1) // BLOCK + 1)


def _listed(blocks: Tensor, device: torch.device) -> tuple[Tensor, Tensor]:
    """The marked columns of each row, first ones first, as [1, 1, rows] counts and [1, 1, rows, columns] indices."""
    counts = blocks.sum(-1, dtype=torch.int32)
    indices = blocks.to(torch.int8).argsort(dim=-1, descending=True, stable=True).to(torch.int32)
    return counts[None, None].to(device), indices[None, None].contiguous().to(device)


def attend(
    module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask,
    *,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    rows: RowMask | None = None,
    **_,
) -> tuple[Tensor, None]:
    """query [1, heads, rows, size] → [1, rows, heads, size]."""
    if rows is None:
        raise ValueError(f"{type(module).__name__} does not pass its keyword arguments to attention")
    if softcap is not None:
        raise ValueError("attention with a soft cap is not supported")
    # rotation may widen these two
    query, key = query.to(value.dtype), key.to(value.dtype)
    if rows.blocks is None:
        out = _by_segment(query, key, value, rows, sliding_window, scaling)
    else:
        out = flex_attention(query, key, value, block_mask=rows.blocks[sliding_window], scale=scaling, enable_gqa=True)
    return out.transpose(1, 2), None


AttentionInterface.register(NAME, attend)


def _by_segment(query, key, value, rows: RowMask, window: int | None, scaling: float | None) -> Tensor:
    product = _wide_product if widens(query.dtype, query.device) else F.scaled_dot_product_attention
    parts = []
    for segment, parent in zip(rows.segments, rows.parents, strict=True):
        own = slice(segment.row, segment.row + segment.count)
        k, v, offset = key[:, :, own], value[:, :, own], 0
        if parent is not None:
            before, offset = slice(parent.row, parent.row + parent.count), parent.count
            k, v = torch.cat((key[:, :, before], k), 2), torch.cat((value[:, :, before], v), 2)
        q_at = torch.arange(segment.count, device=query.device)[:, None] + offset
        k_at = torch.arange(segment.count + offset, device=query.device)[None, :]
        sees = k_at <= q_at
        if window is not None:
            sees &= q_at - k_at < window
        parts.append(product(query[:, :, own], k, v, sees, scale=scaling, enable_gqa=True))
    return torch.cat(parts, 2)


def _wide_product(query: Tensor, key: Tensor, value: Tensor, sees: Tensor, **options) -> Tensor:
    """In float64. The scores of some rows exist at a time, and once more in the backward pass."""

    def some(q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q.double(), k.double(), v.double(), seen, **options).to(q.dtype)

    size = max(1, MOST_SCORES // (query.shape[1] * key.shape[2]))
    parts = zip(query.split(size, 2), sees.split(size), strict=True)
    outputs = [
        checkpoint(some, q, key, value, seen, use_reentrant=False, preserve_rng_state=False) for q, seen in parts
    ]
    return torch.cat(outputs, 2)
