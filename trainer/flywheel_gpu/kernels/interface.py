"""What the model needs of a device: products and attention over the paged cache."""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

PAGE = 64
"""Positions of a page."""


@dataclass
class Piece:
    """Consecutive positions of one sequence in a step: start .. start + count - 1."""

    start: int
    count: int


@dataclass
class Batch:
    """The rows of one step: piece after piece."""

    ids: Tensor
    """int64 [n]"""
    positions: Tensor
    """int64 [n]"""
    places: Tensor
    """int64 [n]: page x 64 + place in it, where a row's keys and values go."""
    pieces: list[Piece]
    table: Tensor
    """int64 [pieces, pages]: the pages of each piece's positions 0 .. start + count - 1, then anything."""
    adapted: list[tuple[int, Tensor]]
    """Slots of adapters, each with its rows, int64."""
    wanted: Tensor
    """int64 [m]: rows whose logits are needed"""


class Kernels(Protocol):
    def product(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """x: [n, in], weight: [out, in], of one type. Returns float32 [n, out]."""

    def attend(
        self, q: Tensor, pool: Tensor, batch: Batch, window: int | None, scale: float, cap: float | None
    ) -> Tensor:
        """q: [n, heads, head size]; pool: [pages, 2, kv heads, 64, head size], the keys and values of one layer, with those of
        these rows. A query at position p sees 0 <= p - k < window. Returns float32 [n, heads, head size]."""
