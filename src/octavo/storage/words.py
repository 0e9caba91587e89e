"""The word index: tantivy over the codes of the terms, filtered by version and scope inside the search."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, Self

from octavo.domain.filters import Filter
from octavo.domain.memory import KINDS, LAYERS
from octavo.errors import Damaged
from octavo.libraries import Array, np, tantivy
from octavo.storage.columns import damaged, must_be_file
from octavo.storage.rows import OPEN, Units
from octavo.storage.stores.disk import Disk

_HEAP_BYTES = 64_000_000
_SMALL_HEAP_BYTES = 15_000_000  # the least that tantivy takes: a pass of a few rows needs no more
_FOOTER_BYTES = 8
_ENDED = "ended"
_FACETS = ("scope", "kind", "layer", "session", "speaker", "category")
_TOLD = ("at", "terms", "length", "scope", "kind", "layer", "speaker", "name", "name_length")


class Words:
    """A searcher over one published state of the word index."""

    def __init__(self, folder: Path, units: Units, checked: set[str] | None = None) -> None:
        """Open the index after a look at every file that is not among the `checked` ones yet."""
        self._units = units
        self._of_kinds: dict[tuple[str, ...], Array] = {}
        self._exact = True
        self._is_empty = units.manifest.rows == 0
        if self._is_empty:
            return
        stamp = stamp_of(folder)
        if stamp < units.manifest.words:
            raise damaged(folder, "it is older than what was published")
        check_segments(folder, set() if checked is None else checked)
        try:  # one that is not there is none, not a new one
            self._index = tantivy.Index.open(str(folder))
        except (ValueError, OSError) as error:
            raise damaged(folder, str(error)) from error
        self._searcher = self._index.searcher()
        # A commit that is not published yet shows documents from behind the watermark; ranges hide them.
        self._exact = stamp == stamp_of(folder) == units.manifest.words

    def search(
        self, codes: Sequence[int], filter_: Filter, version: int, *, limit: int, speaker: str | None = None
    ) -> list[int]:
        """The rows that match best by BM25."""
        if not codes or self._is_empty:
            return []
        should = tantivy.Occur.Should
        clauses = [(should, self._term("terms", f"{code:08x}", "freq")) for code in codes]
        filters = self._clauses(filter_, version)
        if speaker is not None:
            filters.append((tantivy.Occur.Must, self._any("speaker", [speaker])))
        query = tantivy.Query.boolean_query(clauses)
        if filters:  # without any, tantivy leaves out whole blocks of rows that cannot be among the best
            query = tantivy.Query.boolean_query([(tantivy.Occur.Must, query), *filters])
        return self._rows(query, limit)

    def between(self, first: int, last: int, filter_: Filter, version: int, *, limit: int) -> list[int]:
        """Rows whose time lies in a closed interval of seconds."""
        if self._is_empty:
            return []
        interval = self._range("at", first, last, tantivy.FieldType.Integer)
        query = [(tantivy.Occur.Must, tantivy.Query.const_score_query(interval, 1.0))]
        return self._rows(tantivy.Query.boolean_query([*query, *self._clauses(filter_, version)]), limit)

    def all(self, filter_: Filter, version: int) -> list[int]:
        """Every row that the filters let through."""
        if self._is_empty:
            return []
        everything = [(tantivy.Occur.Must, tantivy.Query.all_query())]
        query = tantivy.Query.boolean_query([*everything, *self._clauses(filter_, version)])
        return self._rows(query, max(1, self._searcher.num_docs))

    def of_kinds(self, kinds: tuple[str, ...], version: int) -> Array:
        """Every row of some kinds, in order; those of the newest version are looked up once."""
        is_newest = version >= self._units.manifest.watermark.version
        if is_newest and kinds in self._of_kinds:
            return self._of_kinds[kinds]
        found = np.sort(np.array(self.all(Filter(kinds=kinds), version), dtype=np.int64))
        if is_newest:
            self._of_kinds[kinds] = found
        return found

    def _rows(self, query: tantivy.Query, limit: int) -> list[int]:
        try:
            hits = self._searcher.search(query, limit, count=False).hits
            rows = self._searcher.fast_field_values("row", [address for _, address in hits])
        except (ValueError, OSError) as error:
            raise Damaged("the word index cannot be searched", hint="`octavo reindex` rebuilds it") from error
        return [int(row) for row in rows if row is not None]

    def _clauses(self, filter_: Filter, version: int) -> list[tuple[tantivy.Occur, tantivy.Query]]:
        must, never = tantivy.Occur.Must, tantivy.Occur.MustNot
        clauses: list[tuple[tantivy.Occur, tantivy.Query]] = []
        if self._exact and version >= self._units.manifest.watermark.version:
            if self._units.manifest.counts["ends"]:
                clauses.append((never, self._term("facets", _ENDED)))
        else:
            version = min(version, self._units.manifest.watermark.version)
            until = self._units.rows_until(version)  # rows are in the order of their versions
            clauses.append((must, self._range("row", 0, until - 1) if until else tantivy.Query.empty_query()))
            clauses.append((never, self._range("valid_to", 0, version)))
        if filter_.scopes is not None and set(self._units.manifest.scopes) - set(filter_.scopes):
            clauses.append((must, self._any("scope", filter_.scopes)))
        for field, values in (("kind", filter_.kinds), ("layer", filter_.layers)):
            if values is not None:
                clauses.append((must, self._any(field, values)))
        clauses.extend((must, self._any("tag", [tag])) for tag in filter_.tags or ())
        for field, value in (("category", filter_.category), ("session", filter_.sandbox)):
            if value is not None:
                clauses.append((must, self._any(field, [value])))
        if filter_.since is not None or filter_.until is not None:
            since = -(2**62) if filter_.since is None else int(filter_.since.timestamp())
            until = 2**62 if filter_.until is None else int(filter_.until.timestamp())
            clauses.append((must, self._range("at", since, until, tantivy.FieldType.Integer)))
        return clauses

    def _term(self, field: str, value: str, option: str = "basic") -> tantivy.Query:
        return tantivy.Query.term_query(self._index.schema, field, value, option)

    def _any(self, name: str, values: Iterable[str]) -> tantivy.Query:
        facets = [_facet(name, value) for value in values]
        return tantivy.Query.const_score_query(
            tantivy.Query.term_set_query(self._index.schema, "facets", facets), 0.0
        )

    def _range(self, field: str, low: int, high: int, kind: Any = None) -> tantivy.Query:
        typed = kind or tantivy.FieldType.Unsigned
        query = tantivy.Query.range_query(self._index.schema, field, typed, low, high)
        return tantivy.Query.const_score_query(query, 0.0)


class Adding:
    """One pass into the word index: rows come, some end, and one commit has it all."""

    def __init__(self, folder: Path, units: Units, *, is_small: bool = False) -> None:
        """Begin behind what is published; what an unpublished earlier pass left there goes."""
        stamp = stamp_of(folder)
        if units.manifest.rows and stamp < units.manifest.words:
            raise damaged(folder, "it is older than what was published")
        self._folder, index = folder, _open(folder)
        with self._saying():
            self._writer = index.writer(_SMALL_HEAP_BYTES if is_small else _HEAP_BYTES, 1)
        if stamp != units.manifest.words:
            unsigned = tantivy.FieldType.Unsigned
            rest = tantivy.Query.range_query(index.schema, "row", unsigned, units.manifest.rows, OPEN)
            with self._saying():
                self._writer.delete_documents_by_query(rest)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Let go of tantivy's lock, also when an error keeps this object alive."""
        del self._writer

    def add(self, units: Units, rows: Sequence[int]) -> None:
        """Add rows that are in the columns already."""
        with self._saying():
            for document in _documents(units, rows):
                self._writer.add_document(document)

    def commit(self, units: Units, ends: Sequence[tuple[int, int]]) -> int:
        """Mark the rows that ended, commit and return the commit's stamp; `units` holds all rows added."""
        ended = [row for row, _ in ends]
        with self._saying():
            for row in ended:
                self._writer.delete_documents_by_term("row", row)
            for document, (_, valid_to) in zip(_documents(units, ended, _ENDED), ends, strict=True):
                document.add_unsigned("valid_to", valid_to)
                self._writer.add_document(document)
            stamp = int(self._writer.commit())
            self._writer.wait_merging_threads()
        return stamp

    @contextmanager
    def _saying(self) -> Iterator[None]:
        try:
            yield
        except (ValueError, OSError) as error:
            raise damaged(self._folder, str(error)) from error


def check_segments(folder: Path, checked: set[str]) -> None:
    """Raise `Damaged` if a file's checksum is wrong; tantivy would panic over it, or answer wrongly."""
    try:
        _must_be_files(folder)
        meta = json.loads(Disk().read(folder / "meta.json"))
        segments = [segment["segment_id"].replace("-", "") for segment in meta["segments"]]
    except FileNotFoundError:
        return
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(folder / "meta.json", "it is not tantivy's") from error
    for segment in segments:
        for path in sorted(folder.glob(f"{segment}.*")):
            if path.name not in checked:
                _check_file(path)
                checked.add(path.name)


def _check_file(path: Path) -> None:
    """Compare a file with the checksum in the footer that tantivy writes behind its bytes."""
    try:
        data = Disk().read(path)
    except FileNotFoundError:
        return  # merged away by a writer meanwhile
    try:
        length, _ = struct.unpack("<II", data[-_FOOTER_BYTES:])
        end = len(data) - _FOOTER_BYTES - length
        written = json.loads(data[end:-_FOOTER_BYTES])["crc"]
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise damaged(path, "it has no footer") from error
    if zlib.crc32(memoryview(data)[: max(end, 0)]) != written:
        raise damaged(path, "its checksum is wrong")


def stamp_of(folder: Path) -> int:
    """The stamp of the last commit that the word index holds."""
    try:
        return int(json.loads(Disk().read(folder / "meta.json"))["opstamp"])
    except (OSError, ValueError, KeyError, TypeError):
        return -1


def _documents(units: Units, rows: Sequence[int], *more: str) -> Iterator[tantivy.Document]:
    """What the word index holds of some rows: time, terms, and facets, some more of them if told."""
    records, manifest = units.take(np.array(rows, dtype=np.int64)), units.manifest
    terms = units.column("terms")
    speakers = (None, *manifest.speakers)
    columns = (records[name].tolist() for name in _TOLD)
    for row, at, first, length, scope, kind, layer, speaker, name, size in zip(rows, *columns, strict=True):
        _, session, category, *tags = units.words_at(name, size)
        facets = _facets(
            manifest.scopes[scope], KINDS[kind], LAYERS[layer], session, speakers[speaker], category, *tags
        )
        document = tantivy.Document()
        document.add_unsigned("row", row)
        document.add_integer("at", at)
        # The codes as words for tantivy: eight digits each, and a space between them.
        document.add_text("terms", terms[first : first + length].astype(">u4").tobytes().hex(" ", 4))
        document.add_text("facets", " ".join((facets, *more)))
        yield document


@lru_cache(maxsize=4096)
def _facets(*values: str | None) -> str:
    """Everything a search can be narrowed to, each as one word: the values of `_FACETS`, then all tags."""
    named = zip_longest(_FACETS, values, fillvalue="tag")
    return " ".join(_facet(name or "", value) for name, value in named if value is not None)


def _facet(name: str, value: str) -> str:
    """A value as a word without spaces, told apart from the same value of another name."""
    return f"{name}:{value.encode().hex()}"


def _open(folder: Path) -> tantivy.Index:
    folder.mkdir(parents=True, exist_ok=True)
    schema = tantivy.SchemaBuilder()
    schema.add_text_field("terms", tokenizer_name="whitespace", index_option="freq")
    schema.add_text_field("facets", tokenizer_name="whitespace", index_option="basic")
    schema.add_unsigned_field("row", fast=True, indexed=True)
    schema.add_unsigned_field("valid_to", fast=True)
    schema.add_integer_field("at", fast=True)
    try:
        _must_be_files(folder)
        return tantivy.Index(schema.build(), path=str(folder))
    except (ValueError, OSError) as error:
        raise damaged(folder, str(error)) from error


def _must_be_files(folder: Path) -> None:
    for path in folder.iterdir():
        must_be_file(path)
