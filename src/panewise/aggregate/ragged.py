"""Words whose states differ in size: each place has a run of entries in a block that many words may share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise import kernels
from panewise.aggregate.dictionary import ValueDictionary
from panewise.aggregate.states import Int64Array, StateWords

#: The columns of a block, all of one length: an entry has a value in each.
Entries: TypeAlias = tuple[npt.NDArray[Any], ...]

#: A block may have this many entries to which no run refers, and this many for each one that does.
SPARE_ENTRIES, SPARE_RATIO = 4096, 3


class RunBlock:
    """Entries that are only added to, so that every run stays what it was.

    `dictionary`: that of the codes among the entries, if they have codes.
    """

    def __init__(self, columns: Entries, dictionary: ValueDictionary | None = None) -> None:
        self.columns, self.used, self.dictionary = columns, len(columns[0]), dictionary

    def append(self, columns: Entries) -> int:
        """Add entries; returns the place of the first."""
        first, count = self.used, len(columns[0])
        if first + count > len(self.columns[0]):
            room = (SPARE_RATIO + 1) * (first + count)
            wider = tuple(np.empty(room, column.dtype) for column in self.columns)
            for column, held in zip(wider, self.columns, strict=True):
                column[:first] = held[:first]
            self.columns = wider
        for column, more in zip(self.columns, columns, strict=True):
            column[first : first + count] = more
        self.used += count
        return first


#: The block of an array that `RaggedArray.of` has not given its own yet.
NO_ENTRIES = RunBlock((np.zeros(0, np.int64),))


class RaggedArray(npt.NDArray[np.int64]):
    """A word that has a start and a size for each place, with the usual indexing, and the block of its entries.

    Parts of it are copies: what is written to a part does not change the whole.
    """

    block: RunBlock
    #: Whether only copies of this array share its block, which may then grow.
    _owner: bool

    @classmethod
    def of(cls, runs: Int64Array, entries: Entries, dictionary: ValueDictionary | None = None) -> RaggedArray:
        """Runs of these entries."""
        made = runs.view(cls)
        made.block = RunBlock(entries, dictionary)
        return made

    @classmethod
    def empty(cls, size: int, *kinds: npt.DTypeLike) -> RaggedArray:
        """Runs without entries, whose columns would have these types."""
        return cls.of(np.zeros((size, 2), np.int64), tuple(np.zeros(0, kind) for kind in kinds))

    def __array_finalize__(self, source: Any) -> None:
        self.block, self._owner = getattr(source, "block", NO_ENTRIES), False

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        if function is np.concatenate:
            return concat_runs(arguments[0])
        return super().__array_function__(function, types, arguments, options)

    @property
    def runs(self) -> Int64Array:
        """Starts and sizes, as an ordinary array."""
        return self.view(np.ndarray)

    @property
    def sizes(self) -> Int64Array:
        return self.runs[:, 1]

    @property
    def entries(self) -> Entries:
        """The columns of the block."""
        return self.block.columns

    @property
    def nbytes(self) -> int:
        each = sum(column.itemsize for column in self.entries)
        return 16 * len(self) + each * int(self.sizes.sum())

    def own_entries(self) -> Entries:
        """The entries of these runs alone, one run after the other."""
        first, total = kernels.runs_extent(self.runs)
        if first >= 0:
            return tuple(column[first : first + total] for column in self.entries)
        out = tuple(np.empty(total, column.dtype) for column in self.entries)
        for column, mine in zip(self.entries, out, strict=True):
            kernels.runs_copy(self.runs, column, mine)
        return out

    def to_lists(self, values: pa.Array, result: pa.DataType) -> pa.Array:
        """Lists of values, of which there is one for each of the own entries."""
        offsets = pa.array(np.append(0, np.cumsum(self.sizes)).astype(np.int32))
        return pa.ListArray.from_arrays(offsets, values, type=result)

    def compact(self) -> RaggedArray:
        """The same runs, one after the other in a block of their own."""
        return RaggedArray.of(consecutive_runs(self.sizes), self.own_entries(), self.block.dictionary)

    def __getitem__(self, where: Any) -> Any:
        # NumPy takes rows by their numbers much faster than it indexes them.
        by_number = isinstance(where, np.ndarray) and where.dtype != bool
        made = (self.runs.take(where, axis=0) if by_number else self.runs[where].copy()).view(RaggedArray)
        made.block = self.block
        return made

    def __setitem__(self, where: Any, value: Any) -> None:
        if value.block is not self.block:
            self.runs[where, 1] = 0
            if self.sizes.any():
                value = self._adopt(value)
            else:
                self.block, self._owner = value.block, False
        _pairs(self)[where] = _pairs(value)

    def _adopt(self, value: RaggedArray) -> RaggedArray:
        """Other runs, with their entries in this block."""
        mine, value = in_one_dictionary([self, value])
        live = int(self.sizes.sum()) + int(value.sizes.sum())
        if not self._owner or mine is not self or self.block.used > SPARE_RATIO * live + SPARE_ENTRIES:
            block = RunBlock(RaggedArray.empty(0, *(column.dtype for column in mine.entries)).entries)
            block.dictionary = mine.block.dictionary or value.block.dictionary
            block.append(mine.own_entries())
            self.runs[...] = consecutive_runs(mine.sizes)
            self.block, self._owner = block, True
        runs = consecutive_runs(value.sizes)
        runs[:, 0] += self.block.append(value.own_entries())
        return RaggedArray.of(runs, self.entries)

    def recode(self, dictionary: ValueDictionary) -> RaggedArray:
        """The same runs of codes and counts, in the codes of another dictionary."""
        if self.block.dictionary is None or self.block.dictionary is dictionary:
            return self
        codes, counts = self.own_entries()
        runs, fresh, counts = (
            consecutive_runs(self.sizes),
            dictionary.encode(self.block.dictionary.take(codes)),
            counts.copy(),
        )
        kernels.runs_sort(runs, fresh, counts)
        return RaggedArray.of(runs, (fresh, counts), dictionary)


def ragged_word(words: StateWords) -> RaggedArray:
    """The first word of states whose sizes differ."""
    assert isinstance(words[0], RaggedArray)
    return words[0]


def in_one_dictionary(parts: Sequence[RaggedArray]) -> Sequence[RaggedArray]:
    """The same words, all in the codes of the newest of their dictionaries."""
    known = {id(part.block.dictionary): part.block.dictionary for part in parts if part.block.dictionary is not None}
    if len(known) < 2:
        return parts
    newest = max(known.values(), key=lambda dictionary: dictionary.generation)
    return [part.recode(newest) for part in parts]


def concat_runs(parts: Sequence[RaggedArray]) -> RaggedArray:
    """Several words as one."""
    blocks = {id(part.block): part.block for part in parts if len(part)}
    if len(blocks) > 1:
        parts = in_one_dictionary([part for part in parts if len(part)])
        dictionary = next((part.block.dictionary for part in parts if part.block.dictionary is not None), None)
        columns = zip(*(part.own_entries() for part in parts), strict=True)
        sizes = np.concatenate([part.sizes for part in parts])
        return RaggedArray.of(consecutive_runs(sizes), tuple(map(np.concatenate, columns)), dictionary)
    made = np.concatenate([part.runs for part in parts]).view(RaggedArray)
    made.block = next(iter(blocks.values()), parts[0].block)
    return made


def _pairs(word: RaggedArray) -> Any:
    """Starts and sizes, each pair as one number, which NumPy moves much faster than a row of two."""
    return word.runs.view(np.complex128).reshape(-1)


def consecutive_runs(sizes: Int64Array) -> Int64Array:
    """Runs of these sizes, one after the other."""
    return np.stack([np.cumsum(sizes) - sizes, sizes], axis=1)
