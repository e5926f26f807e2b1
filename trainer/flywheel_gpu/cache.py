"""Knows who has which page of keys and values. A page is free, held by one row or several, or cached: held by nobody,
its content still findable. Only full pages are found or shared, and those are never written again.

A page's content is named by a chain of SHA-256: the parent's digest and the page's tokens. The server gives the root,
which stands for the adapter's content and the salt, so chains that must not meet never do.
"""

from array import array
from collections.abc import Iterable
from hashlib import sha256

from .kernels.interface import PAGE


class Cache:
    def __init__(self, pages: int, prefix_caching: bool):
        self.pages = pages
        self._prefix_caching = prefix_caching
        self._holders = [0] * pages
        self._free = list(range(pages - 1, -1, -1))
        self._cached: dict[int, None] = {}
        """Least recently released first."""
        self._by_digest: dict[bytes, int] = {}
        self._digest_of: dict[int, bytes] = {}

    @property
    def available(self) -> int:
        """Pages that `take` can still deliver."""
        return len(self._free) + len(self._cached)

    @property
    def usage(self) -> float:
        return 1 - self.available / self.pages

    def extend(self, digests: list[bytes], root: bytes, tokens: list[int], count: int) -> None:
        """Appends the digests of the full pages of the first `count` tokens that are not there yet."""
        while self._prefix_caching and (len(digests) + 1) * PAGE <= count:
            content = array("i", tokens[len(digests) * PAGE : (len(digests) + 1) * PAGE])
            digests.append(sha256((digests[-1] if digests else root) + content.tobytes()).digest())

    def find(self, digests: Iterable[bytes]) -> list[int]:
        """The pages with this content, up to the first that is missing."""
        found = []
        for digest in digests:
            page = self._by_digest.get(digest)
            if page is None:
                break
            found.append(page)
        return found

    def is_held(self, page: int) -> bool:
        return self._holders[page] > 0

    def take(self) -> int:
        """A page without content: a free one, else the least recently used cached one."""
        if self._free:
            page = self._free.pop()
        else:
            page = next(iter(self._cached))
            del self._cached[page]
            self.forget(page)
        self._holders[page] = 1
        return page

    def share(self, page: int) -> None:
        """One more row holds this full page."""
        self._cached.pop(page, None)
        self._holders[page] += 1

    def remember(self, digest: bytes, page: int) -> None:
        """The page now has this content. Does nothing if another page is already found for it."""
        if digest not in self._by_digest:
            self._by_digest[digest], self._digest_of[page] = page, digest

    def forget(self, page: int) -> None:
        digest = self._digest_of.pop(page, None)
        if digest is not None:
            del self._by_digest[digest]

    def release(self, pages: list[int]) -> None:
        """One row gives its pages back. The end of a chain is evicted first."""
        for page in reversed(pages):
            self._holders[page] -= 1
            if self._holders[page] == 0:
                if page in self._digest_of:
                    self._cached[page] = None
                else:
                    self._free.append(page)

    def alone(self, pages: list[int]) -> list[int]:
        """Those that no other row holds."""
        return [page for page in pages if self._holders[page] == 1]

    def check_integrity(self, holdings: Iterable[list[int]]) -> None:
        """`holdings`: the pages of every row."""
        holders = [0] * self.pages
        for pages in holdings:
            for page in pages:
                holders[page] += 1
        assert holders == self._holders, "holders are counted wrong"
        idle = [*self._free, *self._cached]
        assert len(set(idle)) == len(idle), "a page is in two places"
        assert sorted(idle) == [page for page in range(self.pages) if holders[page] == 0], "a page is nowhere"
        assert {page: digest for digest, page in self._by_digest.items()} == self._digest_of, "digests differ"
        assert all(page in self._digest_of for page in self._cached), "a cached page cannot be found"
