"""Options: frozen dataclasses whose annotations say what a value may be; checked, loaded, dumped and compared here.

An annotation holds the type, the bounds and the choices of an option: `Annotated[int, Meta(ge=1)]`, `Share`,
`Annotated[str, OneOf(LEVELS)]`. msgspec checks values against them. It reads the standard library's dataclasses and
annotations as they are, names the place in a nested value, and is imported in 10 ms (pydantic and cattrs: 15 and more;
pydantic's errors are several lines, cattrs has no bounds).
"""

from __future__ import annotations

import inspect
import math
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, replace
from functools import cache, cached_property
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from magrounding.brief import brief
from magrounding.errors import ConfigurationError, check_choice
from magrounding.plain import plain
from magrounding.storage import parse_json

MOST = 2**31 - 1
"""The largest number of anything that is counted: it fits 32 bits."""

Count = Annotated[int, Meta(ge=1, le=MOST)]
Natural = Annotated[int, Meta(ge=0, le=MOST)]
Share = Annotated[float, Meta(ge=0, le=1)]
NonNegative = Annotated[float, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0, le=1e30)]
Sizes = Annotated[tuple[Count, ...], Meta(min_length=1)]
INFINITE = "infinite"
"""Mark beside a type that admits infinity, whatever the bounds; numbers of other options are finite."""

_PLACE = re.compile(r" - at `\$(.*)`$")
_NOUNS = {
    "int": "an integer",
    "float": "a number",
    "bool": "True or False",
    "str": "a string",
    "array": "a list",
    "object": "a dict",
    "null": "None",
}
"""Names of msgspec's types in errors."""
_EVERY = "*"
_MOST_SHOWN = 120
"""Characters of a value that an error shows."""


@dataclass(frozen=True, eq=False)  # names may be a dict, which has no hash
class OneOf:
    """Mark beside `str` of the names that an option takes.

    Attributes:
        names: in the order of errors and forms.
        kind: the noun of errors; by default the option's name.
    """

    names: Collection[str]
    kind: str = ""


def dump(value: Any, *, changed: bool = False) -> Any:
    """JSON data of options, and of anything that holds some; `changed`: of options that differ from their defaults."""
    if isinstance(value, Options):
        tag = {value.tag: getattr(value, value.tag)} if value.tag else {}
        shown = [each for each in fields(value) if each.init]
        if changed:
            shown = [each for each in shown if getattr(value, each.name) != _default_of(each)]
        return tag | {each.name: dump(getattr(value, each.name), changed=changed) for each in shown}
    if isinstance(value, Mapping):
        return {name: dump(each, changed=changed) for name, each in value.items()}
    return [dump(each, changed=changed) for each in value] if isinstance(value, tuple | list) else value


def _default_of(field: Field[Any]) -> Any:
    """The default of a field, MISSING where there is none."""
    return field.default if field.default_factory is MISSING else field.default_factory()


@dataclass(frozen=True)
class Options:
    """Base of frozen dataclasses of options. Values are checked and converted as soon as an object is made.

    Attributes:
        renamed: old name of an option → its name now; files and commands may still have the old one.
        tag: where subclasses stand for the base: the name of the class variable by which a file names one of them.
    """

    renamed: ClassVar[Mapping[str, str]] = {}
    tag: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__repr__ = brief  # or each dataclass would make one of its own

    def __post_init__(self) -> None:
        for name, option in options_of(type(self)).items():
            object.__setattr__(self, name, option.check(getattr(self, name)))

    @classmethod
    def owner(cls) -> str:
        """The owner of the options, for errors."""
        return cls.__name__

    @classmethod
    def variant(cls, name: Any) -> type[Self]:
        """The subclass that a file calls by this name, of classes with a `tag`."""
        raise NotImplementedError

    as_dict = dump


@dataclass(frozen=True)
class Option:
    """One option: a field of a dataclass of `Options`, or a keyword argument of a function.

    Attributes:
        name: what files and commands call it.
        type: its annotation.
        default: `inspect.Parameter.empty` where there is none.
        owner: title of what has it, for errors.
    """

    name: str
    type: Any
    default: Any
    owner: str

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty

    @cached_property
    def choices(self) -> OneOf | None:
        """The names that it takes; None of what is no name."""
        return next((mark for mark in parts_of(self.type) if isinstance(mark, OneOf)), None)

    @cached_property
    def nested(self) -> bool:
        """Holding other `Options`."""
        return any(isinstance(part, type) and issubclass(part, Options) for part in parts_of(self.type))

    def check(self, value: Any) -> Any:
        """The value as the annotation has it, NumPy's numbers as Python's, lists as tuples; or ConfigurationError."""
        value = plain(value)
        if self.choices is not None and not (value is None and type(None) in parts_of(self.type)):
            for name in value if isinstance(value, tuple | list) else (value,):
                check_choice(self.choices.kind or self.name, name, self.choices.names)
        if self.nested:
            return _nested(self.type, value)
        if INFINITE in parts_of(self.type) and value == math.inf:
            return value
        try:
            found = msgspec.convert(value, self.type)
            if isinstance(found, float) and type(value) is int:
                return value  # a whole number stays one: keys of documents are made of options
            return _settled(found)
        except UnicodeEncodeError:  # half of a pair of surrogates, which JSON can say and no file can hold
            reason = "characters that can be written"
        except (msgspec.ValidationError, ValueError) as error:
            reason = str(error)
        except TypeError:  # an annotation of somebody else's that is no data
            return value
        raise self._refused(value, reason)

    def parse(self, text: str) -> Any:
        """The value in a word of a command line: JSON, or else a string; checked."""
        value = parsed(text)
        try:
            return self.check(value)
        except ConfigurationError:
            if str not in parts_of(self.type) or isinstance(value, str):
                raise
            return self.check(text)  # a name made of digits

    def _refused(self, value: Any, reason: str) -> ConfigurationError:
        place = _PLACE.search(reason)
        where = "" if not place else " for each name" if "..." in place[1] else f" at {place[1]}"
        required = _PLACE.sub("", reason).removeprefix("Expected ").split(", got ")[0]
        required = required.replace("Number out of range", "a finite number")
        if literals := [name for part in parts_of(self.type) if get_origin(part) is Literal for name in get_args(part)]:
            required = f"one of {', '.join(map(str, literals))}"
        required = re.sub(
            r"`([^`]*)`", lambda found: " or ".join(_NOUNS.get(name, name) for name in found[1].split(" | ")), required
        )
        shown = repr(value)
        shown = shown if len(shown) <= _MOST_SHOWN else shown[:_MOST_SHOWN] + "…"
        return ConfigurationError(f"{self.name} of {self.owner} takes {required}{where}, got {shown}")


@cache
def options_of(factory: Callable[..., Any]) -> Mapping[str, Option]:
    """Name → option of a class of `Options`, or of a function that makes something of keyword arguments, in order.

    A function's argument without an annotation takes the type of its default. `render_mode`, which PettingZoo envs
    take, is no option: `make` and `make_env` have it.
    """
    owner = _owner(factory)
    try:
        hints = get_type_hints(factory, include_extras=True)
    except (NameError, TypeError, AttributeError):  # somebody else's function, annotated for type checkers only
        hints = {}
    found = {}
    for name, each in inspect.signature(factory).parameters.items():
        usual = Any if each.default in (None, each.empty) else type(each.default)
        if name != "render_mode":
            found[name] = Option(name, hints.get(name, usual), each.default, owner)
    return found


Loaded = TypeVar("Loaded", bound=Options)


def load(cls: type[Loaded], content: Any) -> Loaded:
    """The options that a JSON file holds, or ConfigurationError; old names are understood, with a FutureWarning."""
    if not isinstance(content, Mapping):  # a class with a tag is the base of those that have an owner's name
        raise ConfigurationError(f"{cls.tag or cls.owner()} is a dict of options, got {content!r}")
    values = dict(content)
    if cls.tag:
        cls = cls.variant(values.pop(cls.tag, None))
    known, chosen = options_of(cls), {}
    for name, value in values.items():
        chosen[known_name(cls, name)] = value
    if missing := [name for name, option in known.items() if option.required and name not in chosen]:
        raise ConfigurationError(f"{cls.owner()} lacks {', '.join(missing)}")
    return cls(**chosen)


def diff(one: Any, other: Any) -> dict[str, tuple[Any, Any]]:
    """Path → value in one and in the other, of all in which two options differ; None where one has none.

    An empty dict is nothing: what the other has in it is what differs.
    """
    first, second = dict(flat(dump(one))), dict(flat(dump(other)))
    paths = dict.fromkeys((*first, *second))
    return {path: (first.get(path), second.get(path)) for path in paths if first.get(path) != second.get(path)}


def assign(value: Any, path: str, text: str, option: Option | None = None) -> Any:
    """A copy of options in which one is what a word of a command line says.

    Args:
        value: the options, or what they hold.
        path: names and numbers, "phases.s1.0.learner.entropy"; "*" stands for all entries that have what follows.
        text: see `Option.parse`.
        option: that holds the value.

    Raises:
        ConfigurationError: a path that leads nowhere, or a value that cannot be.
    """
    if not path:
        assert option is not None
        return option.parse(text)
    name, _, rest = path.partition(".")
    if isinstance(value, Options):
        own = known_name(type(value), name)
        option = options_of(type(value))[own]
        return replace(value, **{own: assign(getattr(value, own), rest, text, option)})  # type: ignore[type-var]
    if not isinstance(value, Mapping | tuple):
        check_choice(f"part of {path}", name, ())
    entries = _entries(value)
    if name == _EVERY:
        chosen = [key for key, each in entries.items() if has(each, rest)] or list(entries)[:1]
    else:
        chosen = [name if isinstance(value, Mapping) and not rest else check_choice("part of " + path, name, entries)]
    for key in chosen:
        entries[key] = assign(entries[key], rest, text, option) if rest else parsed(text)
    return entries if isinstance(value, Mapping) else tuple(entries.values())


def has(value: Any, path: str) -> bool:
    """Return whether a path of `assign` leads somewhere."""
    name, _, rest = path.partition(".")
    if isinstance(value, Options):
        name = value.renamed.get(name, name)
        return name in options_of(type(value)) and (not rest or has(getattr(value, name), rest))
    if not isinstance(value, Mapping | tuple):
        return False
    entries = _entries(value)
    if not rest:
        return isinstance(value, Mapping) or name in entries
    return any(has(each, rest) for key, each in entries.items() if name in (key, _EVERY))


def known_name(factory: Callable[..., Any], name: str, owner: str = "") -> str:
    """The name of an option of a class or function, for its own or its old one; `owner` as errors have it.

    An old name gives a FutureWarning with the new one, an unknown one a ConfigurationError.
    """
    owner = owner or _owner(factory)
    if name in (old := getattr(factory, "renamed", {})):
        warnings.warn(f"option {name} of {owner} is called {old[name]} now", FutureWarning, stacklevel=3)
        return old[name]
    return check_choice(f"option of {owner}", name, options_of(factory))


def _owner(factory: Callable[..., Any]) -> str:
    return factory.owner() if isinstance(factory, type) and issubclass(factory, Options) else factory.__name__


def _nested(hint: Any, value: Any) -> Any:
    """Convert a value as an annotation that holds `Options` has it: these themselves, or JSON data of them."""
    origin, parts = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and issubclass(hint, Options):
        return value if isinstance(value, hint) else load(hint, value)
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(_nested(parts[0], each) for each in value)
    if origin is not None and issubclass(origin, Mapping) and isinstance(value, Mapping):
        return {name: _nested(parts[1], each) for name, each in value.items()}
    raise ConfigurationError(f"options are dicts, lists of them, or dicts of both, got {value!r}")


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(Path, value) of all that JSON data holds; lists of plain values are values."""
    if isinstance(value, list) and value and isinstance(value[0], dict | list):
        value = dict(enumerate(value))
    if not isinstance(value, dict):
        yield path, value
        return
    for name, each in value.items():
        yield from flat(each, f"{path}.{name}" if path else str(name))


@cache
def parts_of(hint: Any) -> tuple[Any, ...]:
    """Every type within an annotation, and the marks that stand beside types."""
    inside: tuple[Any, ...] = () if get_origin(hint) is Literal else get_args(hint)
    marks = inside[1:] if get_origin(hint) is Annotated else ()
    types = inside[:1] if marks else inside
    return (hint, *marks, *(part for each in types for part in parts_of(each)))


def _settled(value: Any) -> Any:
    """The same with tuples for lists, which JSON has only: options are compared. ValueError for infinity and NaN."""
    if isinstance(value, Mapping):
        return {name: _settled(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return tuple(map(_settled, value))
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a finite number")
    return value


def _entries(value: Mapping[str, Any] | tuple[Any, ...]) -> dict[str, Any]:
    """Name → entry, or number as a string → entry; a new dict."""
    return dict(value) if isinstance(value, Mapping) else {str(i): each for i, each in enumerate(value)}


def parsed(text: str) -> Any:
    """JSON, or else a string; what it is put into checks it."""
    try:
        return parse_json(text)
    except ValueError:
        return text
