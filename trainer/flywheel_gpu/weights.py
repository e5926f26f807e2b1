"""Reads tensors out of safetensors files and lays them out for the decoder. The server says where each one begins.

Several threads read while earlier tensors go to the device. Maps that share their input lie side by side: query, key
and value; gate and up.
"""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor

DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
READERS = 8


class WeightsError(Exception):
    """A file is not what the server said. The message is for the user."""


@dataclass
class Map:
    """The stored maps of a site as one: y = weight x + bias."""

    weight: Tensor
    """[out, in]"""
    bias: Tensor | None
    """float32 [out]"""
    parts: dict[str, slice]
    """Which outputs are those of each stored map."""


@dataclass
class Layer:
    window: int | None
    rope: int | None
    norms: dict[str, Tensor | None]
    q_norm: Tensor | None
    k_norm: Tensor | None
    sites: dict[str, Map]


@dataclass
class Rope:
    """Angles of positions: cos and sin, float32 [positions, rotated / 2]."""

    cos: Tensor
    sin: Tensor


@dataclass
class Weights:
    """Norm weights are float32 and have their offset."""

    embedding: Tensor
    head: Tensor
    final_norm: Tensor
    layers: list[Layer]
    ropes: list[Rope]

    @property
    def bytes(self) -> int:
        maps = [m.weight for layer in self.layers for m in layer.sites.values()]
        own_head = [] if self.head is self.embedding else [self.head]
        return sum(tensor.nbytes for tensor in [self.embedding, *own_head, *maps])


class Files:
    """Open files of weights. A tensor is {file, dtype, shape, offset}."""

    def __init__(self, files: Iterable[dict]):
        self._files = [(file["path"], os.open(file["path"], os.O_RDONLY | os.O_CLOEXEC), file) for file in files]
        self.check()

    def check(self) -> None:
        """Call it once more after reading: a file may change meanwhile."""
        for path, handle, file in self._files:
            found = os.fstat(handle)
            if found.st_size != file["bytes"] or str(found.st_mtime_ns) != file.get("mtimeNs", str(found.st_mtime_ns)):
                raise WeightsError(f"{path} changed while it was read")

    def read(self, tensor: dict) -> Tensor:
        path, handle, _ = self._files[tensor.get("file", 0)]
        dtype, shape = DTYPES[tensor["dtype"]], tensor["shape"]
        size = dtype.itemsize
        for length in shape:
            size *= length
        data, done = bytearray(size), 0
        memory = memoryview(data)
        while done < size:
            read = os.preadv(handle, [memory[done:]], tensor["offset"] + done)
            if read == 0:
                raise WeightsError(f"{path} ends inside a tensor")
            done += read
        return torch.frombuffer(data, dtype=dtype).view(shape)

    def close(self) -> None:
        for _, handle, _ in self._files:
            os.close(handle)


def load(files: Files, model: dict, positions: int, device: torch.device, dtype: torch.dtype) -> Weights:
    """`model`: the server's description. `positions`: the longest context."""
    with ThreadPoolExecutor(READERS) as readers:
        reads = {key: readers.submit(files.read, tensor) for key, tensor in _tensors(model)}

        def take(tensor: dict, dtype: torch.dtype) -> Tensor:
            values = reads.pop(_key(tensor)).result().to(device, dtype)
            if not values.isfinite().all():
                raise WeightsError(f"the tensor at byte {tensor['offset']} has a value that is not finite")
            return values

        def norm(tensor: dict | None) -> Tensor | None:
            return None if tensor is None else take(tensor, torch.float32) + model["normWeightOffset"]

        def site(maps: list[dict]) -> Map:
            rows = [linear["weight"]["shape"][0] for linear in maps]
            weight = torch.empty(sum(rows), maps[0]["weight"]["shape"][1], device=device, dtype=dtype)
            parts, end = {}, 0
            for linear, count in zip(maps, rows, strict=True):
                parts[linear["name"]] = slice(end, end + count)
                weight[end : end + count] = take(linear["weight"], dtype)
                end += count
            biases = [take(linear["bias"], torch.float32) for linear in maps if linear["bias"]]
            return Map(weight, torch.cat(biases) if biases else None, parts)

        embedding = take(model["embedding"], dtype)
        layers = [
            Layer(
                window=layer["window"],
                rope=layer["rope"],
                norms={place: norm(given and given["weight"]) for place, given in layer["norms"].items()},
                q_norm=norm(layer["qNorm"]),
                k_norm=norm(layer["kNorm"]),
                sites={name: site(maps) for name, maps in layer["sites"].items()},
            )
            for layer in model["layers"]
        ]
        return Weights(
            embedding=embedding,
            head=embedding if model["head"] is None else take(model["head"], dtype),
            final_norm=norm(model["finalNorm"]["weight"]),
            layers=layers,
            ropes=[_rope(rope, positions, device) for rope in model["ropes"]],
        )


def _key(tensor: dict) -> tuple[int, int]:
    return tensor["file"], tensor["offset"]


def _tensors(description: object) -> list[tuple[tuple[int, int], dict]]:
    """Every tensor of a description, in its order."""
    if isinstance(description, list):
        return [found for each in description for found in _tensors(each)]
    if not isinstance(description, dict):
        return []
    if "offset" in description:
        return [(_key(description), description)]
    return [found for each in description.values() for found in _tensors(each)]


def _rope(rope: dict, positions: int, device: torch.device) -> Rope:
    frequencies = torch.tensor(rope["frequencies"], dtype=torch.float32)
    angles = (torch.arange(positions, dtype=torch.float32)[:, None] * frequencies).double()
    turn = lambda values: (values * rope["attentionFactor"]).float().to(device)
    return Rope(turn(angles.cos()), turn(angles.sin()))
