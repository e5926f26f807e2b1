"""LoRA adapters: PEFT folders, the flat vector of parameters that is trained, AdamW and its state.

Files are those of the server's own trainer, so a policy can move between both: adapter_config.json and
adapter_model.safetensors as PEFT and vLLM read them, optimizer.safetensors as src/training/onnx/tensor-files.ts.
"""

import json
import math
import os
import re
import shutil
from dataclasses import dataclass

import torch
from safetensors import safe_open
from torch import Tensor

LINEARS = {
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "o": "self_attn.o_proj",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
}
NAMES = {path: name for name, path in LINEARS.items()}
KEY = re.compile(r"^(?:base_model\.model\.)?(?:.*\.)?layers\.(\d{1,6})\.(.+)\.lora_([AB])(?:\.[\w-]+)?\.weight$")
OPTIMIZER_FILE = "optimizer.safetensors"
# The largest float32. A moment that becomes infinite stays so, and its parameter would never change again.
LARGEST = torch.finfo(torch.float32).max
CLIP_EPSILON = 1e-6
# Numbers that AdamW widens to float64 at once.
CHUNK = 2**24


class AdapterError(Exception):
    """The adapter cannot be used. The message is for the user."""


@dataclass
class Adapter:
    rank: int
    alpha: float
    rank_stabilised: bool
    tensors: dict[str, Tensor]
    """By "LAYER.MAP.FACTOR", as in "3.q.a": factor A [rank, in] or B [out, rank], float32. Always in the same order."""

    @property
    def scale(self) -> float:
        return self.alpha / (math.sqrt(self.rank) if self.rank_stabilised else self.rank)


def load_adapter(folder: str, layers: int) -> Adapter:
    with open(os.path.join(folder, "adapter_config.json"), encoding="utf8") as file:
        config = json.load(file)
    found: dict[str, Tensor] = {}
    with safe_open(os.path.join(folder, "adapter_model.safetensors"), "pt") as weights:
        for key in weights.keys():
            match = KEY.match(key)
            name = NAMES.get(match[2]) if match else None
            if name is None:
                raise AdapterError(f"{key} is none of the LoRA weights that this trainer knows")
            found[f"{int(match[1])}.{name}.{match[3].lower()}"] = weights.get_tensor(key).float()
    names = [f"{layer}.{name}.{factor}" for layer in range(layers) for name in LINEARS for factor in "ab"]
    missing = next((name for name in names if name not in found), None)
    if missing is not None:
        layer, linear, _ = missing.split(".")
        raise AdapterError(f"the adapter has no weights for {linear} in layer {layer}; it must cover every linear layer")
    if len(found) > len(names):
        raise AdapterError(f"the adapter is for a model of more than {layers} layers")
    return Adapter(
        rank=config["r"],
        alpha=config["lora_alpha"],
        rank_stabilised=config.get("use_rslora", False),
        tensors={name: found[name] for name in names},
    )


def save_step(folder: str, adapter: Adapter, state: "AdamState", objective: str, base_name: str) -> None:
    """Writes the adapter and the state as a new folder. It appears complete or not at all, and is on the disk then."""
    temporary = f"{folder}.writing"
    shutil.rmtree(temporary, ignore_errors=True)
    os.makedirs(temporary)
    try:
        path = "base_model.model.model.layers.{}.{}.lora_{}.weight"
        tensors = {}
        for name, tensor in adapter.tensors.items():
            layer, linear, factor = name.split(".")
            tensors[path.format(layer, LINEARS[linear], factor.upper())] = tensor
        _save(tensors, os.path.join(temporary, "adapter_model.safetensors"), {"format": "pt"})
        with open(os.path.join(temporary, "adapter_config.json"), "w", encoding="utf8") as file:
            json.dump(_peft_config(adapter, base_name), file, indent=2)
            file.write("\n")
        state.save(os.path.join(temporary, OPTIMIZER_FILE), adapter, objective)
        for name in [*os.listdir(temporary), "."]:
            _sync(os.path.join(temporary, name))
        os.rename(temporary, folder)
        _sync(os.path.dirname(os.path.abspath(folder)))
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _peft_config(adapter: Adapter, base_name: str) -> dict:
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base_name,
        "r": adapter.rank,
        "lora_alpha": adapter.alpha,
        "lora_dropout": 0,
        "target_modules": [f"{name}_proj" for name in LINEARS],
        "bias": "none",
        "use_rslora": adapter.rank_stabilised,
        "use_dora": False,
        "modules_to_save": None,
        "fan_in_fan_out": False,
        "inference_mode": True,
    }


def _save(tensors: dict[str, Tensor], path: str, metadata: dict[str, str]) -> None:
    """A safetensors file of float32 tensors. The library orders metadata at random, so its files differ every time."""
    header: dict[str, dict] = {"__metadata__": metadata}
    end = 0
    for name, tensor in tensors.items():
        start, end = end, end + tensor.nbytes
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            file.write(tensor.cpu().contiguous().numpy().data)


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flatten(adapter: Adapter, device: torch.device) -> Tensor:
    """All parameters one after the other, float32."""
    return torch.cat([tensor.reshape(-1) for tensor in adapter.tensors.values()]).to(device)


def unflatten(flat: Tensor, adapter: Adapter) -> dict[str, Tensor]:
    """Views of the flat vector in the shapes of the adapter's tensors."""
    sizes = [tensor.numel() for tensor in adapter.tensors.values()]
    return {
        name: part.view(like.shape)
        for (name, like), part in zip(adapter.tensors.items(), flat.split(sizes), strict=True)
    }


@dataclass
class AdamState:
    """Both moments of every parameter, flat, float32."""

    step: int
    first: Tensor
    second: Tensor

    @staticmethod
    def fresh(params: Tensor) -> "AdamState":
        return AdamState(0, torch.zeros_like(params), torch.zeros_like(params))

    @staticmethod
    def load(path: str | None, adapter: Adapter, params: Tensor, objective: str) -> "AdamState":
        """The stored state, or a new one when there is none or it belongs to another objective or other parameters."""
        fresh = AdamState.fresh(params)
        if path is None:
            return fresh
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("objective") != objective or not metadata.get("step", "").isdigit():
                return fresh
            keys = set(file.keys())
            moments = []
            for prefix in ("first.", "second."):
                parts = []
                for name, like in adapter.tensors.items():
                    if prefix + name not in keys or file.get_slice(prefix + name).get_shape() != [like.numel()]:
                        return fresh
                    parts.append(file.get_tensor(prefix + name))
                moments.append(torch.cat(parts).to(params.device))
        return AdamState(int(metadata["step"]), *moments)

    def save(self, path: str, adapter: Adapter, objective: str) -> None:
        tensors = {}
        for prefix, moments in (("first.", self.first), ("second.", self.second)):
            for name, values in unflatten(moments.cpu(), adapter).items():
                tensors[prefix + name] = values.reshape(-1)
        _save(tensors, path, {"step": str(self.step), "objective": objective})

    @torch.no_grad()
    def update(self, params: Tensor, gradient: Tensor, config: dict, rate: float) -> float:
        """Changes `params` and the moments in place. Returns the norm of the gradient before clipping."""
        norm = math.sqrt(sum(float(g.double().square().sum()) for g in gradient.split(CHUNK)))
        clip = min(1.0, config["maxGradNorm"] / (norm + CLIP_EPSILON))
        beta1, beta2, epsilon = config["beta1"], config["beta2"], config["epsilon"]
        self.step += 1
        correction1, correction2 = 1 - beta1**self.step, 1 - beta2**self.step
        parts = zip(*(flat.split(CHUNK) for flat in (params, gradient, self.first, self.second)), strict=True)
        for param, grad, first, second in parts:
            g = grad.double() * clip
            m = beta1 * first.double() + (1 - beta1) * g
            v = beta2 * second.double() + (1 - beta2) * g * g
            decayed = param.double() * (1 - rate * config["weightDecay"])
            param.copy_(decayed - (rate * (m / correction1)) / ((v / correction2).sqrt() + epsilon))
            first.copy_(m)
            second.copy_(v.clamp(max=LARGEST))
        return norm
