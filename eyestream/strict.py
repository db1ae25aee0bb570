"""Strict tables: what a person wrote becomes a frozen value, and every mistake is one line with its place.

Configurations, profiles, layouts, logins and options of sources are read by this. The types of a value say what each
key may be. A key that is unknown, missing, of another type or out of range is one problem, and reading goes on.
"""

import dataclasses
import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import inspect

from eyestream.errors import OperatorError, meant
from eyestream.problems import Problems

NAME = r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z"
ONE_LINE = r"\A[^\x00-\x1f\x7f]*\Z"

_PATTERNS = {
    NAME: "1 to 64 of A-Z a-z 0-9 _ -, a letter or digit first",
    ONE_LINE: "a text without control characters",
}
_WIDEST = 60

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class TablePlace:
    """Where a table stands in a file.

    Attributes
    ----------
    path : keys that lead to it; none for the file itself.
    which : where there are several, the name of this one, or its number.
    """

    path: tuple[str, ...] = ()
    which: str = ""

    def __str__(self) -> str:
        if not self.path:
            return "the file"
        head = f"[[{self.path[0]}]]" if self.which and len(self.path) == 1 else f"[{'.'.join(self.path)}]"
        return f"{head} {self.which}".rstrip()

    def table(self, key: str) -> "TablePlace":
        """A table of this one."""
        return TablePlace((*self.path, key), self.which)

    def numbered(self, key: str, number: int, table: object) -> "TablePlace":
        """One of a list of tables, from 0, by its name where it has one."""
        named = (table.get("name", table.get("id")) if isinstance(table, dict) else None) or None
        good = isinstance(named, str) and len(named) <= _WIDEST and named.isprintable()
        return TablePlace((*self.path, key), repr(named) if good else f"(number {number + 1})")

    def key(self, key: str) -> str:
        """A key of it."""
        return f"{self} {key}" if self.path else key


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    kind: Any
    required: bool


def read(
    kind: type[Value],
    table: object,
    problems: Problems,
    place: TablePlace = TablePlace(),
    path: Callable[[str], Path] = Path,
) -> Value | None:
    """A table as one of `kind`, a struct of msgspec or a dataclass; None where it has a mistake.

    Parameters
    ----------
    problems
        Each mistake goes there.
    place
        Of the table, for messages.
    path
        Makes a path of a text, where a path is wanted.
    """
    return Reader(problems, path).table(kind, table, place)


@dataclass(frozen=True)
class Reader:
    """Reads tables of one file.

    Attributes
    ----------
    problems : each mistake goes there.
    path : makes a path of a text, where a path is wanted.
    """

    problems: Problems
    path: Callable[[str], Path] = Path

    def table(self, kind: type[Value], table: object, place: TablePlace) -> Value | None:
        """A table as one of `kind`; None where it has a mistake."""
        if not isinstance(table, dict):
            self.problems.add(f"{place}: expected a table, found {_found(table)}")
            return None
        before, values, fields = len(self.problems), dict[str, Any](), _fields(kind)
        misspelt = unknown_keys(table, fields, self.problems, place)
        for key, field in fields.items():
            if key in table:
                values[field.name] = self.value(field.kind, table[key], place, key)
            elif field.required and key not in misspelt:
                where = place.table(key) if _is_table(field.kind) else place.key(key)
                self.problems.add(f"{where}: missing; expected {expected(field.kind)}")
        if len(self.problems) > before:
            return None
        try:
            return kind(**values)
        except (ValueError, TypeError) as error:
            self.problems.add(f"{place}: {error}")
        except OperatorError as error:
            self.problems.found.append(error)
        return None

    def value(self, kind: Any, value: Any, place: TablePlace, key: str) -> Any:
        """The value of a key as one of the type `kind`; of a list of tables those without a mistake."""
        info = inspect.type_info(kind)
        members = _members(kind) if isinstance(info, inspect.UnionType) else []
        if len(members) == 1:
            return None if value is None else self.value(members[0], value, place, key)
        if isinstance(info, inspect.StructType | inspect.DataclassType):
            return self.table(info.cls, value, place.table(key))
        if isinstance(info, inspect.VarTupleType | inspect.ListType) and isinstance(value, list):
            items = self._items(kind, info, value, place, key)
            return items if isinstance(info, inspect.ListType) else tuple(items)
        return self._leaf(kind, value, place.key(key))

    def _items(
        self, kind: Any, info: inspect.VarTupleType | inspect.ListType, value: list[Any], place: TablePlace, key: str
    ) -> list[Any]:
        if len(value) < (info.min_length or 0) or (info.max_length is not None and len(value) > info.max_length):
            self.problems.add(f"{place.key(key)}: expected {expected(kind)}, found {len(value)} of them")
            return []
        item = get_args(_plain(kind))[0]
        if _is_table(item):
            made = [self.table(item, one, place.numbered(key, i, one)) for i, one in enumerate(value)]
            return [one for one in made if one is not None]
        return [self.value(item, one, place, f"{key}[{i}]") for i, one in enumerate(value)]

    def _leaf(self, kind: Any, value: Any, where: str) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            self.problems.add(f"{where}: expected a finite number, found {value}")
            return None
        try:
            return msgspec.convert(value, kind, dec_hook=self._path)
        except msgspec.ValidationError:
            info = inspect.type_info(kind)
            known = [str(one) for one in info.values] if isinstance(info, inspect.LiteralType) else []
            close = meant(value, known) if isinstance(value, str) else ""
            self.problems.add(f"{where}: expected {expected(kind)}, found {_found(value)}{close}")
            return None

    def _path(self, wanted: type, given: object) -> object:
        if wanted is Path and isinstance(given, str) and given and re.match(ONE_LINE, given):
            return self.path(given)
        raise ValueError("expected a path")


def expected(kind: Any) -> str:
    """In words, what may be a value of the type `kind`."""
    info = inspect.type_info(kind)
    match info:
        case inspect.IntType() | inspect.FloatType():
            words = _number(info)
        case inspect.StrType():
            words = _PATTERNS.get(info.pattern or "", "a text")
        case inspect.BoolType():
            words = "true or false"
        case inspect.LiteralType():
            words = " or ".join(repr(value) for value in info.values)
        case inspect.UnionType():
            words = " or ".join(expected(member) for member in _members(kind))
        case inspect.VarTupleType() | inspect.ListType():
            words = _list(info)
        case inspect.StructType() | inspect.DataclassType() | inspect.DictType():
            words = "a table"
        case inspect.CustomType(cls=cls) if cls is Path:
            words = "a path"
        case _:
            words = f"one of type {getattr(kind, '__name__', kind)}"
    return words


def _list(info: inspect.VarTupleType | inspect.ListType) -> str:
    what = "names" if isinstance(info.item_type, inspect.StrType) else "tables" if _is_table(info) else "values"
    least = f", at least {info.min_length}" if info.min_length else ""
    return f"a list of {what}{least}{'' if info.max_length is None else f', at most {info.max_length}'}"


def _number(info: inspect.IntType | inspect.FloatType) -> str:
    what = "a whole number" if isinstance(info, inspect.IntType) else "a number"
    if info.gt is not None:
        return f"{what} above {info.gt:g}"
    if info.ge is not None and info.le is not None:
        return f"{what}, {info.ge:.12g} to {info.le:.12g}"
    if info.ge is not None:
        return f"{what}, at least {info.ge:g}"
    return what if isinstance(info, inspect.IntType) else "a finite number"


def _fields(kind: Any) -> dict[str, _Field]:
    """The keys of a table that becomes one of `kind`."""
    if issubclass(kind, msgspec.Struct):
        return {f.encode_name: _Field(f.name, f.type, f.required) for f in msgspec.structs.fields(kind)}
    hints, missing = get_type_hints(kind, include_extras=True), dataclasses.MISSING
    return {
        f.name: _Field(f.name, hints[f.name], f.default is missing and f.default_factory is missing)
        for f in dataclasses.fields(kind)
    }


def unknown_keys(
    table: Mapping[str, Any],
    fields: Collection[str],
    problems: Problems,
    place: TablePlace = TablePlace(),
) -> set[str]:
    """Note the keys of a table that are none of `fields`; gives those that they were meant to be."""
    misspelt = set[str]()
    for key, value in table.items():
        if key not in fields:
            close = meant(key, [name for name in fields if name not in table])
            misspelt |= {name for name in fields if close == f"; did you mean {name}?"}
            inner = isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict))
            where = str(place.table(key)) if inner and not place.which else place.key(key)
            problems.add(f"{where}: unknown key{close}")
    return misspelt


def _is_table(kind: Any) -> bool:
    """Whether it is written as a table, or as tables."""
    info = kind if isinstance(kind, inspect.Type) else inspect.type_info(kind)
    if isinstance(info, inspect.UnionType):
        return any(_is_table(member) for member in info.types)
    if isinstance(info, inspect.VarTupleType | inspect.ListType):
        return _is_table(info.item_type)
    return isinstance(info, inspect.StructType | inspect.DataclassType)


def _members(kind: Any) -> list[Any]:
    """Members of a union that a table can hold."""
    return [member for member in get_args(_plain(kind)) if member is not type(None)]


def _plain(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _found(value: object) -> str:
    """A value of a table, as it was written; short."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str | bool | int | float):
        text = json.dumps(value)
        return text if len(text) <= _WIDEST else f"{text[:_WIDEST]}..."
    return f"a {type(value).__name__}"
