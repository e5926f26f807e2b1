"""Adapters: the factors of each slot. Slot 0 is the base model and has none."""

import torch
from torch import Tensor

from .weights import Files, WeightsError

SITE_OF = {
    **dict.fromkeys(["q", "k", "v", "qkv"], "qkv"),
    "o": "o",
    **dict.fromkeys(["gate", "up", "gate_up"], "gateUp"),
    "down": "down",
}


class Policies:
    def __init__(self, parts: list[dict[str, dict[str, slice]]], device: torch.device, dtype: torch.dtype):
        """`parts`: by layer and site, which outputs are those of each stored map."""
        self._parts, self._device, self._dtype = parts, device, dtype
        self._slots: dict[int, dict[tuple[int, str], list[tuple[slice, Tensor, Tensor]]]] = {}

    def changes(self, slot: int, layer: int, site: str) -> list[tuple[slice, Tensor, Tensor]]:
        """For each adapted map of a site: its outputs, A [rank, in] and scale x B [out, rank]."""
        return self._slots[slot].get((layer, site), []) if slot else []

    def load(self, slot: int, scale: float, file: dict, tensors: list[dict]) -> None:
        """Reads the factors of an adapter. They appear in the slot when all are there."""
        files, factors = Files([file]), {}
        try:
            for tensor in tensors:
                values = files.read(tensor)
                if not values.isfinite().all():
                    raise WeightsError(f"{file['path']} has a value that is not finite")
                factors[tensor["layer"], tensor["name"], tensor["factor"]] = values
            files.check()
        finally:
            files.close()
        changes: dict[tuple[int, str], list[tuple[slice, Tensor, Tensor]]] = {}
        for layer, name, factor in factors:
            if factor == "a":
                a, b = factors[layer, name, "a"], factors[layer, name, "b"].float() * scale
                site = SITE_OF[name]
                change = self._parts[layer][site][name], a.to(self._device, self._dtype), b.to(self._device, self._dtype)
                changes.setdefault((layer, site), []).append(change)
        self._slots[slot] = changes

    def unload(self, slot: int) -> None:
        self._slots.pop(slot, None)
