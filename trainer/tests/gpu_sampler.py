"""Chooses the tokens of sampler-vectors.json, all cases of a step in one batch. Prints what differs, as JSON.

Argument: the file, which the server's own sampler has written (src/engine/gpu/sampler-vectors.test.ts).
"""

import json
import math
import sys

import torch
from torch import Tensor

from flywheel_gpu.sample import Choice, Edits, Entry, Masks, Settings, sample


def logits_of(row: dict, device: torch.device) -> Tensor:
    ids = torch.arange(row["size"], dtype=torch.int64) + row["start"]
    values = ((ids * row["factor"] & 0xFFFFFFFF).double() / 2**29 * row["scale"] - 4 * row["scale"]).float()
    for id, value in row["set"]:
        values[id] = -math.inf if value is None else value
    return values.to(device)


class Case:
    def __init__(self, given: dict, rows: list[Tensor], masks: dict[int, Masks], slot: int):
        self.name, self.steps = given["name"], given["steps"]
        self.settings, self.prompt = Settings(**given["sampling"]), given["prompt"]
        self._rows, self._masks, self._slot = rows, masks, slot
        self.vocab = len(rows[self.steps[0]["row"]])
        tokens = list(self.prompt)
        self.edits = Edits(self.settings, tokens, len(tokens), self.vocab, rows[0].device)

    def choice(self, position: int) -> tuple[Tensor, Choice]:
        step = self.steps[position]
        if step["legal"] is not None:
            self._masks[self.vocab].define_list(self._slot, [id for id in step["legal"] if id < self.vocab])
        entry = Entry(
            position=position,
            forced=[],
            legal=-1 if step["legal"] is None else self._slot,
            only=-1 if step["forcedId"] is None else step["forcedId"],
            banned=step["wordEnds"],
        )
        return self._rows[step["row"]], Choice(self.settings, self.settings.keys[0], position, self.edits, entry)


def number(value: float | None) -> float:
    return -math.inf if value is None else value


def compare(path: str, device: torch.device) -> dict:
    given = json.load(open(path, encoding="utf8"))
    rows = [logits_of(row, device) for row in given["rows"]]
    vocabs = {len(row) for row in rows}
    masks = {vocab: Masks(len(given["cases"]), vocab, device) for vocab in vocabs}
    cases = [Case(case, rows, masks, slot) for slot, case in enumerate(given["cases"])]
    wrong, checked, off = [], 0, 0.0
    for position in range(max(len(case.steps) for case in cases)):
        for vocab in vocabs:
            here = [case for case in cases if case.vocab == vocab and position < len(case.steps)]
            if not here:
                continue
            logits, choices = zip(*[case.choice(position) for case in here], strict=True)
            for case, chosen in zip(here, sample(torch.stack(logits), list(choices), masks[vocab]), strict=True):
                expected = case.steps[position]["expected"]
                checked += 1
                if expected == "nothing":
                    if chosen.fault != "nothing":
                        wrong.append([case.name, position, expected, chosen.fault or chosen.id])
                    continue
                case.edits.note(expected["id"])
                report = chosen.report
                if (chosen.fault or chosen.id) != expected["id"]:
                    wrong.append([case.name, position, expected["id"], chosen.fault or chosen.id])
                if "rank" not in expected:
                    continue
                if [report.rank, report.top_ids] != [expected["rank"], expected["topIds"]]:
                    wrong.append([case.name, position, expected["rank"], report.rank])
                pairs = [(report.logprob, number(expected["logprob"]))]
                pairs += zip(report.top_logprobs, map(number, expected["topLogprobs"]), strict=True)
                off = max([off, *(abs(a - b) for a, b in pairs if a != b)])
    return {"checked": checked, "wrong": wrong, "logprobs": off}


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(compare(sys.argv[1], torch.device("cpu"))))
