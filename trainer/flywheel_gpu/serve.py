"""Puts the process together from what the server says in `hello`, and answers its calls about adapters."""


import torch

from .cache import Cache
from .channel import Channel, Frame
from .kernels.interface import PAGE, Kernels
from .kernels.plain import Plain
from .kernels.reference import Reference
from .model import Model
from .policies import Policies
from .sample import Masks
from .schedule import Schedule
from .steps import Steps
from .weights import Files, Weights, WeightsError, load

# Of what is free when the server does not say how much.
SHARE = 0.9
# Bytes for what a step needs beside weights, cache and adapters: logits of a chunk, scores of attention.
RESERVED = 3 * 2**30
# Logits of one chunk, when all of them are asked for: 64 MiB.
MOST_LOGITS = 2**24
DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32}


class Refused(Exception):
    """The process cannot start. The message is for the operator."""


class Server:
    def __init__(self, channel: Channel, hello: dict):
        self._channel, limits, model = channel, hello["limits"], hello["model"]
        device, dtype = device_of(hello["device"]), DTYPES[hello["dtype"]]
        weights = weights_of(hello, device, dtype)
        parts = [{site: stored.parts for site, stored in layer.sites.items()} for layer in weights.layers]
        self._policies = Policies(parts, device, dtype)
        page_bytes = model["numLayers"] * 2 * model["numKvHeads"] * PAGE * model["headDim"] * dtype.itemsize
        adapters = adapter_bytes(weights, limits["maxLoras"], limits["maxLoraRank"], dtype)
        memory = hello["memory"]
        pool_bytes = memory["kvBytes"]
        if pool_bytes is None:
            pool_bytes = room(memory["gpuBytes"], weights.bytes) - adapters - RESERVED
        pages = pool_bytes // page_bytes
        if pages < 1:
            raise Refused(f"the GPU has no room for keys and values beside {weights.bytes / 1e9:.1f} GB of weights")
        shape = (pages, model["numLayers"], 2, model["numKvHeads"], PAGE, model["headDim"])
        try:
            pool = torch.zeros(shape, dtype=dtype, device=device)
        except RuntimeError:
            raise Refused(f"{pages * page_bytes / 1e9:.1f} GB for keys and values do not fit the memory") from None
        kernels: Kernels = Reference() if device.type == "cpu" else Plain()
        vocab = model["vocabSize"]
        cache = Cache(pages, limits["prefixCaching"])
        schedule = Schedule(cache, limits["maxRows"], limits["maxStepTokens"], MOST_LOGITS // vocab)
        masks = Masks(limits["maskSlots"], vocab, device)
        decoder = Model(model, weights, self._policies, kernels, pool)
        self.steps = Steps(channel, schedule, decoder, pool, masks, vocab)
        self.steps.handlers |= {"load": self._load, "unload": self._unload}
        plan = {"weights": weights.bytes, "pool": pages * page_bytes, "adapters": adapters, "reserved": RESERVED}
        channel.send("ready", {"pages": pages, "pageTokens": PAGE, "device": about(device), "memory": plan})

    def _load(self, frame: Frame) -> None:
        header = frame.header
        try:
            self._policies.load(header["slot"], header["scale"], header["file"], header["tensors"])
        except (WeightsError, OSError) as error:
            self._channel.send("failed", {"call": header["call"], "message": str(error)})
        except torch.OutOfMemoryError:
            self._channel.send("failed", {"call": header["call"], "message": "the GPU has no memory left for this adapter"})
        else:
            self._channel.send("done", {"call": header["call"]})

    def _unload(self, frame: Frame) -> None:
        self._policies.unload(frame.header["slot"])
        self._channel.send("done", {"call": frame.header["call"]})


def device_of(name: str) -> torch.device:
    if name == "cuda" and not torch.cuda.is_available():
        raise Refused("torch finds no GPU: check the driver with nvidia-smi, and that this torch is built for CUDA")
    if name == "cpu":
        torch.set_num_threads(1)  # rows are computed one by one
    return torch.device(name)


def weights_of(hello: dict, device: torch.device, dtype: torch.dtype) -> Weights:
    try:
        files = Files(hello["files"])
        try:
            weights = load(files, hello["model"], hello["limits"]["maxPositions"], device, dtype)
            files.check()
            return weights
        finally:
            files.close()
    except (WeightsError, OSError) as error:
        raise Refused(str(error)) from error
    except torch.OutOfMemoryError:
        raise Refused("the weights do not fit the memory of this GPU: end other programs that use it") from None


def room(gpu_bytes: int | None, weights: int) -> int:
    """What is left beside the weights, which are loaded, of all that the process may take."""
    free, _ = torch.cuda.mem_get_info()
    return int((free + weights) * SHARE) - weights if gpu_bytes is None else min(free, gpu_bytes - weights)


def adapter_bytes(weights: Weights, slots: int, rank: int, dtype: torch.dtype) -> int:
    maps = [stored for layer in weights.layers for stored in layer.sites.values()]
    ranks = sum(len(m.parts) * m.weight.shape[1] + m.weight.shape[0] for m in maps)
    return slots * rank * ranks * dtype.itemsize


def about(device: torch.device) -> dict:
    if device.type == "cpu":
        return {"name": "cpu", "capability": None, "totalBytes": 0, "freeBytes": 0}
    free, all_bytes = torch.cuda.mem_get_info()
    name, capability = torch.cuda.get_device_name(), list(torch.cuda.get_device_capability())
    return {"name": name, "capability": capability, "totalBytes": all_bytes, "freeBytes": free}
