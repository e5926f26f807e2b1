"""Draws tokens: the numbers of src/sampling (float-order, random, weights, truncate, draw), in torch, bit for bit.

Every function works on rows of logits [rows, entries] at once. Entries are padded to whole blocks of 64 with -inf, as
the sums over a row have one fixed order: four floats at a time, then doubles by block, then over the blocks.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

BLOCK = 64
# Entries further below the largest than this, in units of the temperature, have weight 0: 64 octaves.
WEIGHT_RANGE = 64 * math.log(2)
LOG2_E = 1 / math.log(2)
# 2^f = 1 + c1 f + ... + c6 f^6 for |f| <= 1/2
C1, C2, C3 = 0.6931472028555266, 0.24022647913604217, 0.055503324700364294
C4, C5, C6 = 0.009618437356975516, 0.0013398874871235252, 0.0001535336321394284
# Adding it rounds a float to an integer and leaves that in the low bits.
ROUNDING = 12_582_912.0
LOW_32 = 0xFFFFFFFF


def padded(rows: Tensor) -> Tensor:
    return F.pad(rows, (0, -rows.shape[1] % BLOCK), value=-math.inf)


def sort_key(values: Tensor) -> Tensor:
    """int32 keys in the order of the floats. Neighbours have neighbouring keys; -0 has the key of +0."""
    bits = (values + 0.0).view(torch.int32)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


def key_to_float(keys: Tensor) -> Tensor:
    return (keys ^ ((keys >> 31) & 0x7FFFFFFF)).view(torch.float32)


def uniform(keys: Tensor, position: Tensor, attempt: Tensor) -> Tensor:
    """Philox4x32-10 at counter (position, attempt, 0, 0): float64 in [0, 1). keys: int64 [rows, 2], low and high."""
    w0, w1, w2, w3 = position.clone(), attempt.clone(), torch.zeros_like(position), torch.zeros_like(position)
    k0, k1 = keys[:, 0].clone(), keys[:, 1].clone()
    for _ in range(10):
        p0, p1 = w0 * 0xD2511F53, w2 * 0xCD9E8D57  # 64 bits, perhaps with a sign
        w0, w1, w2, w3 = (p1 >> 32 & LOW_32) ^ w1 ^ k0, p1 & LOW_32, (p0 >> 32 & LOW_32) ^ w3 ^ k1, p0 & LOW_32
        k0, k1 = k0 + 0x9E3779B9 & LOW_32, k1 + 0xBB67AE85 & LOW_32
    return ((w0 >> 5) * 2**26 + (w1 >> 6)).double() * 2.0**-53


def weightless_below(largest: Tensor, temperature: Tensor) -> Tensor:
    """float32 [rows]: entries below it have weight 0."""
    return (largest.double() - WEIGHT_RANGE * temperature).float()


def weigh(values: Tensor, largest: Tensor, temperature: Tensor, floor: Tensor) -> Tensor:
    """float32: e^((entry - largest) / temperature) of entries >= floor, else 0. Exactly 1 for the largest."""
    octaves = (LOG2_E / temperature).float()[:, None]
    y = (values - largest[:, None]) * octaves
    t = y + ROUNDING
    y = y - (t - ROUNDING)
    w = y * y
    b = y * C5 + C4
    a = y * C3 + C2
    b = w * C6 + b
    a = w * b + a
    y = y * C1 + 1.0
    w = a * w + y
    w = (w.view(torch.int32) + (t.view(torch.int32) << 23)).view(torch.float32)
    return torch.where(values >= floor[:, None], w, 0.0)


def block_sums(weights: Tensor) -> Tensor:
    """float64 [rows, blocks]."""
    w = weights.view(len(weights), -1, 4, 4, 4)  # block, four vectors at a time, vector, lane
    s = ((w[..., 0, :] + w[..., 1, :]) + (w[..., 2, :] + w[..., 3, :])).double()
    s = ((s[..., 0, :] + s[..., 1, :]) + s[..., 2, :]) + s[..., 3, :]
    s = s[..., :2] + s[..., 2:]
    return s[..., 0] + s[..., 1]


def total(sums: Tensor) -> Tensor:
    """float64 [rows]: one after another."""
    return sums.cumsum(-1)[:, -1]


def place_of(target: Tensor, widths: Tensor) -> tuple[Tensor, Tensor]:
    """Where `target` [rows] falls when widths [rows, n] are laid end to end: the index, and the distance from its start.

    Beyond the end, the last width that is not 0.
    """
    rest = target[:, None] - F.pad(widths.cumsum(-1)[:, :-1], (1, 0))
    real = widths != 0
    hit = real & (rest < widths)
    last = (widths.shape[1] - 1 - real.flip(-1).int().argmax(-1)) * real.any(-1)
    index = torch.where(hit.any(-1), hit.int().argmax(-1), last)
    return index, rest.gather(1, index[:, None])[:, 0]


def token_at(target: Tensor, weights: Tensor, sums: Tensor) -> Tensor:
    """The token on which `target`, a part of the sum, falls when weights are laid end to end by id."""
    block, rest = place_of(target, sums)
    rows = torch.arange(len(weights), device=weights.device)
    inside = weights.view(len(weights), -1, BLOCK)[rows, block].double()
    return block * BLOCK + place_of(rest, inside)[0]


def survivor_floor(
    values: Tensor, largest: Tensor, temperature: Tensor, min_p: Tensor, top_k: Tensor, vocab: int
) -> Tensor:
    """The lowest logit that may be drawn, float32 [rows]. All entries equal to the k-th largest may."""
    floor = weightless_below(largest, temperature)
    scaled = (largest.double() + temperature * min_p.log()).float()
    floor = torch.where(min_p > 0, torch.maximum(floor, scaled), floor)
    limited = (top_k > 0) & (top_k < vocab)
    most = int(torch.where(limited, top_k, 0).max())
    if most == 0:
        return floor
    kth = values.topk(most).values.gather(1, (top_k.clamp(1, most) - 1)[:, None])[:, 0]
    return torch.where(limited & (kth >= floor), kth, floor)


def draw(
    values: Tensor, largest: Tensor, temperature: Tensor, top_p: Tensor, floor: Tensor, keys: Tensor, position: Tensor
) -> Tensor:
    """One token of each row, int64: inverse CDF over the entries >= floor within the top_p nucleus.

    A token is drawn from a superset of the nucleus and kept if all more likely tokens together hold less than top_p of
    the mass. If not, the next draw is among the more likely ones.
    """
    weights = weigh(values, largest, temperature, floor)
    sums = block_sums(weights)
    mass = total(sums)
    target = top_p * mass
    ids = torch.zeros(len(values), dtype=torch.int64, device=values.device)
    left = torch.arange(len(values), device=values.device)
    cut_weights, attempt = weights, 0
    while True:
        attempts = torch.full_like(left, attempt)
        got = token_at(uniform(keys[left], position[left], attempts) * mass, cut_weights, sums)
        ids[left] = got
        value = values[left].gather(1, got[:, None])
        above_weights = torch.where(values[left] >= key_to_float(sort_key(value) + 1), weights[left], 0.0)
        above_sums = block_sums(above_weights)
        above = total(above_sums)
        limited = top_p[left] != 1
        again = limited & (above >= target[left])
        edge = limited & ~again
        if edge.any():
            here = left[edge]
            chosen = _at_the_edge(
                *(values[here], weights[here], got[edge], above_weights[edge], above_sums[edge], above[edge]),
                *(target[here], uniform(keys[here], position[here], attempts[edge] + 1)),
            )
            ids[here] = chosen
        if not again.any():
            return ids
        left, mass = left[again], above[again]
        cut_weights, sums = above_weights[again], above_sums[again]
        attempt += 1


def _at_the_edge(
    values: Tensor, weights: Tensor, got: Tensor, above_weights: Tensor, above_sums: Tensor, above: Tensor,
    target: Tensor, number: Tensor,
) -> Tensor:
    """Among equal entries, lower ids count as more likely, so perhaps only the first few belong to the nucleus."""
    value, weight = values.gather(1, got[:, None]), weights.gather(1, got[:, None])[:, 0].double()
    kept = ((target - above) / weight).ceil().clamp(1, values.shape[1])
    equal = values == value
    order = equal.cumsum(-1)  # from 1
    inside = order.gather(1, got[:, None])[:, 0] - 1 < kept
    # One beyond the edge. Now the nucleus is known: the entries above, and these.
    point = number * (above + kept * weight)
    place = torch.minimum(kept - 1, ((point - above) / weight).floor()).clamp(min=0)
    among = (equal & (order == place.long()[:, None] + 1)).int().argmax(-1)
    beyond = torch.where(point < above, token_at(point, above_weights, above_sums), among)
    return torch.where(inside, got, beyond)
