"""What can be trained here, before anything is trained.

`python -m flywheel_trainer.check --model DIR` prints it as JSON, for `flywheel doctor`. A package that is missing must be
a finding and not a crash, so nothing heavy is imported at the top. `longest` answers the server's question for limits.
"""

import argparse
import gc
import importlib
import json
import os
import platform
import sys

PACKAGES = ("torch", "transformers", "safetensors")
OLDEST_PYTHON = (3, 11)
# A value, its gradient and two moments of the optimizer, all float32.
BYTES_PER_TRAINED = 16
# Weights may take this share of the free memory of a GPU; the rest is for a few rows at least.
LARGEST_SHARE = 0.8


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--rank", type=int, default=8)
    args = parser.parse_args()
    packages = {name: _package(name) for name in PACKAGES}
    usable = sys.version_info >= OLDEST_PYTHON and all(package["error"] is None for package in packages.values())
    found = {"python": platform.python_version(), "executable": sys.executable, "packages": packages}
    found["devices"] = _devices() if packages["torch"]["error"] is None else []
    found["model"] = _model(args.model, args.dtype, args.rank) if usable and args.model else None
    print(json.dumps(found))


def _package(name: str) -> dict:
    try:
        return {"version": importlib.import_module(name).__version__, "error": None}
    except Exception as error:  # a broken installation raises anything
        return {"version": None, "error": f"{type(error).__name__}: {error}"}


def _devices() -> list[dict]:
    import torch

    def one(index: int) -> dict:
        free, total = torch.cuda.mem_get_info(index)
        return {"name": torch.cuda.get_device_name(index), "freeBytes": free, "totalBytes": total}

    return [one(i) for i in range(torch.cuda.device_count())] if torch.cuda.is_available() else []


def _model(folder: str, dtype: str, rank: int) -> dict:
    try:
        return {**needs(folder, dtype, rank), "error": None}
    except Exception as error:  # of any version of any package
        return {"error": str(error)}


def needs(folder: str, dtype: str, rank: int) -> dict:
    """Bytes that training takes, by the shapes of the model. Its weights are not read. Raises ModelError."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from .adapter import LINEARS
    from .attention import NAME
    from .model import DTYPES, MEMORY_SHARE, ModelError, check_trainable, row_bytes

    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config, dtype=DTYPES[dtype], attn_implementation=NAME)
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(f"transformers cannot make this model: {error}") from error
    check_trainable(model)
    if getattr(config, "quantization_config", None) is not None:
        raise ModelError("its weights are quantized, and the trainer trains unrounded ones: give the original checkpoint")
    text = model.config.get_text_config()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    sides = sum(sum(layer.get_submodule(path).weight.shape) for layer in model.model.layers for path in LINEARS.values())
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kept, recomputed = row_bytes(text, DTYPES[dtype], device)
    return {
        "type": text.model_type,
        "parameters": parameters,
        "weightBytes": parameters * DTYPES[dtype].itemsize,
        "adapterBytes": rank * sides * BYTES_PER_TRAINED,
        "keptRowBytes": kept,
        "rowBytes": recomputed,
        "memoryShare": MEMORY_SHARE,
        "positions": text.max_position_embeddings,
    }


def must_divide(folder: str, dtype: str, device) -> bool:
    """Whether the base model is too large for what is free on one device. FLYWHEEL_TRAINER_DIVIDE=1 says so anyway."""
    import torch

    if os.environ.get("FLYWHEEL_TRAINER_DIVIDE") == "1":
        return True
    if device.type != "cuda":
        return False
    gc.collect()
    torch.cuda.empty_cache()  # what the model before this one held
    free, total = torch.cuda.mem_get_info(device)
    # other programs must not change how a model is divided, because that changes the last bits
    room = total if torch.are_deterministic_algorithms_enabled() else free
    return needs(folder, dtype, 1)["weightBytes"] > LARGEST_SHARE * room


def longest(task: dict, device, loaded, ranks: int) -> int:
    """The longest sequence that fits the memory, in tokens. `loaded`: the model, if this process holds it already."""
    import torch

    if loaded is not None:
        positions, rows = loaded.config.max_position_embeddings, loaded.memory(task["activationBytes"]).recomputed_rows
        return min(positions, rows)
    need = needs(task["baseModel"], task["weights"], task["rank"])
    budget = task["activationBytes"]
    if device.type == "cuda":
        weights = need["weightBytes"] // (ranks if must_divide(task["baseModel"], task["weights"], device) else 1)
        free = torch.cuda.mem_get_info(device)[0] - weights - need["adapterBytes"]
        budget = max(0, int(free * need["memoryShare"]))
    return min(need["positions"], budget // need["rowBytes"])


if __name__ == "__main__":
    main()
