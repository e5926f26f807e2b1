"""The step loop: commands, then schedule -> forward -> sample -> tell the server -> free, for all rows at once.

A row with a mask gets its token when the server has said what is legal. Until then it keeps its logits and sits out
steps, so that a slow grammar never slows others.
"""

import math
import queue
import time

import torch
from torch import Tensor

from .channel import Channel, Frame, require
from .kernels.interface import PAGE, Batch, Piece
from .model import Model
from .sample import Choice, Chosen, Distribution, Edits, Entry, Masks, Settings, preferences, sample, unpack
from .schedule import Chunk, Request, Row, Schedule

# Rows with a mask may make a step wait for so long.
MASK_SECONDS = 0.002
# Prompt tokens of a chunk that is not halved any more when memory does not suffice.
LEAST_CHUNK = 256
NO_ROOM = "the GPU has no memory left for this request: shorten it, or end other programs that use the GPU"


class Steps:
    def __init__(self, channel: Channel, schedule: Schedule, model: Model, pool: Tensor, masks: Masks, vocab: int):
        self._channel, self._schedule, self._model, self._pool = channel, schedule, model, pool
        self._masks, self._vocab, self._device = masks, vocab, pool.device
        self._rows: dict[int, Row] = {}
        self._faults: list[dict] = []
        self._prefilled: list[Request] = []
        self.handlers = {"add": self._add, "masks": self._take_masks, "stop": self._stop}
        """What a frame does. Others may add theirs."""
        self._told = self._stats()

    def run(self) -> None:
        commands, moved = self._channel.commands, True
        while True:
            if not moved and commands.empty():
                self._tell_stats()
                self._handle(commands.get())
            while not commands.empty():
                self._handle(commands.get())
            moved = self.step()

    def step(self) -> bool:
        """One step of everything that can run. False: nothing could, and nothing will until a command comes."""
        preemptions, decode, prefill = self._schedule.preemptions, 0, 0
        chunks = self._schedule.next()
        logits = self._forward(chunks)
        if logits is not None:
            for chunk in chunks:
                decodes = chunk.start >= len(chunk.row.request.prompt)
                decode += decodes
                prefill += 0 if decodes else chunk.end - chunk.start
            self._take_in(chunks, logits)
        self._wait_for_masks()
        forced = [row for row in self._schedule.running if self._append_forced(row)]
        ready = [row for row in self._schedule.running if row.logits is not None and self._has_mask(row)]
        self._tell(ready, self._sample(ready), decode, prefill)
        return bool(chunks or forced or ready or self._schedule.preemptions > preemptions)

    def _handle(self, frame: Frame) -> None:
        require(frame.type in self.handlers, f"an unknown frame: {frame.type}")
        self.handlers[frame.type](frame)

    def _wait_for_masks(self) -> None:
        until = time.monotonic() + MASK_SECONDS
        while any(row.logits is not None and not self._has_mask(row) for row in self._schedule.running):
            try:
                self._handle(self._channel.commands.get(timeout=max(0.0, until - time.monotonic())))
            except queue.Empty:
                return

    # commands

    def _add(self, frame: Frame) -> None:
        request, order = request_of(frame)
        numbers = frame.header["rows"]
        require(len(numbers) > 0 and not self._rows.keys() & set(numbers), "rows are missing or known")
        require(len(numbers) == len(request.settings.keys), "keys are not one for each row")
        require(len(request.prompt) > 0 and self._known(request.prompt), "a prompt outside the vocabulary")
        if request.legal_index:
            require(max(request.legal_index) < len(request.legal_bits), "a legal set that is not there")
        for index, number in enumerate(numbers):
            row = Row(number, request, index, (*order, index), list(request.prompt))
            if Edits.needed(request.settings):
                row.edits = Edits(request.settings, row.tokens, len(request.prompt), self._vocab, self._device)
            request.rows.append(row)
            self._rows[number] = row
        self._schedule.add(request)

    def _take_masks(self, frame: Frame) -> None:
        ints = frame.ints
        bit_slots, list_slots = ints("bitSlots"), ints("listSlots")
        require(max(bit_slots + list_slots + ints("legal"), default=0) < self._masks.slots, "a mask slot that is not there")
        require(self._known(ints("listIds") + ints("forcedIds")), "a mask outside the vocabulary")
        if bit_slots:
            self._masks.define(bit_slots, frame.arrays["bits"])
        list_ids = iter(ints("listIds"))
        for slot, count in zip(list_slots, ints("listCounts"), strict=True):
            self._masks.define_list(slot, [next(list_ids) for _ in range(count)])
        forced, banned = iter(ints("forcedIds")), iter(ints("bannedIds"))
        columns = [ints(name) for name in ("rows", "positions", "forcedCounts", "legal", "only", "bannedCounts")]
        for number, position, forced_count, legal, only, banned_count in zip(*columns, strict=True):
            entry = Entry(
                position=position,
                forced=[next(forced) for _ in range(forced_count)],
                legal=legal,
                only=only,
                banned=[next(banned) for _ in range(banned_count)],
            )
            require(only < self._vocab, "a token outside the vocabulary")
            if row := self._rows.get(number):
                row.entry = entry

    def _known(self, ids: list[int]) -> bool:
        return min(ids, default=0) >= 0 and max(ids, default=0) < self._vocab

    def _stop(self, frame: Frame) -> None:
        for number in frame.header["rows"]:
            if row := self._rows.get(number):
                self._end(row)

    # a step

    def _forward(self, chunks: list[Chunk]) -> Tensor | None:
        if not chunks:
            return None
        try:
            return self._model.forward(self._batch(chunks))
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            if self._schedule.step_tokens > LEAST_CHUNK:
                self._schedule.step_tokens //= 2
            else:
                for chunk in chunks:
                    self._fault(chunk.row, "error", NO_ROOM)
            return None

    def _batch(self, chunks: list[Chunk]) -> Batch:
        ids, positions, places, pieces, tables, wanted = [], [], [], [], [], []
        adapted: dict[int, list[int]] = {}
        for chunk in chunks:
            row, start, end = chunk.row, chunk.start, chunk.end
            if chunk.all_logits:
                wanted += range(len(ids), len(ids) + end - start)
            elif end == len(row.tokens):
                wanted.append(len(ids) + end - start - 1)
            if row.request.slot:
                adapted.setdefault(row.request.slot, []).extend(range(len(ids), len(ids) + end - start))
            ids += row.tokens[start:end]
            positions += range(start, end)
            places += [row.pages[at // PAGE] * PAGE + at % PAGE for at in range(start, end)]
            pieces.append(Piece(start, end - start))
            tables.append(row.pages[: -(-end // PAGE)])
        most = max(len(table) for table in tables)
        of = lambda values: torch.tensor(values, dtype=torch.int64, device=self._device)
        table = of([pages + [0] * (most - len(pages)) for pages in tables])
        slots = [(slot, of(rows)) for slot, rows in adapted.items()]
        return Batch(of(ids), of(positions), of(places), pieces, table, slots, of(wanted))

    def _take_in(self, chunks: list[Chunk], logits: Tensor) -> None:
        """What the model has computed. Leaves the logits of the next token with each row that needs one."""
        at = 0
        for chunk in chunks:
            row, request = chunk.row, chunk.row.request
            ends = chunk.end == len(row.tokens)
            count = chunk.end - chunk.start if chunk.all_logits else int(ends)
            rows = logits[at : at + count]
            at += count
            self._schedule.commit(chunk)
            if chunk.all_logits and not self._describe_prompt(chunk, rows):
                continue
            if not ends:
                continue
            row.logits = rows[-1]
            if not request.prefilled:
                self._prefilled.append(request)
                for follower in self._schedule.prefilled(row):
                    if row.computed % PAGE:
                        self._pool[follower.pages[-1]] = self._pool[row.pages[-1]]
                    follower.logits = row.logits

    def _describe_prompt(self, chunk: Chunk, logits: Tensor) -> bool:
        """Tells what was asked about the prompt: logits row i is about the token after start + i. False: they are no numbers."""
        request = chunk.row.request
        prompt, index = request.prompt, request.legal_index or []
        about = range(max(chunk.start + 1, request.reported), min(chunk.end + 1, len(prompt)))
        if len(about) == 0:
            return True
        rows = logits[about.start - 1 - chunk.start : about.stop - 1 - chunk.start]
        if not (rows < math.inf).all() or (rows == -math.inf).all(-1).any():
            self._fault_of_logits(chunk.row, rows)
            return False
        ids = prompt[about.start : about.stop]
        if request.settings.promptLogprobs is not None:
            reports = Distribution(rows).report(ids, [request.settings.promptLogprobs] * len(ids))
            self._channel.send("prompt", {"request": request.number, "start": about.start}, report_arrays(reports))
        first = max(about.start, len(prompt) - len(index))
        if first < about.stop:
            self._tell_preferences(request, first, prompt[first : about.stop], rows[first - about.start :])
        request.reported = about.stop
        return True

    def _tell_preferences(self, request: Request, first: int, ids: list[int], rows: Tensor) -> None:
        start = first - (len(request.prompt) - len(request.legal_index))
        index = request.legal_index[start : start + len(ids)]
        legal = torch.ones(len(ids), self._vocab, dtype=torch.bool, device=self._device)
        limited = [i for i, number in enumerate(index) if number >= 0]
        if limited:
            bits = request.legal_bits[[index[i] for i in limited]].to(self._device)
            legal[limited] = unpack(bits, self._vocab)
        columns = preferences(rows, ids, legal)
        names = ("logprobs", "legalMass", "legalIds", "legalLogprobs", "illegalIds", "illegalLogprobs")
        types = (torch.float32, torch.float32, torch.int32, torch.float32, torch.int32, torch.float32)
        arrays = {
            name: torch.tensor(column, dtype=dtype) for name, column, dtype in zip(names, columns, types, strict=True)
        }
        self._channel.send("preferences", {"request": request.number, "start": start}, arrays)

    def _has_mask(self, row: Row) -> bool:
        return row.entry is not None or not row.request.masked

    def _append_forced(self, row: Row) -> bool:
        """Tokens before the next position, which have to be computed first."""
        if row.logits is None or row.entry is None or not row.entry.forced:
            return False
        for id in row.entry.forced:
            row.tokens.append(id)
            if row.edits:
                row.edits.note(id)
        row.entry.forced, row.logits = [], None
        return True

    def _sample(self, rows: list[Row]) -> list[Chosen]:
        if not rows:
            return []
        choices = [
            Choice(row.request.settings, row.request.settings.keys[row.index], row.output, row.edits, row.entry)
            for row in rows
        ]
        return sample(torch.stack([row.logits for row in rows]), choices, self._masks)

    def _tell(self, rows: list[Row], chosen: list[Chosen], decode: int, prefill: int) -> None:
        """Takes in the tokens, frees rows that end, and sends the frame of the step."""
        told = [(row, one) for row, one in zip(rows, chosen, strict=True) if one.fault is None]
        finish = []
        for row, one in zip(rows, chosen, strict=True):
            row.logits = row.entry = None
            if one.fault is not None:
                self._fault(row, one.fault, "")
                continue
            row.tokens.append(one.id)
            if row.edits:
                row.edits.note(one.id)
            finish.append(row.request.settings.finish(row.output, one.id))
        for (row, _), reason in zip(told, finish, strict=True):
            if reason:
                self._end(row)
        if not (told or decode or prefill or self._faults or self._prefilled):
            return
        ints = lambda values: torch.tensor(values, dtype=torch.int32)
        arrays = {
            "prefilledRequests": torch.tensor([r.number for r in self._prefilled], dtype=torch.int64),
            "prefilledCached": torch.tensor([r.cached for r in self._prefilled], dtype=torch.int64),
            "prefilledQueuedMs": torch.tensor([1000 * (r.started - r.received) for r in self._prefilled]),
            "rows": torch.tensor([row.number for row, _ in told], dtype=torch.int64),
            "ids": ints([one.id for _, one in told]),
            "finish": torch.tensor(finish, dtype=torch.uint8),
            **report_arrays([one.report for _, one in told]),
        }
        self._told = self._stats()
        fields = {"decode": decode, "prefill": prefill, "stats": self._told, "faults": self._faults}
        self._faults, self._prefilled = [], []
        self._channel.send("step", fields, arrays)

    # ends

    def _fault(self, row: Row, kind: str, message: str) -> None:
        """The row ends with an error. What it alone has written may hold numbers that are none, and goes."""
        self._faults.append({"rows": [row.number], "kind": kind, "message": message})
        if kind in ("nan", "infinity"):
            self._schedule.scrub(row, self._pool)
        self._end(row)

    def _fault_of_logits(self, row: Row, rows: Tensor) -> None:
        kind = "nan" if rows.isnan().any() else "infinity" if (rows == math.inf).any() else "nothing"
        for each in list(row.request.rows):
            self._fault(each, kind, "")

    def _end(self, row: Row) -> None:
        del self._rows[row.number]
        self._schedule.finish(row)

    # counters

    def _stats(self) -> dict:
        schedule = self._schedule
        return {
            "running": len(schedule.running),
            "waiting": len(self._rows) - len(schedule.running),
            "kvUsage": schedule.usage,
            "preemptions": schedule.preemptions,
            "prefixQueries": schedule.prefix_queries,
            "prefixHits": schedule.prefix_hits,
        }

    def _tell_stats(self) -> None:
        """What changed without a step."""
        stats = self._stats()
        if stats != self._told:
            self._told = stats
            self._channel.send("stats", {"stats": stats})


def request_of(frame: Frame) -> tuple[Request, tuple[float, int]]:
    """The request of an `add`, and its place in the order: rank, arrival."""
    header, arrays = frame.header, frame.arrays
    legal = "legalIndex" in arrays
    request = Request(
        number=header["request"],
        root=bytes.fromhex(header["root"]),
        slot=header["adapter"],
        masked=header["masked"],
        settings=Settings(**header["sampling"]),
        prompt=frame.ints("prompt"),
        legal_index=frame.ints("legalIndex") if legal else None,
        legal_bits=arrays["legalBits"] if legal else None,
    )
    return request, (header["rank"], header["arrival"])


def report_arrays(reports: list) -> dict[str, Tensor]:
    ids = [id for report in reports for id in report.top_ids]
    logprobs = [value for report in reports for value in report.top_logprobs]
    return {
        "logprobs": torch.tensor([report.logprob for report in reports], dtype=torch.float32),
        "ranks": torch.tensor([report.rank for report in reports], dtype=torch.int32),
        "topCounts": torch.tensor([len(report.top_ids) for report in reports], dtype=torch.int64),
        "topIds": torch.tensor(ids, dtype=torch.int32),
        "topLogprobs": torch.tensor(logprobs, dtype=torch.float32),
    }
