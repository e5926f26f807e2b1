"""Says what this Python has for the GPU engine, as one line of JSON: python -m flywheel_gpu.check

`flywheel doctor` and a start that failed run it. It needs nothing but the standard library to say that the rest is missing.
"""

import importlib
import json
import os
import platform
import shutil
import sys
import sysconfig
from pathlib import Path


def package(name: str) -> dict:
    try:
        return {"version": importlib.import_module(name).__version__, "error": None}
    except Exception as error:  # a broken package raises anything
        return {"version": None, "error": str(error).split("\n")[0]}


def kernel_cache() -> dict:
    folder = Path(os.environ.get("TRITON_CACHE_DIR") or Path.home() / ".triton")
    nearest = folder
    while not nearest.exists():
        nearest = nearest.parent
    return {"folder": str(folder), "writable": os.access(nearest, os.W_OK)}


def headers() -> str | None:
    folder = sysconfig.get_paths()["include"]
    return folder if Path(folder, "Python.h").exists() else None


def driver() -> str | None:
    """The newest CUDA that the driver knows."""
    import torch

    known = torch._C._cuda_getDriverVersion() if torch.version.cuda else 0
    return f"{known // 1000}.{known % 1000 // 10}" if known else None


def devices() -> list[dict]:
    import torch

    found = []
    for index in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(index)
        about = torch.cuda.get_device_properties(index)
        found.append(
            {
                "name": about.name,
                "capability": [about.major, about.minor],
                "totalBytes": total,
                "freeBytes": free,
            }
        )
    return found


def main() -> None:
    packages = {name: package(name) for name in ("torch", "triton")}
    has_torch = packages["torch"]["version"] is not None
    facts = {
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": sys.platform,
        "packages": packages,
        "compiler": next(filter(None, map(shutil.which, (os.environ.get("CC") or "cc", "gcc", "clang"))), None),
        "headers": headers(),
        "kernelCache": kernel_cache(),
        "driver": driver() if has_torch else None,
        "devices": devices() if has_torch else [],
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
