"""The sequences of a task, and how they become the rows of a pass.

A pass has rows, not a padded batch. Sequences of one group that begin with the same tokens share the rows of that
beginning, and the rest of each follows as a segment. A row keeps its position and attends only to its own sequence, so
shared rows give the numbers of separate ones. The layout is the one of the server's training/onnx/packing.
"""

import json
import math
from array import array
from dataclasses import dataclass, field
from typing import Callable, Iterable

import torch
from torch import Tensor

# The smallest log-probability on the wire.
LEAST = -9999.0
# Sharing a shorter beginning is not worth the bookkeeping.
SHORTEST_SHARED = 8


@dataclass
class Sequence:
    index: int
    """Its line in the batch file."""
    ids: list[int]
    predicting: list[int]
    """Positions p whose next token ids[p + 1] is trained, ascending."""
    sampler: Tensor
    """One log-probability per trained token, as the sampler reported it, within [-9999, 0]; NaN = unknown."""
    advantage: float
    weight: float
    group: int
    precalculated: Tensor | None = None
    reference: Tensor | None = None


def read_batch(path: str) -> list[Sequence]:
    with open(path, encoding="utf8") as file:
        return [_sequence(json.loads(line), i) for i, line in enumerate(line for line in file if line.strip())]


def _sequence(line: dict, index: int) -> Sequence:
    trained = [i for i, bit in enumerate(line["mask"]) if bit == 1 and i > 0]
    old = [line["oldLogprobs"][i] for i in trained]
    sampler = torch.tensor([math.nan if value is None else value for value in old], dtype=torch.float64)
    return Sequence(
        index=index,
        ids=line["ids"],
        predicting=[i - 1 for i in trained],
        sampler=sampler.clamp(LEAST, 0),
        advantage=line["advantage"],
        weight=line["weight"],
        group=line["group"],
    )


@dataclass
class Family:
    """Sequences that share their first `shared` tokens; 0 = they share nothing."""

    shared: int
    members: list[Sequence]

    @property
    def rows(self) -> int:
        return self.shared + sum(len(member.ids) - self.shared for member in self.members)


@dataclass
class Segment:
    """Adjacent rows with consecutive positions. `parent`: index of the segment that it continues; -1 = none."""

    row: int
    count: int
    position: int
    parent: int


@dataclass
class Rows:
    """The rows of one pass."""

    ids: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    read_rows: list[int] = field(default_factory=list)
    """The row that each trained token's log-probability is read from: one sequence after the other."""
    targets: list[int] = field(default_factory=list)
    sequences: list[Sequence] = field(default_factory=list)

    @staticmethod
    def of(families: Iterable[Family]) -> "Rows":
        rows = Rows()
        for family in families:
            parent = rows._append(family.members[0].ids[: family.shared], 0, -1) if family.shared > 0 else -1
            for member in family.members:
                own = rows._append(member.ids[family.shared :], family.shared, parent)
                rows.sequences.append(member)
                for p in member.predicting:
                    start = rows.segments[parent if p < family.shared else own]
                    rows.read_rows.append(start.row + p - start.position)
                    rows.targets.append(member.ids[p + 1])
        return rows

    def _append(self, ids: list[int], position: int, parent: int) -> int:
        self.segments.append(Segment(len(self.ids), len(ids), position, parent))
        self.ids.extend(ids)
        self.positions.extend(range(position, position + len(ids)))
        return len(self.segments) - 1


@dataclass
class MicroBatch:
    rows: Rows
    recompute: bool
    """Keeps only the inputs of layers and computes the rest again in the backward pass."""


@dataclass
class Memory:
    """How many rows fit, with everything kept and with layer inputs only."""

    rows: int
    recomputed_rows: int


class TooLong(Exception):
    """A sequence does not fit, even alone."""


def plan_micro_batches(sequences: list[Sequence], memory: Memory) -> list[MicroBatch]:
    """Fills micro-batches with as many rows as fit. Families are split when they are too large."""
    batches: list[MicroBatch] = []
    open_families: list[Family] = []

    def close() -> None:
        if open_families:
            batches.append(MicroBatch(Rows.of(open_families), recompute=False))
            open_families.clear()

    for family in families_of(sequences):
        for part in _split(family, memory):
            if part.rows > memory.rows:
                batches.append(MicroBatch(Rows.of([part]), recompute=True))
                continue
            if sum(f.rows for f in open_families) + part.rows > memory.rows:
                close()
            open_families.append(part)
    close()
    return batches


def _split(family: Family, memory: Memory) -> list[Family]:
    parts: list[Family] = []
    for member in family.members:
        if len(member.ids) > memory.recomputed_rows:
            raise TooLong(f"{len(member.ids)} tokens do not fit the memory allowed for training")
        last = parts[-1] if parts else None
        joined = Family(family.shared, [*last.members, member]) if last else None
        if joined and joined.rows <= memory.rows:
            parts[-1] = joined
        else:
            parts.append(Family(family.shared, [member]))
    return [part if len(part.members) > 1 else Family(0, part.members) for part in parts]


def families_of(sequences: list[Sequence]) -> list[Family]:
    groups: dict[int, list[Sequence]] = {}
    families: list[Family] = []
    for sequence in sequences:
        if sequence.group < 0:
            families.append(Family(0, [sequence]))
        else:
            groups.setdefault(sequence.group, []).append(sequence)
    for members in groups.values():
        shared = _shared_length(members)
        families.append(Family(shared if shared >= SHORTEST_SHARED else 0, members))
    return families


def _shared_length(members: list[Sequence]) -> int:
    if len(members) < 2:
        return 0
    first, last = min(m.ids for m in members), max(m.ids for m in members)
    # lists compare by their first difference, so the smallest and the largest differ first
    same = next((i for i, (a, b) in enumerate(zip(first, last)) if a != b), min(len(first), len(last)))
    return same


def share_of_rank(sequences: list[Sequence], rank: int, world: int) -> list[Sequence]:
    """The sequences of this rank. Groups stay together; the longest goes to the rank with the fewest rows."""
    if world == 1:
        return sequences
    loads = [0] * world
    mine: list[Sequence] = []
    for family in sorted(families_of(sequences), key=lambda f: (-f.rows, f.members[0].index)):
        to = loads.index(min(loads))
        loads[to] += family.rows
        if to == rank:
            mine.extend(family.members)
    return sorted(mine, key=lambda sequence: sequence.index)


def each_token(sequences: list[Sequence], value: Callable[[Sequence], Tensor]) -> Tensor:
    """One value per trained token of these sequences."""
    parts = [value(sequence) for sequence in sequences]
    return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.float64)


def whole_numbers(values: list[int]) -> Tensor:
    """int64. torch.tensor takes seven times as long for a list, and a GPU waits meanwhile."""
    return torch.frombuffer(array("q", values), dtype=torch.int64) if values else torch.empty(0, dtype=torch.int64)
