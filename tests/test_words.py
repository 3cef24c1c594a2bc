"""The package speaks the field's words: the dialect that it has left behind does not come back."""

import ast
import re
import tokenize
from collections import defaultdict
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "magrounding"


class Word(NamedTuple):
    """A word of the dialect.

    Attributes:
        pattern: regular expression of it, in lower case; `_` separates the words of a name.
        instead: the field's word.
        prose: it may not stand in comments, docstrings and other strings either; else in names only, as there it is a
            word of English.
        only: folders and files of the package where it is dialect; everywhere without any.
        but: those where it means something else.
    """

    pattern: str
    instead: str
    prose: bool = True
    only: tuple[str, ...] = ()
    but: tuple[str, ...] = ()


# Files of weights name the modules `heed`, `wanted` and `said` of choiceread, `gaits` of relread, `foresight` of EnDi
# on EMMA, `told` of panoread and `merge_told` of SIR: they stay.
WORDS = (
    Word("heed(s|ed|ing)?", "depends_on", but=("agents/choiceread.py",)),
    Word("misled|mislead(s|ing)?", "shuffled-manual control"),
    Word("columns?", "trajectory", prose=False, only=("training/",)),
    Word("cut", "truncation, truncated", prose=False, only=("training/",)),
    Word("continues", "nonterminal", prose=False, only=("training/",)),
    Word(
        "recall(s|ed|ing)?", "re-evaluate", prose=False, only=("agents/", "endi/", "training/"), but=("agents/guide/",)
    ),
    Word("descend(s|ed|ing)?", "minibatch update", prose=False, but=("single/nethack/",)),
    Word("bonus", "entropy coefficient", prose=False, only=("training/",)),
    Word("teacher_share", "beta (DAgger's β)"),
    Word("regrets?", "cost-to-go"),
    Word("kinships?", "similarity"),
    Word("gaits?", "motion class", but=("agents/relread/motion.py",)),
    Word("surprises?|surprised|surprising", "negative log-likelihood", prose=False),
    Word("foresee(s|n|ing)?|foresaw|foresight", "predict, prediction", but=("endi/on_emma.py",)),
    Word("wordings?", "tokenizer"),
    Word("respell(s|ed|er|ing)?", "remap embeddings"),
    Word("crews?", "worker pool"),
    Word("talks?", "batched RPC, connection", prose=False),
    Word("epitaphs?", "exit reason"),
    Word("breaths?", "keep-alive", prose=False),
    Word("faces", "adapters", prose=False, but=("single/",)),
    Word("seat(s|ed|ing)?", "player"),
    Word("sits?", "build_actor", prose=False),
    Word("tapes?", "recorder"),
    Word("contenders?", "evaluated run"),
    # Others' own `tell`: a file's, and that of Optuna's study.
    Word("tells?", "progress callback", prose=False, but=("play/archive.py", "experiment/sweep/search.py")),
    Word("reliances?", "attention"),
    Word("told", "resolved", prose=False, but=("agents/panoread.py", "agents/sir/reader.py")),
    Word("wanted", "requested, required", prose=False, but=("agents/choiceread.py",)),
    Word("said", "the quantity's own name", prose=False, but=("agents/choiceread.py",)),
    Word("put_aside", "drop_mode"),
    Word("whoever", "the caller, the player: who it is"),
    Word("nobody", "no player, no caller: who it is not"),
)

OLD_NAMES = re.compile(r"_?(OLD|FORMER|RENAMED)(_[A-Z_]+)?")
"""Constants that say by what names older runs and commands call an option may hold those names."""

NO_BEGINNING = re.compile(
    r"(What|Who|Whose|Whom|Which|Of|See|Where|When|Whether|How|Why|If|While|So|Without"
    r"|\w+Error|MissingExtra|Refusal|Broken) "
)
"""Beginning of a docstring that is no imperative and no noun phrase."""

PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


class Spoken(NamedTuple):
    """A name, or a line of a string or comment."""

    file: str
    line: int
    is_name: bool
    text: str


def files():
    return sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)


def words_of(text):
    """The words of a text or of names in it, in lower case, joined by `_`."""
    return "_".join(part.lower() for part in PARTS.findall(text))


def lines_of_old_names(tree):
    """Lines of the assignments to `OLD_NAMES`."""
    found = set()
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, ast.Assign | ast.AnnAssign) and any(
            isinstance(target, ast.Name) and OLD_NAMES.fullmatch(target.id) for target in targets
        ):
            found |= set(range(node.lineno, node.end_lineno + 1))
    return found


@cache
def spoken():
    """Everything that is spoken in the package's files, by its words."""
    found = defaultdict(list)
    for path in files():
        name = path.relative_to(PACKAGE).as_posix()
        found[words_of(path.stem)].append(Spoken(name, 1, True, f"the file {path.name}"))
        old = lines_of_old_names(ast.parse(path.read_text(encoding="utf-8")))
        with tokenize.open(path) as file:
            for token in tokenize.generate_tokens(file.readline):
                kind = tokenize.tok_name[token.type]
                if kind not in ("NAME", "STRING", "COMMENT", "FSTRING_MIDDLE"):
                    continue
                for number, line in enumerate(token.string.splitlines(), token.start[0]):
                    if number not in old:
                        found[words_of(line)].append(Spoken(name, number, kind == "NAME", line.strip()))
    return found


def places(word):
    """The places where a word of the dialect stands, by file."""
    pattern = re.compile(rf"(?<![a-z])(?:{word.pattern})(?![a-z])")
    found = defaultdict(list)
    for words, all_of_them in spoken().items():
        for each in all_of_them if pattern.search(words) else ():
            here = (not word.only or each.file.startswith(word.only)) and not any(map(each.file.startswith, word.but))
            if here and (each.is_name or word.prose):
                found[each.file].append(each)
    return found


@pytest.mark.parametrize("word", WORDS, ids=lambda word: re.sub(r"\W.*", "", word.pattern))
def test_the_package_no_longer_says(word):
    found = [f"magrounding/{each.file}:{each.line}: {each.text}" for of in places(word).values() for each in of]
    assert not found, f"say {word.instead}:\n" + "\n".join(found)


def test_what_validates_a_choice_is_called_so():
    found = [
        f"magrounding/{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in files()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "magrounding.errors"
        if any(alias.name == "choose" for alias in node.names)
    ]
    assert not found, "say check_choice:\n" + "\n".join(found)


def docstrings(tree):
    """(line, docstring) of a module, its classes and functions, and of fields and constants."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for before, statement in pairwise([None, *node.body]):
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    if before is None or isinstance(before, ast.Assign | ast.AnnAssign):
                        yield statement.lineno, text


def test_first_lines_are_imperatives_or_noun_phrases():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for folder in ("magrounding", "benchmarks", "tools", "examples")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, text in docstrings(ast.parse(path.read_text(encoding="utf-8")))
        if NO_BEGINNING.match(text)
    ]
    assert not found, "name the quantity, or say what is done:\n" + "\n".join(found)
