"""Whether the GPU process computes and chooses the right things on this device. Each check says PASS or FAIL, and goes on.

    PYTHONPATH=trainer:trainer/tests python bench/gpu/checks.py --fixtures DESCRIPTIONS [--seconds 100]

DESCRIPTIONS is a JSON file, by family {folder, files, model, adapter}, with paths from where this runs:
`npm run bench:gpu-fixtures -- FILE` writes it. Checks: the machine; the sampler's vectors; the reference numbers of every
family in float32 and bfloat16; random requests through the step loop, in equal bits; adapters, a wrong file, too much
memory and a broken frame over the socket.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable

import torch

import gpu_families
import gpu_sampler
import gpu_steps
from flywheel_gpu.kernels.plain import Plain
from flywheel_gpu.kernels.reference import Reference
from stand_in import ROOT, GpuProcess, say

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
# Largest difference of a log-probability. In bfloat16 the references themselves are float64 results of float32 weights.
BOUNDS = {torch.float32: 1e-4, torch.bfloat16: 0.3}


def machine() -> None:
    found = subprocess.run([sys.executable, "-m", "flywheel_gpu.check"], capture_output=True, text=True, check=True)
    print(found.stdout.strip(), flush=True)


def sampler() -> None:
    found = gpu_sampler.compare(os.path.join(ROOT, "trainer/tests/sampler-vectors.json"), DEVICE)
    say(**found)
    assert not found["wrong"] and found["logprobs"] < 1e-6


def families(descriptions: dict, dtype: torch.dtype) -> None:
    wrong = []
    for name, given in descriptions.items():
        if not given["adapter"]:
            continue
        kernels = Plain() if DEVICE.type == "cuda" else gpu_families.PlainAttention()
        engine, fixture = gpu_families.Engine(given, kernels, DEVICE, dtype), gpu_families.Fixture(given["folder"])
        found = gpu_families.against(engine, fixture)
        say(family=name, dtype=str(dtype), **found)
        if max(found["prompts"], found["mixed"]) > BOUNDS[dtype] or (dtype == torch.float32 and not found["greedy"]):
            wrong.append(name)
    assert not wrong, wrong


def steps(given: dict) -> None:
    found = gpu_steps.compare(given, 3, gpu_families.Engine(given, Reference(), DEVICE))
    say(**found)
    assert found["rows"] and found["tokens"] and found["prompts"] and found["preferences"] and found["faults"]
    assert found["preemptions"] > 0


def socket_checks(given: dict) -> None:
    """An adapter is loaded, used and unloaded; a file that changed is refused; the process ends with the connection."""
    process = GpuProcess(given["files"], given["model"], 512, 8, loras=1, kv_bytes=2**26)
    assert process.ready.type == "ready", process.ready.header
    say(ready=process.ready.header, seconds=round(process.seconds, 1))
    fixture, adapter = gpu_families.Fixture(given["folder"]), given["adapter"]
    prompt = torch.tensor(fixture.trained)
    base = process.tokens(process.add(prompt, 8, {}))
    call = {"slot": 1, "rank": 4, "scale": adapter["scale"], "tensors": adapter["tensors"]}
    changed = process.answer("load", {**call, "file": {**adapter["file"], "mtimeNs": "1"}})
    assert changed.type == "failed", changed.header
    assert process.answer("load", {**call, "file": adapter["file"]}).type == "done"
    adapted = process.tokens(process.add(prompt, 8, {}, slot=1))
    expected = int(fixture.numbers["lora.logits"][-1].argmax())
    again = process.tokens(process.add(prompt, 8, {}))
    assert process.answer("unload", {"slot": 1}).type == "done"
    say(refused=changed.header["message"], base=base, adapted=adapted, expected_first=expected)
    assert base == again and base != adapted and adapted[0] == expected
    greedy = process.tokens(process.add(torch.tensor(fixture.prompts[1]), 24, {}))
    say(greedy_as_the_reference=sum(a == b for a, b in zip(greedy, fixture.greedy[1], strict=True)), of=24)
    assert process.close() == 0


def too_much(given: dict) -> None:
    most = torch.cuda.get_device_properties(0).total_memory if DEVICE.type == "cuda" else 2**50
    process = GpuProcess(given["files"], given["model"], 512, 8, kv_bytes=2 * most)
    say(answer=process.ready.header)
    assert process.ready.type == "refused" and process.close() == 4


def broken(given: dict) -> None:
    process = GpuProcess(given["files"], given["model"], 512, 8, kv_bytes=2**26)
    process.send("no such frame", {})
    assert process.wait() == 2


def attempt(name: str, check: Callable[[], None], until: float) -> None:
    begun = time.monotonic()
    if begun > until:
        print(f"SKIPPED {name}: no time left", flush=True)
        return
    try:
        check()
        outcome = "PASS"
    except Exception:
        traceback.print_exc(file=sys.stdout)
        outcome = "FAIL"
    print(f"{outcome} {name} ({time.monotonic() - begun:.1f} s)", flush=True)


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--fixtures", required=True)
    given.add_argument("--seconds", type=float, default=100)
    options = given.parse_args()
    until = time.monotonic() + options.seconds
    descriptions = json.load(open(options.fixtures, encoding="utf8"))
    for each in descriptions.values():
        if each["adapter"]:  # copies of files are new files
            file = each["adapter"]["file"]
            file["mtimeNs"] = str(os.stat(file["path"]).st_mtime_ns)
    qwen = descriptions["qwen3"]
    attempt("machine", machine, until)
    attempt("sampler", sampler, until)
    attempt("families in float32", lambda: families(descriptions, torch.float32), until)
    if DEVICE.type == "cuda":
        attempt("families in bfloat16", lambda: families(descriptions, torch.bfloat16), until)
    attempt("adapters over the socket", lambda: socket_checks(qwen), until)
    attempt("too much memory", lambda: too_much(qwen), until)
    attempt("a broken frame", lambda: broken(qwen), until)
    attempt("steps", lambda: steps(qwen), until)


if __name__ == "__main__":
    main()
