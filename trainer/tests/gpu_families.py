"""Computes the logits of fixtures with the GPU engine's decoder. Prints the largest differences as JSON.

Argument: a JSON file, by family {folder, files, model, adapter}, as the server describes them to the process. Whole
prompts, token by token in pages that lie anywhere, greedily in one batch, and with the adapter beside the base model.
"""

import json
import os
import sys

import torch
from torch import Tensor

from flywheel_gpu.kernels.interface import PAGE, Batch, Kernels, Piece
from flywheel_gpu.kernels.plain import Plain
from flywheel_gpu.kernels.reference import Reference
from flywheel_gpu.model import Model
from flywheel_gpu.policies import Policies
from flywheel_gpu.weights import Files, load

NEW_TOKENS = 24
PAGES, POSITIONS = 40, 4096
CPU = torch.device("cpu")


def read_all(path: str) -> dict[str, Tensor]:
    """A safetensors file of int64 and float tensors."""
    data = bytearray(open(path, "rb").read())
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    kinds = {"F32": torch.float32, "F64": torch.float64, "I64": torch.int64, "BOOL": torch.bool}
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            part = bytearray(data[8 + length + begin : 8 + length + end])
            tensors[name] = torch.frombuffer(part, dtype=kinds[entry["dtype"]]).view(entry["shape"])
    return tensors


class PlainAttention(Reference):
    """The library's products of a GPU are not there on a CPU."""

    attend = Plain.attend


class Engine:
    def __init__(self, given: dict, kernels: Kernels, device: torch.device = CPU, dtype: torch.dtype = torch.float32):
        model, files = given["model"], Files(given["files"])
        weights = load(files, model, POSITIONS, device, dtype)
        files.close()
        parts = [{name: stored.parts for name, stored in layer.sites.items()} for layer in weights.layers]
        self.device, self.policies = device, Policies(parts, device, dtype)
        if adapter := given["adapter"]:
            self.policies.load(1, adapter["scale"], adapter["file"], adapter["tensors"])
        shape = (PAGES, model["numLayers"], 2, model["numKvHeads"], PAGE, model["headDim"])
        pool = torch.zeros(shape, device=device, dtype=dtype)
        self.model = Model(model, weights, self.policies, kernels, pool)

    def forward(self, *pieces: tuple[list[int], int, list[int], int]) -> Tensor:
        """pieces: ids, start, pages, adapter slot. Logits of every row."""
        ids, positions, places, parts, adapted = [], [], [], [], []
        for new, start, pages, slot in pieces:
            if slot:
                adapted.append((slot, list(range(len(ids), len(ids) + len(new)))))
            ids += new
            positions += range(start, start + len(new))
            places += [pages[at // PAGE] * PAGE + at % PAGE for at in range(start, start + len(new))]
            parts.append(Piece(start, len(new)))
        most = max(len(pages) for _, _, pages, _ in pieces)
        of = lambda values: torch.tensor(values, device=self.device)
        table = of([pages + [0] * (most - len(pages)) for _, _, pages, _ in pieces])
        slots = [(slot, of(rows)) for slot, rows in adapted]
        wanted = of(list(range(len(ids))))
        return self.model.forward(Batch(of(ids), of(positions), of(places), parts, table, slots, wanted)).cpu()


def off(got: Tensor, expected: Tensor) -> float:
    return float((got.double().log_softmax(-1) - expected.double().log_softmax(-1)).abs().max())


class Fixture:
    def __init__(self, folder: str):
        self.numbers = read_all(os.path.join(folder, "reference.safetensors"))
        self.greedy = json.load(open(os.path.join(folder, "reference.json"), encoding="utf8"))["greedy"]
        self.prompts = [self.numbers[f"ids.{i}"].tolist() for i in range(3)]
        self.pages = [[3 * i + 2, 3 * i + 1, 3 * i] for i in range(3)]
        self.trained = self.numbers["train.ids"].tolist()


def against(engine: Engine, fixture: Fixture) -> dict[str, float | bool]:
    """Whole prompts; the next tokens of all of them together; the last token of each beside a prompt with the adapter."""
    prompts, pages, numbers = fixture.prompts, fixture.pages, fixture.numbers
    alone = [engine.forward((prompt, 0, pages[i], 0)) for i, prompt in enumerate(prompts)]
    found = {"prompts": max(off(rows, numbers[f"logits.{i}"]) for i, rows in enumerate(alone))}
    last = [(prompt[-1:], len(prompt) - 1, pages[i], 0) for i, prompt in enumerate(prompts)]
    mixed = engine.forward(*last, (fixture.trained, 0, [22, 23], 1))
    ends = torch.stack([numbers[f"logits.{i}"][-1] for i in range(3)])
    found["mixed"] = max(off(mixed[:3], ends), off(mixed[3:], numbers["lora.logits"]))

    sequences, rows = [list(prompt) for prompt in prompts], [logits[-1] for logits in alone]
    for _ in range(NEW_TOKENS):
        for sequence, row in zip(sequences, rows, strict=True):
            sequence.append(int(row.argmax()))
        rows = list(engine.forward(*[(s[-1:], len(s) - 1, p, 0) for s, p in zip(sequences, pages, strict=True)]))
    found["greedy"] = [s[len(p) :] for s, p in zip(sequences, prompts, strict=True)] == fixture.greedy
    return found


def compare(given: dict) -> dict[str, float | bool]:
    """Of the reference kernels, whose bits depend on nothing beside a row, and of attention for a GPU."""
    engine, fixture = Engine(given, Reference()), Fixture(given["folder"])
    found = against(engine, fixture)
    whole = engine.forward((fixture.prompts[2], 0, [30, 29, 28], 0))
    single = [engine.forward(([id], at, [17, 11, 13], 0)) for at, id in enumerate(fixture.prompts[2])]
    found["bits of single tokens"] = torch.equal(torch.cat(single), whole)
    beside = engine.forward((fixture.prompts[2], 0, [20, 21, 19], 0), (fixture.trained, 0, [22, 23], 1))
    found["bits beside an adapter"] = torch.equal(beside[: len(whole)], whole)
    plain = against(Engine(given, PlainAttention()), fixture)
    return {**found, "plain": max(plain["prompts"], plain["mixed"]), "greedy": found["greedy"] and plain["greedy"]}


def long_context(given: dict) -> dict[str, float]:
    reference = read_all(os.path.join(given["folder"], "reference.safetensors"))
    ids, expected = reference["long.ids"].tolist(), reference["long.logits"]
    rows = Engine(given, Reference()).forward((ids, 0, list(range(-(-len(ids) // PAGE))), 0))
    return {"long": off(rows[-len(expected) :], expected)}


def main(path: str) -> None:
    families = json.load(open(path, encoding="utf8"))
    print(json.dumps({name: (compare if given["adapter"] else long_context)(given) for name, given in families.items()}))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1])
