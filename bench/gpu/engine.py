"""How fast the GPU process serves, over its socket. Run bench/gpu/checks.py first.

    PYTHONPATH=trainer:trainer/tests python bench/gpu/engine.py --seconds 420 [--shapes 1.7B,8B]

Models have random weights and the shapes of Qwen3. Prints one JSON object per line: for each shape the start, prompts of
2,048 tokens, and decoding of 1, 32 and 256 rows at a context of about 384, sampled and with the most likely token; and
how many tokens of a greedy row change when others run beside it.
"""

import argparse
import os
import statistics
import tempfile
import time

import torch

from stand_in import SHAPES, GpuProcess, say, write_model

DRAWN = {"temperature": 1.0}


def measure_prompts(process: GpuProcess, vocab: int, count: int, length: int) -> None:
    begun = time.monotonic()
    left = {process.add(torch.randint(0, vocab, (length,)), 1, {}) for _ in range(count)}
    while left:
        left -= set(process.receive().arrays["rows"].tolist())
    seconds = time.monotonic() - begun
    say(what="prompts", count=count, length=length, seconds=round(seconds, 3), tokens_per_second=round(count * length / seconds))


def measure_decode(process: GpuProcess, vocab: int, rows: int, prompt: int, most: int, sampling: dict) -> None:
    """Steps in which all rows decode."""
    left = {process.add(torch.randint(0, vocab, (prompt,)), most, sampling) for _ in range(rows)}
    times, last = [], time.monotonic()
    while left:
        frame = process.receive()
        now, finish = time.monotonic(), frame.arrays["finish"]
        if frame.header["decode"] == rows:
            times.append(now - last)
        last = now
        left -= set(frame.arrays["rows"][finish > 0].tolist())
    step = statistics.median(times)
    kind = "drawn" if sampling else "greedy"
    say(what="decode", rows=rows, kind=kind, steps=len(times), ms=round(1e3 * step, 3), tokens_per_second=round(rows / step))


def compare_batches(process: GpuProcess, vocab: int, others: int) -> None:
    """A greedy row alone, then the same among others."""
    prompt, most, outputs = torch.randint(0, vocab, (100,)), 64, []
    for count in (0, others):
        number = process.add(prompt, most, {"logprobs": 0})
        left = {number} | {process.add(torch.randint(0, vocab, (50 + i,)), most, DRAWN) for i in range(count)}
        output = []
        while left:
            arrays = process.receive().arrays
            mine = arrays["rows"] == number
            output += zip(arrays["ids"][mine].tolist(), arrays["logprobs"][mine].tolist(), strict=True)
            left -= set(arrays["rows"][arrays["finish"] > 0].tolist())
        outputs.append(output)
    same = next((i for i, (a, b) in enumerate(zip(*outputs, strict=True)) if a[0] != b[0]), most)
    off = max((abs(a[1] - b[1]) for a, b in list(zip(*outputs, strict=True))[:same]), default=0.0)
    equal = sum(a == b for a, b in zip(*outputs, strict=True))
    say(what="batches", others=others, same_tokens=same, of=most, equal_bits=equal, largest_difference=off)


def measure(shape: str, folder: str, until: float) -> None:
    begun = time.monotonic()
    files, model = write_model(folder, shape)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    say(what="model", shape=shape, written_in=round(time.monotonic() - begun, 1), bytes=files[0]["bytes"])
    process, vocab = GpuProcess(files, model, 4096, 256), model["vocabSize"]
    assert process.ready.type == "ready", process.ready.header
    header = process.ready.header
    say(what="start", shape=shape, seconds=round(process.seconds, 1), **header["memory"], pages=header["pages"])
    small = shape == "tiny"
    measure_prompts(process, vocab, 2, 64 if small else 512)  # warm-up
    measure_prompts(process, vocab, 2 if small else 16, 128 if small else 2048)
    compare_batches(process, vocab, 3 if small else 31)
    for rows in (1, 2) if small else (1, 32, 256):
        for sampling in (DRAWN, {}):
            if time.monotonic() < until:
                measure_decode(process, vocab, rows, 16 if small else 320, 16 if small else 128, sampling)
    process.close()
    os.remove(files[0]["path"])


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--seconds", type=float, default=420)
    given.add_argument("--shapes", default="1.7B,8B")
    options, begun = given.parse_args(), time.monotonic()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    name = torch.cuda.get_device_name() if device.type == "cuda" else "cpu"
    say(what="machine", device=name, torch=torch.__version__)
    folder = tempfile.mkdtemp()
    for shape in options.shapes.split(","):
        assert shape in SHAPES, f"shapes: {', '.join(SHAPES)}"
        if time.monotonic() - begun < options.seconds / 2 or shape == "tiny":
            measure(shape, folder, begun + options.seconds)


if __name__ == "__main__":
    main()
