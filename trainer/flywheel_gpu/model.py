"""The decoder over the traits that the server describes: ids in, logits out, keys and values to the cache.

There is no family here. A part that a model does not have changes nothing. The residual stream is float32; what goes
into a product has the type of the weights. Products and attention come from `kernels`, everything else is row by row.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from .kernels.interface import PAGE, Batch, Kernels
from .policies import Policies
from .weights import Layer, Rope, Weights

class Model:
    def __init__(self, description: dict, weights: Weights, policies: Policies, kernels: Kernels, pool: Tensor):
        """pool: [pages, layers, 2, kv heads, 64, head size]"""
        self._traits, self._weights, self._kernels, self._pool = description, weights, kernels, pool
        self._policies = policies
        self._dtype = weights.embedding.dtype
        self._heads, self._kv_heads = description["numHeads"], description["numKvHeads"]

    @torch.inference_mode()
    def forward(self, batch: Batch) -> Tensor:
        """Logits float32 [m, vocab]."""
        traits, weights = self._traits, self._weights
        x = weights.embedding[batch.ids].float() * traits["embeddingScale"]
        for number, layer in enumerate(weights.layers):
            x = self._layer(number, layer, batch, x)
        x = self._norm(x[batch.wanted], weights.final_norm)
        logits = self._kernels.product(x.to(self._dtype), weights.head, None) * traits["logitScale"]
        cap = traits["logitSoftcap"]
        return logits if cap is None else (logits / cap).tanh() * cap

    def _layer(self, number: int, layer: Layer, batch: Batch, x: Tensor) -> Tensor:
        scale = self._traits["residualScale"]
        heads = self._map(number, layer, "qkv", batch, self._norm(x, layer.norms["attention"]))
        attended = self._map(number, layer, "o", batch, self._attention(number, layer, batch, heads))
        x = x + self._norm(attended, layer.norms["attentionPost"]) * scale
        gate, up = self._map(number, layer, "gateUp", batch, self._norm(x, layer.norms["mlp"])).chunk(2, -1)
        active = F.silu(gate) if self._traits["activation"] == "silu" else F.gelu(gate, approximate="tanh")
        mixed = self._map(number, layer, "down", batch, active * up)
        return x + self._norm(mixed, layer.norms["mlpPost"]) * scale

    def _map(self, number: int, layer: Layer, site: str, batch: Batch, x: Tensor) -> Tensor:
        """float32 [n, out]"""
        stored, x = layer.sites[site], x.to(self._dtype)
        y = self._kernels.product(x, stored.weight, stored.bias)
        for slot, rows in batch.adapted:
            for part, a, b in self._policies.changes(slot, number, site):
                narrow = self._kernels.product(x[rows], a, None)
                y[:, part].index_add_(0, rows, self._kernels.product(narrow.to(self._dtype), b, None))
        return y

    def _attention(self, number: int, layer: Layer, batch: Batch, heads: Tensor) -> Tensor:
        """heads: [n, queries, keys, values] -> [n, heads * head size]"""
        traits, (h, kv) = self._traits, (self._heads, self._kv_heads)
        q, k, v = heads.view(len(heads), h + 2 * kv, -1).split([h, kv, kv], 1)
        q, k = self._head_norm(q, layer.q_norm), self._head_norm(k, layer.k_norm)
        if layer.rope is not None:
            rope = self._weights.ropes[layer.rope]
            q, k = turned(q, rope, batch.positions), turned(k, rope, batch.positions)
        pool = self._pool[:, number]
        page, place = batch.places // PAGE, batch.places % PAGE
        pool[page, 0, :, place] = k.to(self._dtype)
        pool[page, 1, :, place] = v.to(self._dtype)
        cap = traits["attentionSoftcap"]
        mixed = self._kernels.attend(q.to(self._dtype), pool, batch, layer.window, traits["attentionScale"], cap)
        return mixed.reshape(len(heads), -1)

    def _norm(self, x: Tensor, weight: Tensor | None) -> Tensor:
        if weight is None:
            return x
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self._traits["normEps"]) * weight

    def _head_norm(self, x: Tensor, weight: Tensor | None) -> Tensor:
        """Over each head, or over all heads of a token together."""
        if weight is None:
            return x
        if self._traits["qkNorm"] == "width":
            return self._norm(x.flatten(1), weight).view_as(x)
        return self._norm(x, weight)


def turned(x: Tensor, rope: Rope, positions: Tensor) -> Tensor:
    """x: [n, heads, head size]; the first dimensions rotate, in halves."""
    cos, sin = rope.cos[positions][:, None], rope.sin[positions][:, None]
    width = cos.shape[-1]
    a, b, rest = x.split([width, width, x.shape[-1] - 2 * width], -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], -1)
