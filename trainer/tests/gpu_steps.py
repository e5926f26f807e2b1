"""Runs random requests through the step loop under little and much memory, and compares every bit of what comes out.

Argument: as gpu_families.py, and a seed. Every request runs alone with much memory first. Then all run together, in few
pages, with small chunks, shared prefixes, forks, masks that come late, forced tokens, stops and an adapter.
Integrity is checked after every step.
"""

import json
import math
import queue
import random
import struct
import sys
from dataclasses import dataclass, field

import torch
from torch import Tensor

from flywheel_gpu.cache import Cache
from flywheel_gpu.channel import Frame
from flywheel_gpu.kernels.interface import PAGE, Batch
from flywheel_gpu.kernels.reference import Reference
from flywheel_gpu.model import Model
from flywheel_gpu.sample import Masks
from flywheel_gpu.schedule import Schedule
from flywheel_gpu.steps import Steps

from gpu_families import Engine

VOCAB = 256
# Only one prompt has it, and no row may choose it. The logits after it are NaN.
SICK = 250
WORDS = VOCAB // 32


@dataclass
class Heard:
    """What a fake server has received about each row and request."""

    tokens: dict[int, list] = field(default_factory=dict)
    finished: dict[int, int] = field(default_factory=dict)
    cached: dict[int, int] = field(default_factory=dict)
    prompts: dict[int, list] = field(default_factory=dict)
    preferences: dict[int, list] = field(default_factory=dict)
    faults: list = field(default_factory=list)
    stats: dict = field(default_factory=dict)
    frames: int = 0


class FakeChannel:
    def __init__(self):
        self.commands, self.heard = queue.SimpleQueue(), Heard()

    def send(self, type: str, fields: dict, arrays: dict[str, Tensor] | None = None) -> None:
        heard, lists = self.heard, {name: array.tolist() for name, array in (arrays or {}).items()}
        heard.frames += 1
        if type == "prompt":
            heard.prompts.setdefault(fields["request"], []).append((fields["start"], lists))
        if type == "preferences":
            heard.preferences.setdefault(fields["request"], []).append((fields["start"], lists))
        if type != "step":
            return
        heard.stats = fields["stats"]
        heard.faults += fields["faults"]
        for request, cached in zip(lists["prefilledRequests"], lists["prefilledCached"], strict=True):
            heard.cached[request] = cached
        tops = iter(zip(lists["topIds"], lists["topLogprobs"], strict=True))
        columns = [lists[name] for name in ("rows", "ids", "finish", "logprobs", "ranks", "topCounts")]
        for row, id, finish, logprob, rank, count in zip(*columns, strict=True):
            heard.tokens.setdefault(row, []).append((id, bits(logprob), rank, [next(tops) for _ in range(count)]))
            if finish:
                heard.finished[row] = finish


def bits(value: float) -> bytes:
    return struct.pack("<f", value)


class Case:
    """A request, and what its server says while it runs."""

    def __init__(self, dice: random.Random, number: int, shared: list[int]):
        self.number, self.n = number, dice.choice([1, 1, 2, 4])
        self.rows = [10 * number + i for i in range(self.n)]
        own = [dice.randrange(3, 200) for _ in range(dice.randrange(1, 90))]
        self.prompt = shared[: dice.choice([0, 64, 70, 130])] + own
        self.most = dice.choice([1, 7, 30, 130])
        self.slot = dice.choice([0, 0, 1])
        self.masked = dice.random() < 0.4
        self.rank = float(dice.randrange(3))
        self.prompt_logprobs = dice.choice([None, None, None, 0, 2])
        self.legal_sets = dice.random() < 0.2 and len(self.prompt) > 12
        k = dice.choice([None, 0, 3])
        self.sampling = {
            "temperature": dice.choice([0, 0.7, 1, 1.5]), "topK": dice.choice([0, 0, 5]), "topP": dice.choice([1, 0.8]),
            "minP": dice.choice([0, 0.05]), "repetition": dice.choice([1, 1, 1.3]), "frequency": dice.choice([0, 0.4]),
            "presence": dice.choice([0, 0.2]), "bias": dice.choice([[], [[7, 2.5], [300, 1]]]), "allowed": None,
            "banned": dice.choice([[SICK], [9, 999, SICK]]), "minTokens": dice.choice([0, 3]), "minTokensMask": [2], "maxTokens": self.most,
            "eos": 2, "stopIds": [200, 201], "keys": [[dice.getrandbits(32), dice.getrandbits(32)] for _ in self.rows],
            "logprobs": k, "named": dice.choice([None, [4, 5]]) if k else None, "promptLogprobs": self.prompt_logprobs,
        }  # fmt: skip

    def add(self) -> Frame:
        header = {
            "type": "add", "request": self.number, "rows": self.rows, "root": f"{self.slot:064x}", "adapter": self.slot,
            "rank": self.rank, "arrival": self.number, "masked": self.masked, "sampling": self.sampling,
        }  # fmt: skip
        arrays = {"prompt": torch.tensor(self.prompt, dtype=torch.int32)}
        if self.legal_sets:
            arrays["legalIndex"] = torch.tensor([-1, 0, 1, 0] * 2, dtype=torch.int32)
            arrays["legalBits"] = torch.tensor([[0x0F0F0F0F] * WORDS, [-1] * WORDS], dtype=torch.int32)
        return Frame(header, arrays)

    def mask(self, row: int, position: int) -> Frame | None:
        """What is legal at a position depends on the row and the position alone; sometimes tokens are forced."""
        dice = random.Random(f"{row} {position}")
        forced = [50, 51, 52] if dice.random() < 0.15 and position + 4 < self.most else []
        slot = 4 * self.number + self.rows.index(row)
        legal = dice.choice([-1, slot])
        ids = [id for id in range(VOCAB) if dice.random() < 0.3] + [40]
        of = lambda values, dtype=torch.int64: torch.tensor(values, dtype=dtype)
        return Frame({"type": "masks"}, {
            "rows": of([row]), "positions": of([position + len(forced)]), "forcedCounts": of([len(forced)]),
            "forcedIds": of(forced, torch.int32), "legal": of([legal], torch.int32),
            "only": of([dice.choice([-1, -1, -1, 40])], torch.int32), "bannedCounts": of([1]), "bannedIds": of([41], torch.int32),
            "bitSlots": of([]), "bits": of([], torch.int32),
            "listSlots": of([slot] if legal >= 0 else []), "listCounts": of([len(ids)] if legal >= 0 else []),
            "listIds": of(ids if legal >= 0 else [], torch.int32),
        })  # fmt: skip


class Sickly:
    def __init__(self, model: Model):
        self._model = model

    def forward(self, batch: Batch) -> Tensor:
        logits = self._model.forward(batch).clone()
        logits[batch.ids[batch.wanted] == SICK] = math.nan
        return logits


def run(engine: Engine, pool: Tensor, cases: list[Case], *, rows: int, tokens: int, dice: random.Random, late: float) -> Heard:
    """`late`: the chance that a mask that could come does not come yet."""
    channel = FakeChannel()
    schedule = Schedule(Cache(len(pool), True), rows, tokens, 128)
    engine.model._pool = pool
    steps = Steps(channel, schedule, Sickly(engine.model), pool, Masks(64, VOCAB, pool.device), VOCAB)
    waiting, owed = list(cases), []
    by_row = {row: case for case in cases for row in case.rows}
    told: dict[int, int] = {}
    outputs: dict[int, int] = {}
    while True:
        while waiting and dice.random() < 0.7:
            case = waiting.pop(0)
            steps.handlers["add"](case.add())
            owed += [(row, 0) for row in case.rows if case.masked]
        for _ in range(len(owed)):
            row, position = owed.pop(0)
            if dice.random() < late:
                owed.append((row, position))
                continue
            frame = by_row[row].mask(row, position)
            outputs[row] = int(frame.arrays["positions"][0])
            steps.handlers["masks"](frame)
        moved = steps.step()
        schedule.check_integrity()
        for row, list_of in channel.heard.tokens.items():
            new = len(list_of) - told.get(row, 0)
            told[row] = len(list_of)
            if new and by_row[row].masked and row not in channel.heard.finished:
                owed.append((row, outputs[row] + 1))
        if not (moved or waiting or owed):
            break
    assert not schedule.running and not schedule.waiting, "rows are left"
    schedule.check_integrity()
    return channel.heard


def compare(given: dict, seed: int, engine: Engine) -> dict:
    dice = random.Random(seed)
    model = given["model"]
    shape = lambda pages: (pages, model["numLayers"], 2, model["numKvHeads"], PAGE, model["headDim"])
    shared = [dice.randrange(3, 200) for _ in range(200)]
    cases = [Case(dice, number, shared) for number in range(1, 11)]
    alone = Heard()
    for case in cases:
        heard = run(engine, torch.zeros(shape(40), device=engine.device), [case], rows=64, tokens=512, dice=dice, late=0)
        for name in ("tokens", "finished", "prompts", "preferences"):
            getattr(alone, name).update(getattr(heard, name))
        assert not heard.faults, heard.faults
    sick = Case(dice, len(cases) + 1, shared)
    sick.masked, sick.legal_sets, sick.prompt = False, False, [*shared[:70], SICK]
    sick.sampling["promptLogprobs"] = None
    cases.insert(dice.randrange(len(cases)), sick)
    together = run(engine, torch.full(shape(6), 1e30, device=engine.device), cases, rows=7, tokens=128, dice=dice, late=0.5)
    joined = lambda parts: {k: [[x for _, p in v for x in p[n]] for n in v[0][1]] for k, v in parts.items()}
    return {
        "rows": len(together.finished) == sum(case.n for case in cases if case is not sick),
        "tokens": together.tokens == alone.tokens and together.finished == alone.finished,
        "prompts": joined(together.prompts) == joined(alone.prompts),
        "preferences": joined(together.preferences) == joined(alone.preferences),
        "faults": sorted((row, fault["kind"]) for fault in together.faults for row in fault["rows"])
        == [(row, "nan") for row in sick.rows],
        "preemptions": together.stats["preemptions"],
        "hits": together.stats["prefixHits"],
        "count": sum(len(tokens) for tokens in together.tokens.values()),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    given = json.load(open(sys.argv[1], encoding="utf8"))
    seeds = [int(seed) for seed in sys.argv[2:]]
    for name, each in given.items():
        for seed in seeds:
            print(json.dumps({"family": name, "seed": seed, **compare(each, seed, Engine(each, Reference()))}))
