"""Labels of entities and relations: id to label, label to id, and their form in TREC files.

A label is any non-empty run of bytes. One Arrow array keeps millions of them, never Python objects;
ids that are their own labels (a graph given as arrays) need no memory.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import Any, overload

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import require_type
from kgtrec._internal.arrays import Array, Int32, Int64, Integers
from kgtrec._internal.csr import offsets_of
from kgtrec.errors import InputError, UsageError, refuse_if

# White space by C's isspace() would end a docno; NUL would end the string that holds it.
_SEPARATORS = b"\x00\t\n\v\f\r "
_NEEDS_ENCODING = rb"[\x00\x09-\x0d\x20]|%[0-9A-Fa-f]{2}"
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_DECIMAL = re.compile(r"0|[1-9][0-9]{0,18}")
_WHOLE_TEXT = r"^(0|[1-9][0-9]{0,17})$"
_WHOLE = re.compile(_WHOLE_TEXT.encode("ascii"))
_ITERATION_CHUNK = 1 << 16
_BYTES_CHUNK = 1 << 20
_FEW_IDS = 1 << 16


def decode_docno(docno: bytes) -> bytes:
    """Return the label of a docno (see `Labels.docnos`)."""
    return _ESCAPE.sub(lambda match: bytes([int(match.group(1), 16)]), docno)


class Labels(Sequence[str]):
    """Immutable sequence of distinct labels; the position of a label is its id.

    Labels are bytes inside and ``str`` outside: UTF-8, with other bytes as lone surrogates
    (``errors="surrogateescape"``), so every label survives the round trip. Make one with
    `Labels.decimal`, `Labels.from_strings` or `Labels.from_arrow`.
    """

    def __init__(self, size: int, array: Any = None, ascending: bool = False) -> None:
        self._size = size
        self._array = array
        self._ascending = ascending

    @classmethod
    def decimal(cls, size: int) -> Labels:
        """Make labels that are the ids' numbers: the label of id 7 is ``"7"``."""
        return cls(int(size))

    @classmethod
    def from_arrow(cls, array: Any, *, ascending: bool = False) -> Labels:
        """Wrap a ``large_binary`` array of distinct, non-empty labels (not checked here)."""
        size = len(array)
        # One canonical form, so equal labels have equal hashes in whatever form they were given.
        if size and array[0].as_py() == b"0" and array[size - 1].as_py() == b"%d" % (size - 1):
            decimal = cls.decimal(size)
            if decimal.to_arrow().equals(array):
                return decimal
        return cls(size, array, ascending)

    @classmethod
    def from_strings(cls, labels: Sequence[str]) -> Labels:
        """Make labels from strings in id order."""
        import pyarrow.compute as pc

        if isinstance(labels, Labels):
            return labels
        array = _encode_all(labels)
        empty = pc.index(array, b"").as_py()
        if empty >= 0:
            raise InputError(f"label {empty} is empty; give every id its own name")
        if repeat := first_repeat(array):
            label = array[repeat[0]].as_py().decode("utf-8", "surrogateescape")
            ids = f"for ids {repeat[0]} and {repeat[1]}"
            raise InputError(f"label {label!r} is given twice, {ids}; labels must be distinct")
        return cls.from_arrow(array)

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice | Array | Sequence[int]) -> list[str]: ...
    def __getitem__(self, index: Any) -> str | list[str]:
        """Return the label of one id, or the labels of a slice or integer array, as a list."""
        if isinstance(index, slice):
            return self._take(np.arange(self._size)[index])
        chosen = np.asarray(index)
        if chosen.size == 0 and not isinstance(index, np.ndarray):
            return []
        if chosen.dtype.kind not in "iu" or chosen.ndim > 1:
            raise TypeError(f"labels are indexed by ids, slices or id arrays, not {index!r}")
        outside = (chosen < -self._size) | (chosen >= self._size)
        if outside.any():
            bad = int(np.atleast_1d(chosen)[np.atleast_1d(outside)][0])
            raise IndexError(f"id {bad} is out of range: there are {self._size} labels")
        chosen = np.where(chosen < 0, chosen + self._size, chosen).astype(np.int64)
        return self._take(chosen) if chosen.ndim else self._take(chosen[None])[0]

    def _take(self, ids: Int64) -> list[str]:
        if self._array is None:
            return [str(number) for number in ids.tolist()]
        if len(ids) == 1:  # as_py of one element is much cheaper than a kernel call
            return [self._array[int(ids[0])].as_py().decode("utf-8", "surrogateescape")]
        raw_labels = self.arrow_of(ids).to_pylist()
        return [label.decode("utf-8", "surrogateescape") for label in raw_labels]

    def __iter__(self) -> Iterator[str]:
        for start in range(0, self._size, _ITERATION_CHUNK):
            yield from self[start : start + _ITERATION_CHUNK]

    def __contains__(self, label: object) -> bool:
        return isinstance(label, str) and self._find(label) >= 0

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Labels):
            if self._array is None or other._array is None:
                # from_arrow keeps decimal labels in decimal form, so a mixed pair must differ.
                return self._array is other._array and self._size == other._size
            return bool(self._array.equals(other._array))
        if isinstance(other, (str, bytes)) or not isinstance(other, Sequence):
            return NotImplemented
        return len(other) == self._size and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:3])) + (", ..." if self._size > 3 else "")
        return f"Labels([{shown}], n={self._size})"

    def ids(self, labels: Sequence[str]) -> Int64:
        """Return the ids of many labels at once: int64 (len(labels),)."""
        if isinstance(labels, (str, bytes)):
            raise InputError(f"ids() takes a list of labels, got {labels!r}; write [{labels!r}]")
        if self._array is None:
            if not all(isinstance(label, str) for label in labels):
                raise _no_label(labels)
            ids = np.fromiter(map(self._find, labels), dtype=np.int64, count=len(labels))
        else:
            ids = self.positions(_encode_all(labels))
        unknown = np.flatnonzero(ids < 0)
        if unknown.size:
            names = ", ".join(repr(labels[row]) for row in unknown[:5].tolist())
            names += ", ..." if unknown.size > 5 else ""
            raise InputError(
                f"{unknown.size} of {len(labels)} labels are unknown: {names}; "
                "labels must match the graph's byte for byte"
            )
        return ids

    def positions(self, names: Any) -> Int64:
        """Return the id of each label of an Arrow array of bytes, int64; -1 if unknown."""
        import pyarrow.compute as pc

        matched = pc.index_in(names, value_set=self.to_arrow()).fill_null(-1)
        return np.asarray(matched.to_numpy(zero_copy_only=False), np.int64)

    def index(self, label: Any, start: int = 0, stop: int | None = None) -> int:
        """Find the id of one label by a scan (for many use `ids`); InputError if it is unknown."""
        number = self._find(label) if isinstance(label, str) else -1
        if number < 0 or number not in range(*slice(start, stop).indices(self._size)):
            raise InputError(f"unknown label {label!r}; labels must match byte for byte")
        return number

    def _find(self, label: str) -> int:
        """Return the id of a label, or -1."""
        if self._array is None:
            known = _DECIMAL.fullmatch(label) and int(label) < self._size
            return int(label) if known else -1
        import pyarrow.compute as pc

        return int(pc.index(self._array, label.encode("utf-8", "surrogateescape")).as_py())

    def to_arrow(self) -> Any:
        """Return all labels as one pyarrow ``large_binary`` array."""
        if self._array is not None:
            return self._array
        import pyarrow as pa

        numbers = pa.array(np.arange(self._size, dtype=np.int64))
        return numbers.cast(pa.large_string()).cast(pa.large_binary())

    def arrow_of(self, ids: Array) -> Any:
        """Return the labels of ids, which must be in range, as a ``large_binary`` array."""
        import pyarrow as pa

        if self._array is not None and len(ids) > _FEW_IDS:
            return self._array.take(pa.array(ids))
        if self._array is not None:
            return _some_labels(*self.text, np.asarray(ids))
        return pa.array(ids).cast(pa.large_string()).cast(pa.large_binary())

    @cached_property
    def docnos(self) -> Labels:
        """Labels in the form for TREC files; self if none changes.

        White-space bytes, NUL and ``%`` become ``%XX``. A label without white space keeps its ``%``
        unless two hexadecimal digits follow it. So most labels stay unchanged, and `decode_docno`
        always restores the label.
        """
        if self._array is None or not self.n_encoded:
            return self
        import pyarrow.compute as pc

        escaped = self._array.filter(self._to_encode)
        for byte in b"%" + _SEPARATORS:  # '%' first: later steps insert more of them
            escaped = pc.replace_substring(
                escaped, pattern=bytes([byte]), replacement=b"%%%02X" % byte
            )
        return Labels.from_arrow(pc.replace_with_mask(self._array, self._to_encode, escaped))

    @property
    def is_ascending(self) -> bool:
        """True if the labels are known to be in byte order."""
        return self._ascending

    @property
    def is_decimal(self) -> bool:
        """True if the label of each id is its number."""
        return self._array is None

    @property
    def text(self) -> tuple[Int64, memoryview]:
        """Bounds and bytes of all labels: label i is ``content[bounds[i]:bounds[i + 1]]``."""
        _, offsets, content = self._array.buffers()
        first = self._array.offset
        bounds = np.frombuffer(offsets or bytes(8), np.int64)[first : first + self._size + 1]
        return bounds, memoryview(content or b"")

    @cached_property
    def _to_encode(self) -> Any:
        import pyarrow.compute as pc

        return pc.match_substring_regex(self._array, _NEEDS_ENCODING.decode("ascii"))

    @cached_property
    def n_encoded(self) -> int:
        """Number of labels that change when written to a TREC file."""
        if self._array is None or not self._size:
            return 0
        bounds, content = self.text
        for start in range(int(bounds[0]), int(bounds[-1]), _BYTES_CHUNK):
            some = content[start : min(start + _BYTES_CHUNK, int(bounds[-1]))].tobytes()
            if len(some.translate(None, b"%" + _SEPARATORS)) < len(some):
                return int(self._to_encode.true_count)
        return 0

    @cached_property
    def trec_order(self) -> Int32 | None:
        """Rank of each id in the byte order of docnos: int32 (n,); None if it equals the id.

        TREC tools break ties by this order.
        """
        docnos = self.docnos
        if docnos._ascending or (docnos._array is None and self._size <= 10):
            return None
        if docnos._array is None:
            numbers = np.arange(self._size, dtype=np.int64)
            widest = len(str(self._size - 1))
            digits = np.ones(self._size, dtype=np.int64)
            for power in range(1, widest):
                digits += numbers >= 10**power
            # Left-aligned to one width, equal keys differ only in trailing zeros: the shorter is
            # first.
            order = np.argsort(numbers * 10 ** (widest - digits) * (widest + 1) + digits)
        else:
            import pyarrow.compute as pc

            array = docnos._array
            if pc.all(pc.less(array[:-1], array[1:])).as_py() is not False:
                return None
            order = pc.sort_indices(array).to_numpy()
        position = np.empty(self._size, dtype=np.int32)
        position[order] = np.arange(self._size, dtype=np.int32)
        return position

    def digest(self) -> bytes:
        """Return a hash of all labels in id order; equal labels have equal digests."""
        import hashlib

        if self._array is None:
            return hashlib.blake2b(b"decimal %d" % self._size, digest_size=16).digest()
        bounds, content = self.text
        hasher = hashlib.blake2b(b"labels %d" % self._size, digest_size=16)
        hasher.update(np.diff(bounds).astype("<i8").data)
        hasher.update(content[bounds[0] : bounds[-1]])
        return hasher.digest()


def _some_labels(bounds: Int64, content: memoryview, ids: Integers) -> Any:
    """Return labels of a few ids as a ``large_binary`` array, without pyarrow's compute module."""
    import pyarrow as pa

    lengths = bounds[ids + 1] - bounds[ids]
    offsets = offsets_of(lengths)
    at = np.arange(offsets[-1]) + np.repeat(bounds[ids] - offsets[:-1], lengths)
    chosen = np.frombuffer(content, np.uint8)[at]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(chosen)]
    return pa.Array.from_buffers(pa.large_binary(), len(ids), buffers)


def _encode_all(labels: Sequence[str]) -> Any:
    """Encode labels as a ``large_binary`` array; InputError for one that is not a usable str."""
    if isinstance(labels, (str, bytes)):
        raise InputError(f"labels must be a list, one per id, not the single text {labels!r}")
    require_type("labels", labels, Iterable, "a list of texts, one per id")
    import pyarrow as pa

    if isinstance(labels, Labels):
        return labels.to_arrow()
    try:
        encoded = [label.encode("utf-8", "surrogateescape") for label in labels]
    except (AttributeError, UnicodeEncodeError):
        raise _no_label(labels) from None
    return pa.array(encoded, type=pa.large_binary())


def _no_label(labels: Sequence[object]) -> InputError:
    """Make the error for the first label that is not a usable str."""
    row, bad = next((i, x) for i, x in enumerate(labels) if not _is_encodable(x))
    return InputError(
        f"label {row} is {bad!r} ({type(bad).__name__}); a label must be a str of valid text"
    )


def _is_encodable(label: object) -> bool:
    try:
        return isinstance(label, str) and label.encode("utf-8", "surrogateescape") is not None
    except UnicodeEncodeError:
        return False


def first_repeat(array: Any) -> tuple[int, int] | None:
    """Return the first two indices of a repeated label, or None if all labels are distinct."""
    import pyarrow.compute as pc

    codes = pc.dictionary_encode(array).indices.to_numpy()
    # Codes count up at every new label, so the first that does not is the first repeat.
    repeats = np.flatnonzero(codes != np.arange(len(codes)))
    if not len(repeats):
        return None
    return int(np.flatnonzero(codes == codes[repeats[0]])[0]), int(repeats[0])


def whole_numbers(array: Any) -> Int64 | None:
    """Return labels as numbers, int64 (n,), or None if one is not a whole number.

    Numbers with leading zeros are not whole numbers here. ``array`` is a ``large_binary`` array.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not len(array) or not all(_WHOLE.fullmatch(array[at].as_py()) for at in (0, len(array) - 1)):
        return None
    if not pc.all(pc.match_substring_regex(array, _WHOLE_TEXT)).as_py():
        return None
    numbers = array.cast(pa.large_string()).cast(pa.int64())
    return np.asarray(numbers.to_numpy(zero_copy_only=False), np.int64)


def order_labels(array: Any) -> tuple[Labels, Int32 | None]:
    """Put distinct labels in the order of ids: whole numbers by value, others by bytes.

    ``array`` has the labels in byte order. Returns the labels and the id of each item of the array,
    int32 (n,); None instead of ids if the order stays.
    """
    numbers = whole_numbers(array)
    if numbers is None or bool((numbers[1:] > numbers[:-1]).all()):
        return Labels.from_arrow(array, ascending=True), None
    order = np.argsort(numbers)
    ids = np.empty(len(order), np.int32)
    ids[order] = np.arange(len(order), dtype=np.int32)
    return Labels.from_arrow(array.take(order)), ids


MAX_ID = (1 << 31) - 1  # ids per triple or candidate are int32


def _in_id_order(name: str, labels: Sequence[str] | Mapping[str, int]) -> Sequence[str]:
    """Return labels as a sequence in id order; UsageError if they have no order."""
    hint = "give labels in id order, or a mapping of each label to its id"
    ids = labels.values() if isinstance(labels, Mapping) else ()
    refuse_if(
        (
            isinstance(labels, Set),  # also keys of a mapping, whose order may differ from ids
            f"{argument(name)} is a {type(labels).__name__}, which has no order; {hint}",
        ),
        (
            any(isinstance(i, (bool, np.bool_)) for i in ids),
            f"{argument(name)} maps labels to True or False, which are not ids; {hint}",
        ),
    )
    if not isinstance(labels, Mapping):
        return labels
    ordered: list[str | None] = [None] * len(labels)
    for label, number in labels.items():
        try:
            index = operator.index(number)
        except TypeError:
            raise UsageError(
                f"{argument(name)} maps {label!r} to {number!r}, which is not an id; {hint}"
            ) from None
        if not 0 <= index < len(ordered):
            raise UsageError(
                f"{argument(name)} maps {label!r} to {index}, but {len(ordered)} labels have the "
                "ids 0 to "
                f"{len(ordered) - 1}; {hint}"
            )
        if ordered[index] is not None:
            raise UsageError(
                f"{argument(name)} maps both {ordered[index]!r} and {label!r} to {index}; {hint}"
            )
        ordered[index] = label
    return ordered  # type: ignore[return-value]  # each index is filled once, so all are filled


def resolve_labels(
    name: str,
    size: int | None,
    labels: Sequence[str] | Mapping[str, int] | None,
    columns: Iterable[Array],
) -> Labels:
    """Return the labels of all ids: those of the user, or decimal ones.

    Decimal labels go up to `size`, or up to the largest id in `columns`.
    """
    if size is not None:
        try:
            size = operator.index(size)
        except TypeError:
            raise UsageError(
                f"{argument(f'n_{name}', size)} is not an integer; give the number of {name}"
            ) from None
    if labels is not None:
        named = Labels.from_strings(_in_id_order(name, labels))
        if size is not None and size != len(named):
            raise UsageError(
                f"{argument(f'n_{name}', size)}, but {argument(name)} has {len(named)} labels; "
                "leave "
                f"{argument(f'n_{name}')} out"
            )
        size = len(named)
    if size is None:
        size = 1 + max((int(ids.max()) for ids in columns if len(ids)), default=-1)
        if size > MAX_ID:
            raise InputError(f"the largest id of {name} is {size - 1}; ids must be below {MAX_ID}")
        size = max(size, 1)
    if not 1 <= size <= MAX_ID:
        raise UsageError(f"{argument(f'n_{name}', size)}; it must be between 1 and {MAX_ID}")
    return named if labels is not None else Labels.decimal(size)


def near_label(labels: Labels, name: bytes) -> str:
    """Return the first label that equals a name but for blanks, case or leading zeros; or ""."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def plain(texts: Any) -> Any:
        """Remove blanks, case and leading zeros; pyarrow's error for bytes that are not UTF-8."""
        lowered = pc.utf8_lower(pc.utf8_trim_whitespace(texts.cast(pa.large_utf8())))
        return pc.replace_substring_regex(lowered, pattern="^0+([0-9]+)$", replacement="\\1")

    try:
        key = plain(pa.array([name], pa.large_binary()))[0]
        near = pc.index(plain(labels.to_arrow()), key).as_py()
    except pa.ArrowInvalid:
        return ""
    return labels[near] if near >= 0 else ""
