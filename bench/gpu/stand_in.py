"""A stand-in for the server: starts the GPU process with a model of random weights and talks to it over its socket."""

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time

import torch

from flywheel_gpu.channel import SIZES, Frame, encode, parse

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
# heads, kv heads, head size, hidden, inner, layers, vocabulary: as Qwen3
SHAPES = {
    "tiny": (4, 2, 16, 64, 128, 2, 512),
    "1.7B": (16, 8, 128, 2048, 6144, 28, 151_936),
    "8B": (32, 8, 128, 4096, 12_288, 36, 151_936),
}
GREEDY = {
    "temperature": 0, "topK": 0, "topP": 1, "minP": 0, "repetition": 1, "frequency": 0, "presence": 0, "bias": [],
    "allowed": None, "banned": [], "minTokens": 0, "minTokensMask": [], "eos": None, "stopIds": [], "logprobs": None,
    "named": None, "promptLogprobs": None,
}  # fmt: skip


def write_model(folder: str, shape: str) -> tuple[list[dict], dict]:
    """A safetensors-like file of random bfloat16. Returns what the server would say about it: files and model."""
    heads, kv, size, hidden, inner, layers, vocab = SHAPES[shape]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    path, end = os.path.join(folder, f"{shape}.safetensors"), 0
    with open(path, "wb") as file:

        def tensor(*shape: int, scale: float | None = None) -> dict:
            nonlocal end
            values = torch.ones(shape) if scale is None else torch.randn(shape, device=device) * scale
            data = values.to("cpu", torch.bfloat16).contiguous()
            file.write(memoryview(bytes_of(data)))
            at, end = end, end + data.nbytes
            return {"file": 0, "dtype": "BF16", "shape": list(shape), "offset": at}

        def linear(name: str, out: int, inputs: int) -> dict:
            return {"name": name, "weight": tensor(out, inputs, scale=inputs**-0.5), "bias": None}

        norm = lambda: {"weight": tensor(hidden)}
        model = {
            "vocabSize": vocab, "hiddenSize": hidden, "intermediateSize": inner, "numLayers": layers, "numHeads": heads,
            "numKvHeads": kv, "headDim": size, "normEps": 1e-6, "activation": "silu", "attentionScale": size**-0.5,
            "qkvBias": False, "oBias": False, "mlpBias": False, "norm": "rms", "mlp": "gated", "qkNorm": "head",
            "normWeightOffset": 0, "embeddingScale": 1, "residualScale": 1, "logitScale": 1, "logitSoftcap": None,
            "attentionSoftcap": None,
            "ropes": [{"frequencies": [1e6 ** (-2 * i / size) for i in range(size // 2)], "attentionFactor": 1}],
            "embedding": tensor(vocab, hidden, scale=1.0), "head": tensor(vocab, hidden, scale=hidden**-0.5),
            "finalNorm": norm(),
            "layers": [
                {
                    "window": None, "rope": 0, "qNorm": tensor(size), "kNorm": tensor(size),
                    "norms": {"attention": norm(), "attentionPost": None, "mlp": norm(), "mlpPost": None},
                    "sites": {
                        "qkv": [linear(name, count * size, hidden) for name, count in (("q", heads), ("k", kv), ("v", kv))],
                        "o": [linear("o", hidden, heads * size)],
                        "gateUp": [linear("gate", inner, hidden), linear("up", inner, hidden)],
                        "down": [linear("down", hidden, inner)],
                    },
                }
                for _ in range(layers)
            ],
        }  # fmt: skip
    return [{"path": path, "bytes": end}], model


def bytes_of(values: torch.Tensor) -> bytearray:
    data = bytearray(values.nbytes)
    torch.frombuffer(data, dtype=values.dtype).copy_(values.flatten())
    return data


class GpuProcess:
    """A process and what it first said: ready or refused. `seconds`: from its start."""

    def __init__(self, files: list[dict], model: dict, positions: int, rows: int, loras: int = 0, kv_bytes: int | None = None):
        on_gpu, begun = torch.cuda.is_available(), time.monotonic()
        folder = tempfile.mkdtemp()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(os.path.join(folder, "socket"))
        listener.listen()
        nonce = secrets.token_hex(16)
        env = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "trainer"), "FLYWHEEL_GPU_NONCE": nonce}
        env["FLYWHEEL_GPU_SOCKET"] = os.path.join(folder, "socket")
        self._process = subprocess.Popen([sys.executable, "-m", "flywheel_gpu"], env=env)
        listener.settimeout(120)
        self._socket, _ = listener.accept()
        self._socket.settimeout(120)
        self._read = self._socket.makefile("rb")
        dial = self.receive()
        assert dial.header["nonce"] == nonce
        limits = {
            "pageTokens": 64, "maxPositions": positions, "maxRows": rows, "maxStepTokens": 8192, "maxLoras": loras,
            "maxLoraRank": 16, "prefixCaching": True, "maskSlots": 1024,
        }  # fmt: skip
        memory = {"gpuBytes": None, "kvBytes": kv_bytes if on_gpu or kv_bytes else 2**26}
        self.send("hello", {
            "protocol": 2, "device": "cuda" if on_gpu else "cpu", "dtype": "bfloat16" if on_gpu else "float32",
            "memory": memory, "limits": limits, "files": files, "model": model,
        })  # fmt: skip
        self.ready = self.receive()
        self.seconds = time.monotonic() - begun
        self._requests = 0

    def send(self, type: str, fields: dict, arrays: dict[str, torch.Tensor] | None = None) -> None:
        self._socket.sendall(encode(type, fields, arrays or {}))

    def receive(self) -> Frame:
        header, tail = SIZES.unpack(self._read.read(SIZES.size))
        return parse(self._read.read(header), bytearray(self._read.read(tail)))

    def add(self, prompt: torch.Tensor, most: int, sampling: dict, slot: int = 0) -> int:
        """One row; returns its number, which is the request's too. Nothing is found in the prefix cache."""
        self._requests += 1
        number = self._requests
        keys = [[number, 7]]
        fields = {
            "request": number, "rows": [number], "root": f"{number:064x}", "adapter": slot, "rank": 0, "arrival": number,
            "masked": False, "sampling": {**GREEDY, **sampling, "maxTokens": most, "keys": keys},
        }  # fmt: skip
        self.send("add", fields, {"prompt": prompt.to(torch.int32)})
        return number

    def tokens(self, number: int) -> list[int]:
        """All tokens of a row, until it ends. Other rows must have ended."""
        found = []
        while True:
            frame = self.receive()
            if frame.type == "step":
                assert not frame.header["faults"], frame.header["faults"]
                found += frame.arrays["ids"].tolist()
                if (frame.arrays["finish"] > 0).any():
                    return found

    def answer(self, type: str, fields: dict) -> Frame:
        """To a call about an adapter."""
        self.send(type, {"call": 1, **fields})
        while (frame := self.receive()).type not in ("done", "failed"):
            pass
        return frame

    def wait(self) -> int:
        """The exit status of a process that ends by itself."""
        return self._process.wait(60)

    def close(self) -> int:
        """The exit status."""
        self._socket.shutdown(socket.SHUT_RDWR)
        return self.wait()


def say(**found) -> None:
    print(json.dumps(found), flush=True)
