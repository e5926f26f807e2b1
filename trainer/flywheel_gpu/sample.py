"""From rows of logits to tokens and what is reported about them: the order of src/sampling/sampler.ts.

Grammar mask; log-probabilities of that; then the request's edits, then greedy or a draw (draw.py). A row's result depends
on its logits, settings, output and key alone, not on the batch.
"""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .draw import LOW_32, block_sums, draw, padded, sort_key, survivor_floor, total, weigh, weightless_below

LARGEST_FLOAT = 3.4028234663852886e38
NAN, INFINITY, NOTHING = "nan", "infinity", "nothing"


@dataclass(frozen=True)
class Settings:
    """How the tokens of a request are chosen and when its rows end. Names and meanings are the protocol's."""

    temperature: float
    topK: int
    topP: float
    minP: float
    repetition: float
    frequency: float
    presence: float
    bias: list[tuple[int, float]]
    allowed: list[int] | None
    banned: list[int]
    minTokens: int
    minTokensMask: list[int]
    maxTokens: int
    eos: int | None
    stopIds: list[int]
    keys: list[tuple[int, int]]
    logprobs: int | None
    named: list[int] | None
    promptLogprobs: int | None

    @property
    def others(self) -> int | list[int]:
        """What is reported beside a token: the k most likely (-1 = all), or these."""
        return self.named if self.named is not None else self.logprobs or 0

    def finish(self, output: int, token: int) -> int:
        """Why a row ends whose output-th token this is: 0 it does not, 1 end of sequence, 2 stop id, 3 length."""
        if output < self.minTokens:
            return 0
        return 1 if token == self.eos else 2 if token in self.stopIds else 3 if output >= self.maxTokens else 0


@dataclass
class Entry:
    """What the server says about one position of a row."""

    position: int
    forced: list[int]
    legal: int
    only: int
    banned: list[int]


class Masks:
    """Sets of legal tokens that the server has defined, as bits: [slots, words]. Bit id & 31 of word id >> 5."""

    def __init__(self, slots: int, vocab: int, device: torch.device):
        self.slots, self.vocab = slots, vocab
        self._bits = torch.zeros(slots, -(-vocab // 32), dtype=torch.int32, device=device)

    def define(self, slots: list[int], bits: Tensor) -> None:
        self._bits[slots] = bits.to(self._bits.device)

    def define_list(self, slot: int, ids: list[int]) -> None:
        words = [0] * self._bits.shape[1]
        for id in ids:
            words[id >> 5] |= 1 << (id & 31)
        self._bits[slot] = torch.tensor(words, dtype=torch.int64).to(torch.int32).to(self._bits.device)

    def allowed(self, slots: list[int]) -> Tensor:
        """bool [n, vocab]"""
        return unpack(self._bits[slots], self.vocab)


def unpack(bits: Tensor, vocab: int) -> Tensor:
    """bool [n, vocab] of int32 [n, words]"""
    places = torch.arange(32, dtype=torch.int32, device=bits.device)
    return (bits[:, :, None] >> places & 1).bool().view(len(bits), -1)[:, :vocab]


class Edits:
    """What a request's settings change in the logits of one row. Counts its tokens where penalties need them."""

    def __init__(self, settings: Settings, tokens: list[int], prompt: int, vocab: int, device: torch.device):
        """`tokens`: prompt and output so far; `prompt`: how many are the prompt's."""
        self._settings, self._vocab, self._device = settings, vocab, device
        ids = lambda given: torch.tensor([id for id in given if id < vocab], dtype=torch.int64, device=device)
        self._forbidden = None
        if settings.allowed is not None:
            self._forbidden = torch.ones(vocab, dtype=torch.bool, device=device)
            self._forbidden[ids(settings.allowed)] = False
        self._banned, self._early = ids(settings.banned), ids(settings.minTokensMask)
        bias = [pair for pair in settings.bias if pair[0] < vocab]
        self._biased = ids(id for id, _ in bias)
        self._bias = torch.tensor([value for _, value in bias], dtype=torch.float64, device=device)
        self._seen = self._counts = None
        if settings.repetition != 1:
            self._seen = torch.zeros(vocab, dtype=torch.bool, device=device)
            self._seen[ids(tokens)] = True
        if settings.frequency != 0 or settings.presence != 0:
            self._counts = torch.bincount(ids(tokens[prompt:]), minlength=vocab)

    @staticmethod
    def needed(settings: Settings) -> bool:
        return bool(
            settings.allowed is not None or settings.banned or settings.minTokens or settings.bias
            or (settings.repetition, settings.frequency, settings.presence) != (1, 0, 0)
        )  # fmt: skip

    def note(self, token: int) -> None:
        if self._seen is not None:
            self._seen[token] = True
        if self._counts is not None:
            self._counts[token] += 1

    def apply(self, row: Tensor, position: int) -> None:
        """row: [vocab], in place."""
        s = self._settings
        if self._forbidden is not None:
            row.masked_fill_(self._forbidden, -math.inf)
        row[self._banned] = -math.inf
        if position < s.minTokens:
            row[self._early] = -math.inf
        row[self._biased] = (row[self._biased].double() + self._bias).float()
        if self._seen is not None:
            x = row.double()
            less = (x / s.repetition).clamp(max=LARGEST_FLOAT)
            repeated = torch.where(row > 0, less, (x * s.repetition).clamp(min=-LARGEST_FLOAT))
            row.copy_(torch.where(self._seen & (row != -math.inf), repeated.float(), row))
        if self._counts is not None:
            x = (row.double() - s.frequency * self._counts).float()
            row.copy_(torch.where(self._counts > 0, (x.double() - s.presence).float(), row))


@dataclass
class Report:
    """Of one token: natural logarithms of the raw distribution. rank 1 = most likely."""

    logprob: float = 0.0
    rank: int = 0
    top_ids: list[int] = field(default_factory=list)
    top_logprobs: list[float] = field(default_factory=list)


class Distribution:
    """Rows of logits [n, vocab] as log-probabilities. Nothing may be NaN or +inf."""

    def __init__(self, rows: Tensor):
        self.rows, self.largest = rows, rows.amax(-1)
        one = torch.ones(len(rows), dtype=torch.float64, device=rows.device)
        weights = weigh(padded(rows), self.largest, one, weightless_below(self.largest, one))
        self.mass = total(block_sums(weights))

    def logprobs(self, ids: Tensor) -> Tensor:
        """float64 [n, k] of ids [n, k]"""
        values = self.rows.gather(1, ids).double()
        return values - self.largest.double()[:, None] - self.mass.log()[:, None]

    def most_likely(self, k: int) -> Tensor:
        """ids [n, k], best first, equal ones by id."""
        vocab = self.rows.shape[1]
        falling = LOW_32 - torch.arange(vocab, device=self.rows.device)
        order = (sort_key(self.rows).long() << 32) + falling
        return LOW_32 - (order.topk(min(k, vocab)).values & LOW_32)

    def report(self, ids: list[int], others: list[int | list[int] | None]) -> list[Report]:
        """About token i of row i, beside others[i]: the k most likely (-1 = all) or those ids; None = nothing at all."""
        vocab, device = self.rows.shape[1], self.rows.device
        chosen = torch.tensor(ids, device=device)[:, None]
        logprobs = self.logprobs(chosen)[:, 0].tolist()
        ranks = (self.rows >= self.rows.gather(1, chosen)).sum(-1).tolist()
        reports = [Report() if other is None else Report(p, r) for p, r, other in zip(logprobs, ranks, others, strict=True)]
        counts = [vocab if k == -1 else k if isinstance(k, int) else 0 for k in others]
        if most := max(counts):
            top = self.most_likely(most)
            top_logprobs = self.logprobs(top).tolist()
            for report, k, top_ids, values in zip(reports, counts, top.tolist(), top_logprobs, strict=True):
                report.top_ids, report.top_logprobs = top_ids[:k], values[:k]
        for i, named in enumerate(others):
            if isinstance(named, list) and named:
                row = torch.tensor([named], device=device)
                values = self.rows[i : i + 1].gather(1, row).double() - self.largest[i].double() - self.mass[i].log()
                reports[i].top_ids, reports[i].top_logprobs = named, values[0].tolist()
        return reports


@dataclass
class Choice:
    """One row that gets a token."""

    settings: Settings
    key: tuple[int, int]
    position: int
    edits: Edits | None
    entry: Entry | None


@dataclass
class Chosen:
    """Of one row: its token, or what is wrong with its logits."""

    id: int
    report: Report
    fault: str | None = None


def sample(logits: Tensor, choices: list[Choice], masks: Masks) -> list[Chosen]:
    """logits: float32 [n, vocab], changed in place."""
    masked = [i for i, choice in enumerate(choices) if choice.entry and choice.entry.legal >= 0]
    if masked:
        legal = masks.allowed([choices[i].entry.legal for i in masked])
        logits[masked] = logits[masked].masked_fill(~legal, -math.inf)
    faults = _faults(logits)
    if any(faults):  # the others must not meet such numbers
        logits[[i for i, fault in enumerate(faults) if fault]] = 0.0
    others = [choice.settings.others if choice.settings.logprobs is not None else None for choice in choices]
    raw = logits.clone() if any(other is not None for other in others) else None
    largest = _edit(logits, choices)
    empty = (largest == -math.inf).tolist()
    beyond = (largest == math.inf).tolist()
    for i in range(len(choices)):
        faults[i] = faults[i] or (NOTHING if empty[i] else INFINITY if beyond[i] else None)
    ids = _choose(logits, largest, choices, [fault is None for fault in faults])
    reports = [Report()] * len(ids) if raw is None else Distribution(raw).report(ids, others)
    return [Chosen(*each) for each in zip(ids, reports, faults, strict=True)]


def _faults(logits: Tensor) -> list[str | None]:
    worst = torch.stack([logits.isnan().any(-1), (logits == math.inf).any(-1)], 1).tolist()
    return [NAN if nan else INFINITY if infinite else None for nan, infinite in worst]


def _edit(logits: Tensor, choices: list[Choice]) -> Tensor:
    """Returns the largest entry of each row."""
    for i, choice in enumerate(choices):
        entry = choice.entry
        if entry is None and choice.edits is None:
            continue
        row = logits[i]
        if entry and entry.only >= 0 and row[entry.only] > -math.inf:
            kept = row[entry.only].clone()
            row.fill_(-math.inf)[entry.only] = kept
            continue
        if entry and entry.banned:
            row[[id for id in entry.banned if id < len(row)]] = -math.inf
        if choice.edits:
            choice.edits.apply(row, choice.position)
    return logits.amax(-1)


def _choose(logits: Tensor, largest: Tensor, choices: list[Choice], fine: list[bool]) -> list[int]:
    """The token of each row that is fine; 0 for the others."""
    ids = [0] * len(choices)
    greedy = [i for i, choice in enumerate(choices) if fine[i] and choice.settings.temperature == 0]
    drawn = [i for i, choice in enumerate(choices) if fine[i] and choice.settings.temperature > 0]
    if greedy:
        for i, id in zip(greedy, logits[greedy].argmax(-1).tolist(), strict=True):
            ids[i] = id
    if drawn:
        of = lambda values, dtype: torch.tensor(values, dtype=dtype, device=logits.device)
        settings = [choices[i].settings for i in drawn]
        temperature = of([s.temperature for s in settings], torch.float64)
        min_p, top_p = of([s.minP for s in settings], torch.float64), of([s.topP for s in settings], torch.float64)
        values, top = padded(logits[drawn]), largest[drawn]
        top_k = of([s.topK for s in settings], torch.int64)
        floor = survivor_floor(values, top, temperature, min_p, top_k, logits.shape[1])
        keys = of([choices[i].key for i in drawn], torch.int64)
        position = of([choices[i].position for i in drawn], torch.int64)
        for i, id in zip(drawn, draw(values, top, temperature, top_p, floor, keys, position).tolist(), strict=True):
            ids[i] = id
    return ids


def preferences(logits: Tensor, ids: list[int], legal: Tensor | None) -> tuple[list[float], ...]:
    """Of prompt tokens beside those that were legal: logprob, legal mass, likeliest legal id and its logprob, the same of
    illegal ones. legal: bool [n, vocab]; None = everything. Ids are -1 where there is none."""
    about = Distribution(logits)
    chosen = torch.tensor(ids, device=logits.device)[:, None]

    def likeliest(rows: Tensor) -> tuple[Tensor, Tensor]:
        value, id = rows.max(-1)
        id = torch.where(value == -math.inf, -1, (rows == value[:, None]).int().argmax(-1))
        logprob = about.logprobs(id.clamp(min=0)[:, None])[:, 0]
        return id, torch.where(id < 0, 0.0, logprob)

    if legal is None:
        legal = torch.ones_like(logits, dtype=torch.bool)
    legal_rows = logits.masked_fill(~legal, -math.inf)
    legal_id, legal_logprob = likeliest(legal_rows)
    some = legal_id >= 0
    within = Distribution(torch.where(some[:, None], legal_rows, logits))
    share = ((within.largest.double() - about.largest.double()).exp() * within.mass / about.mass).clamp(max=1)
    share = torch.where(legal.all(-1), 1.0, torch.where(some, share, 0.0))
    illegal_id, illegal_logprob = likeliest(logits.masked_fill(legal, -math.inf))
    columns = (about.logprobs(chosen)[:, 0], share, legal_id, legal_logprob, illegal_id, illegal_logprob)
    return tuple(column.tolist() for column in columns)
