"""Decides before every step which rows run and which tokens of each: continuous batching over the paged cache.

Rows that decode always run. The rest of the step's tokens goes to prompts, first of running rows, then of new ones.
When pages run out, the last row in order gives all of its pages back and computes its tokens again later.
"""

import bisect
import time
from dataclasses import dataclass, field
from operator import attrgetter

from torch import Tensor

from .cache import Cache
from .kernels.interface import PAGE
from .sample import Edits, Entry, Settings

WAITING, FOLLOWING, RUNNING, GONE = "waiting", "following", "running", "gone"


@dataclass
class Request:
    """What rows of one `add` share."""

    number: int
    root: bytes
    slot: int
    masked: bool
    settings: Settings
    prompt: list[int]
    legal_index: list[int] | None
    """For each of the last prompt tokens, which tokens were legal: -1 = all, else a row of legal_bits."""
    legal_bits: Tensor | None
    rows: list["Row"] = field(default_factory=list)
    received: float = field(default_factory=time.monotonic)
    started: float | None = None
    cached: int = 0
    prefilled: bool = False
    reported: int = 0
    """Prompt positions whose logits were reported: all below this."""

    @property
    def first_row(self) -> int | None:
        """The first position of the prompt whose logits are asked for; None = only the last one's."""
        if self.prefilled:
            return None
        if self.settings.promptLogprobs is not None:
            return 0
        return None if self.legal_index is None else len(self.prompt) - len(self.legal_index) - 1


@dataclass(eq=False)
class Row:
    """One choice of a request."""

    number: int
    request: Request
    index: int
    order: tuple[float, int, int]
    tokens: list[int]
    state: str = WAITING
    computed: int = 0
    """Tokens whose keys and values are in the pages."""
    pages: list[int] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)
    logits: Tensor | None = None
    """[vocab]: of the next token, while its mask is not there."""
    entry: Entry | None = None
    edits: Edits | None = None

    @property
    def pending(self) -> int:
        return len(self.tokens) - self.computed

    @property
    def output(self) -> int:
        return len(self.tokens) - len(self.request.prompt)


@dataclass
class Chunk:
    """Tokens start .. end - 1 of a row go through the model."""

    row: Row
    start: int
    end: int
    all_logits: bool
    """Of every position, or of the last one if it is the row's last token."""


def pages_for(tokens: int) -> int:
    return -(-tokens // PAGE)


class Schedule:
    def __init__(self, cache: Cache, most_rows: int, step_tokens: int, logit_rows: int):
        """`logit_rows`: most rows of one chunk when all of its logits are wanted."""
        self._cache, self._most_rows = cache, most_rows
        self.step_tokens, self._logit_rows = step_tokens, max(PAGE, logit_rows // PAGE * PAGE)
        self.running: list[Row] = []
        self.waiting: list[Row] = []
        self._coming: dict[bytes, Row] = {}
        """Who computes the content of this digest now."""
        self.preemptions = self.prefix_queries = self.prefix_hits = 0

    @property
    def usage(self) -> float:
        return self._cache.usage

    def add(self, request: Request) -> None:
        """The first row computes the prompt. The others follow it."""
        for row in request.rows[1:]:
            row.state = FOLLOWING
        self._wait(request.rows[0])

    def next(self) -> list[Chunk]:
        """The chunks of the next step."""
        preempted = self._secure_pages()
        chunks = [self._chunk(row, 1) for row in self.running if row.pending == 1]
        budget = max(PAGE, self.step_tokens - len(chunks))
        for row in [row for row in self.running if row.pending > 1]:
            budget -= self._give(row, budget, chunks)
        # Nobody is admitted in a step with a preemption: a newcomer would take the pages just freed.
        while not preempted and budget >= PAGE and (row := self._admit()):
            budget -= self._give(row, budget, chunks)
        return chunks

    def commit(self, chunk: Chunk) -> None:
        """The chunk's keys and values are in the pages."""
        row = chunk.row
        row.computed = chunk.end
        self._cache.extend(row.digests, row.request.root, row.tokens, row.computed)
        for i in range(chunk.start // PAGE, min(chunk.end // PAGE, len(row.digests))):
            self._cache.remember(row.digests[i], row.pages[i])
            self._coming.pop(row.digests[i], None)

    def prefilled(self, leader: Row) -> list[Row]:
        """The leader has the prompt's logits. Returns the rows that now share its pages and these logits."""
        leader.request.prefilled = True
        forked = []
        for row in leader.request.rows:
            if row.state == FOLLOWING:
                if self._fork(leader, row):
                    forked.append(row)
                else:
                    self._wait(row)
        return forked

    def finish(self, row: Row) -> None:
        """Removes a row in any state and frees what it holds."""
        was, row.state = row.state, GONE
        if was == RUNNING:
            self.running.remove(row)
            self._release(row)
        elif was == WAITING:
            self.waiting.remove(row)
        row.request.rows.remove(row)
        row.logits = row.edits = row.entry = None
        rest = row.request.rows
        if rest and all(other.state == FOLLOWING for other in rest):
            self._wait(rest[0])

    def scrub(self, row: Row, pool: Tensor) -> None:
        """Clears the pages that only this row holds: a NaN in them would spread to whoever gets them next."""
        pages = self._cache.alone(row.pages)
        for page in pages:
            self._cache.forget(page)
        pool[pages] = 0

    def check_integrity(self) -> None:
        self._cache.check_integrity(row.pages for row in self.running)
        assert all(row.state == RUNNING for row in self.running)
        assert all(row.state == WAITING and not row.pages for row in self.waiting)
        assert self.running == sorted(self.running, key=attrgetter("order"))
        assert self.waiting == sorted(self.waiting, key=attrgetter("order"))
        assert all(row in self.running for row in self._coming.values())

    def _wait(self, row: Row) -> None:
        row.state = WAITING
        bisect.insort(self.waiting, row, key=attrgetter("order"))

    def _run(self, row: Row) -> None:
        row.state = RUNNING
        bisect.insort(self.running, row, key=attrgetter("order"))

    def _release(self, row: Row) -> None:
        self._cache.release(row.pages)
        for digest in row.digests:
            if self._coming.get(digest) is row:
                del self._coming[digest]
        row.pages, row.digests, row.computed, row.logits = [], [], 0, None

    def _secure_pages(self) -> bool:
        """Makes room for the known tokens of every running row, first ones first. Whether a row was preempted."""
        preempted, i = False, 0
        while i < len(self.running):
            if self._grow(self.running[i]):
                i += 1
                continue
            victim = self.running.pop()  # never one before i
            self._release(victim)
            self._wait(victim)
            self.preemptions += 1
            preempted = True
        return preempted

    def _grow(self, row: Row) -> bool:
        missing = pages_for(len(row.tokens)) - len(row.pages)
        if missing > self._cache.available:
            return False
        row.pages += [self._cache.take() for _ in range(missing)]
        return True

    def _admit(self) -> Row | None:
        """Starts the first waiting row if it fits; only ever the first, so that large ones do not starve. A row whose
        beginning is being computed for another one is passed over until that is done."""
        if len(self.running) >= self._most_rows:
            return None
        for row in self.waiting:
            hits = self._find(row)
            if hits is None:
                continue
            # One spare page for each running row keeps a newcomer from being preempted in its first steps.
            own = pages_for(len(row.tokens)) - len(hits)
            cached = sum(not self._cache.is_held(page) for page in hits)
            if own + cached + len(self.running) > self._cache.available:
                return None
            self.waiting.remove(row)
            self._start(row, hits)
            return row
        return None

    def _find(self, row: Row) -> list[int] | None:
        """Cached pages of its beginning; None = more are being computed now. At least one token is left to compute."""
        first, most = row.request.first_row, len(row.tokens) - 1
        full = (most if first is None else min(first, most)) // PAGE
        self._cache.extend(row.digests, row.request.root, row.tokens, len(row.tokens))
        hits = self._cache.find(row.digests[:full])
        if len(hits) < min(full, len(row.digests)) and row.digests[len(hits)] in self._coming:
            return None
        return hits

    def _start(self, row: Row, hits: list[int]) -> None:
        for page in hits:
            self._cache.share(page)
        row.pages, row.computed = list(hits), len(hits) * PAGE
        self._grow(row)
        for digest in row.digests[len(hits) :]:
            self._coming.setdefault(digest, row)
        self._run(row)
        request = row.request
        if request.started is None:
            request.started, request.cached = time.monotonic(), row.computed
            self.prefix_queries += len(request.prompt)
            self.prefix_hits += row.computed

    def _fork(self, leader: Row, row: Row) -> bool:
        """Full pages are shared. A partly filled one gets a page of its own, whose bytes the step loop copies."""
        full = leader.computed // PAGE
        partial = leader.computed % PAGE > 0
        if len(self.running) >= self._most_rows or partial + len(self.running) + 1 > self._cache.available:
            return False
        for page in leader.pages[:full]:
            self._cache.share(page)
        row.pages, row.digests, row.computed = leader.pages[:full], leader.digests[:full], leader.computed
        if partial:
            row.pages.append(self._cache.take())
        self._run(row)
        return True

    def _give(self, row: Row, budget: int, chunks: list[Chunk]) -> int:
        chunk = self._chunk(row, budget)
        if chunk is None:
            return 0
        chunks.append(chunk)
        return chunk.end - chunk.start

    def _chunk(self, row: Row, budget: int) -> Chunk | None:
        """The next chunk of at most `budget` tokens. One that leaves a rest ends where a page ends; None if none fits."""
        start, first = row.computed, row.request.first_row
        limit = budget if first is None or start + budget <= first else min(budget, self._logit_rows)
        end = len(row.tokens) if row.pending <= limit else (start + limit) // PAGE * PAGE
        return Chunk(row, start, end, first is not None and end > first) if end > start else None
