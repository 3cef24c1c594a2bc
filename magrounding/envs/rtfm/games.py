"""Rtfm, MaRtfm and RockPaperScissors: worlds with all options chosen and checked, not yet started."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from magrounding import spec
from magrounding.envs.rtfm.arrays import ACTION_NAMES, AGENT_WIDTH, HEARD, READINGS, TEAMMATE_WIDTH
from magrounding.envs.rtfm.constructions import GOAL, KINDS, MODIFIER, PLAIN, TEAM, parse_constructions, words_of
from magrounding.envs.rtfm.ontology import (
    ALLY_ID,
    BEATS,
    DRAGON,
    DRAGON_GOAL,
    ELEMENTS,
    EMPTY_ID,
    FOG_ID,
    GRID_WORDS,
    LETTER_SPLITS,
    LETTERS,
    ME_ID,
    NAMES,
    PROSE_SPLITS,
    ROCK_PAPER_SCISSORS,
    SPLITS,
    STAGES,
    STOP,
    TASKS,
    TEAMS,
    WALL_ID,
    Task,
    num_statements,
    statement_of_letters,
)
from magrounding.envs.rtfm.sentences import Sentences, find_sentences, longest, our_sentences, prose_shape
from magrounding.envs.rtfm.text import COMMA, LAYOUTS, layout_shape
from magrounding.errors import ConfigurationError, DataNotFound, check_choice
from magrounding.options import WorldOptions
from magrounding.schema import INFINITE, MOST, Count, NonNegative, OneOf, Share
from magrounding.vocabulary import PAD, Vocabulary

MAX_CYCLES = 80
_MOST_AGENTS_OF_MINIMAL = 3
"""Most agents with split "eval_minimal": with more, targets share an element, and some games could not be won."""
MapSize = Annotated[int, Meta(ge=4, le=1000)]
"""Side of a map in cells; each agent observes all of them in every step."""
Distance = Annotated[float, Meta(ge=0, le=MOST), INFINITE]


OLD_NAMES = {"put_aside": "drop_mode"}


@dataclass(frozen=True, kw_only=True)
class RtfmGame(WorldOptions):
    """Options that all worlds of RTFM have.

    Attributes:
        agents: number of agents, n.
        size: of the map, its ring of walls included.
        split: "train", "eval", "eval_new" (unseen words) or "eval_paraphrase" (held-out templates); with constructions
            also "eval_construction" (held-out ones) and "eval_minimal": games 2k and 2k + 1 are of the same map and the
            same words, and of opposite meaning.
        max_cycles: steps after which a game is lost by time-out; the papers have 1,000.
        sight: how far agents see (Euclidean); None for the whole map.
        occupants: how many occupants a cell shows, 1 or 2.
        death: "team" ends the game with the first death, "individual" lets the others play on.
        drop_mode: "destroyed" or "left": what becomes of the item held when another is taken.
        chase_range: how far monsters sense agents (Euclidean); None for any distance.
        resample_text: draw new templates every step, as the released program does in training.
        shuffle_manual: put the statements in a random order each episode.
        manual: "true", or "reassigned" for a document that is false from end to end: the same words, sentences and
            order, but each team has the monsters of another, each element the modifiers of another, and each letter is
            beaten by the one it beats. The game and the goal stay as they were: for tests of reading.
        layout: how the manual's statements lie in rows. "statements": each has a row of its own; "merged": two or three
            share one; "paragraph": all stand in one row, as running text; "stream": the same without punctuation. None
            is the default of the stage: "paragraph" in s6, "statements" in all others.
        constructions: what manuals may be written with beside plain statements (see `constructions`): "none", "all", or
            names joined by +. Some are held out of all splits but "eval_construction". None is the default of the
            stage: "all" in s6, "none" in all others.
        templates: file of sentences to write manuals and goals with (see `sentences.find_sentences`), relative to the
            current folder; None for our own.
        omission: probability of each statement that a game does not need to be left out of its manual. Needed are the
            statements about the elements of its monsters and, where a distractor is among them, about the target team;
            of letters, the one about what beats the dragon's. 0: whole manuals. A curriculum over it (from 1 to 0) is
            what networks need that have to learn which statement to attend to.
        distraction: probability of a game to have its distractor monster, where the task has one.
        decoys: probability of the statement about the distractor's element to stand in the manual, where no target has
            that element.

    Raises:
        ConfigurationError: an option out of its range, or a map too small for its entities.
    """

    renamed: ClassVar[Mapping[str, str]] = OLD_NAMES
    implementation: ClassVar[str] = "magrounding.envs.rtfm.world:RTFMWorld"
    adjustable: ClassVar[tuple[str, ...]] = ("omission", "distraction", "decoys")

    reading, tell, tells, talk, heard, distinct_names = "all", True, None, 0.0, "own", False  # options of `MaRtfm`

    agents: Count = 1
    size: MapSize = 6
    split: str = "train"
    max_cycles: Count = MAX_CYCLES
    sight: Distance | None = None
    occupants: Literal[1, 2] = 2
    death: Annotated[str, OneOf(("team", "individual"))] = "team"
    drop_mode: Annotated[str, OneOf(("destroyed", "left"))] = "destroyed"
    chase_range: Distance | None = 5
    resample_text: bool = False
    shuffle_manual: bool = True
    manual: Annotated[str, OneOf(("true", "reassigned"))] = "true"
    layout: Annotated[str, OneOf(LAYOUTS)] | None = None
    constructions: str | None = None
    templates: str | None = None
    omission: Share = 0.0
    distraction: Share = 1.0
    decoys: Share = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("split", self.split, LETTER_SPLITS if self.kind.letters else tuple(SPLITS))
        if self.templates is None and (self.resolved_constructions or self.split in PROSE_SPLITS):
            _check_constructions(self, our_sentences(self.kind.language))
        n, kind = self.bodies, self.kind
        entities, interior = self.agents + kind.monsters(n) + kind.items(n), (self.size - 2) ** 2
        if entities > interior:
            raise ConfigurationError(
                f"a {self.size}×{self.size} map has room for {interior} entities, this game has {entities}; "
                "take a larger size or fewer agents"
            )
        if (self.omission or self.decoys < 1) and (self.resolved_layout != "statements" or self.resolved_constructions):
            raise ConfigurationError(
                "omission and decoys leave out whole statements: they need layout='statements' and constructions='none'"
            )
        if self.distraction < 1 and self.split == "eval_minimal":
            raise ConfigurationError("split='eval_minimal' is about the distractor's team: it needs distraction=1")

    @property
    @abstractmethod
    def kind(self) -> Task:
        """The task: entities and the manual's words."""

    @property
    def resolved_layout(self) -> str:
        """The layout: that of the option, or else the default of the stage."""
        return self.kind.layout if self.layout is None else self.layout

    @property
    def resolved_constructions(self) -> tuple[str, ...]:
        """Names of the constructions that are switched on."""
        return parse_constructions(self.kind.constructions if self.constructions is None else self.constructions)

    @property
    def is_split(self) -> bool:
        """Whether each agent reads a manual of its own."""
        return self.reading != "all"

    @property
    def whole(self) -> dict[str, Any]:
        """Options of the same games where all agents on the map read all; none where they do."""
        return {"reading": "all", "agents": self.bodies} if self.is_split else {}

    @property
    def bodies(self) -> int:
        """Agents on the map."""
        return self.agents - (self.reading == "librarian")

    @property
    def sentences(self) -> Sentences:
        """The sentences that manuals and goals are written with; DataNotFound for a file that has none."""
        return find_sentences(self.templates, self.kind.language)

    def describe(self) -> spec.EnvSpec:
        """Describe the world; DataNotFound for a file of templates that is missing, damaged, or lacks a sentence."""
        return _describe(self, self.sentences)


@dataclass(frozen=True, kw_only=True)
class Rtfm(RtfmGame):
    """Single-agent RTFM (Zhong et al. 2020).

    Attributes:
        task: one of TASKS.
    """

    task: Annotated[str, OneOf(TASKS)] = "simple_stationary"
    agents: int = field(default=1, init=False)
    death: str = field(default="team", init=False)

    @property
    def kind(self) -> Task:
        return TASKS[self.task]


@dataclass(frozen=True, kw_only=True)
class MaRtfm(RtfmGame):
    """Multi-agent RTFM (Ding et al. 2023).

    Attributes:
        stage: one of STAGES.
        distinct_names: targets have different names, as long as the team has some (three); in a stage with groups.
        reading: who reads which statements of the manual. "all": everybody reads all. "kind": one agent those about
            teams, the other those about elements; more than two are two halves, and those of one half share a kind.
            "half": any, each agent as many as the others. "librarian": the last agent reads all, sees the map, has no
            body, cannot die, and gets the mean reward of the others, who read none. Who gets what is drawn in each
            game; the game, its map and its manual are those of the same seed with "all" (and an agent less for a
            librarian). Options below count where it is not "all".
        tell: there are actions to tell teammates a statement of one's own, see *Actions*.
        tells: statements that an agent may tell in a game; None for any number.
        talk: first steps of a game in which nothing moves and agents may only tell; of 2.5 a third step in every other
            game. A curriculum over it takes away what telling costs.
        heard: what teammates read of a statement that is told to them: "own", the speaker's own; "another", that of
            another game about the same element or team; "none", nothing. For tests of listening.
    """

    adjustable: ClassVar[tuple[str, ...]] = (*RtfmGame.adjustable, "talk")

    stage: Annotated[str, OneOf(STAGES)] = "s1"
    agents: Count = 2
    size: MapSize = 8
    distinct_names: bool = False
    reading: Annotated[str, OneOf(READINGS)] = "all"
    tell: bool = True
    tells: Count | None = None
    talk: NonNegative = 0.0
    heard: Annotated[str, OneOf(HEARD)] = "own"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.distinct_names and not self.kind.group:
            raise ConfigurationError("distinct_names needs a stage with several monsters in a team: s2g, s4, s5 or s6")
        if self.is_split and (self.resolved_layout != "statements" or self.resolved_constructions or self.agents < 2):
            raise ConfigurationError(
                f"reading={self.reading!r} gives each of several agents whole statements: it needs agents=2 or more, "
                "layout='statements' and constructions='none', got "
                f"agents={self.agents}, {self.resolved_layout!r} and {self.resolved_constructions or 'none'}"
            )

    @property
    def kind(self) -> Task:
        return STAGES[self.stage]


@dataclass(frozen=True, kw_only=True)
class RockPaperScissors(RtfmGame):
    """Rock-paper-scissors (Zhong et al. 2020, appendix): a dragon, three letters, a cycle of who beats whom.

    Attributes:
        task: one of ROCK_PAPER_SCISSORS.
    """

    task: Annotated[str, OneOf(ROCK_PAPER_SCISSORS)] = "permutation"
    size: MapSize = 10
    agents: int = field(default=1, init=False)
    death: str = field(default="team", init=False)
    resample_text: bool = field(default=False, init=False)
    layout: str | None = field(default=None, init=False)
    constructions: str | None = field(default=None, init=False)
    templates: str | None = field(default=None, init=False)

    @property
    def kind(self) -> Task:
        return ROCK_PAPER_SCISSORS[self.task]


def _check_constructions(game: RtfmGame, sentences: Sentences) -> None:
    """Raise an error where the constructions, or a file, leave the split without templates that it needs."""
    names, split, kind = game.resolved_constructions, game.split, game.kind
    texts = sentences.drawn(names, split)
    for each in KINDS:
        if not sentences.plain(each, split):
            place = f"{split} → plain → {each}"
            raise DataNotFound(f"{game.templates}: {place} has no sentence, which split={split!r} needs")
    if split not in PROSE_SPLITS:
        if names and sentences.digest is None and all(template.construction == PLAIN for template in texts):
            raise ConfigurationError(
                f"{' and '.join(names)} are held out for split='eval_construction': switch on others for {split!r}"
            )
    elif not {(template.kind, template.groups) for template in texts} >= {(MODIFIER, 2), (TEAM, 2)}:
        what = "a held-out construction" if split == "eval_construction" else "a trained construction of two groups"
        of = f" in {game.templates}" if game.templates else ""
        raise ConfigurationError(
            f"split={split!r} needs {what}{of}, such as constructions='all'; got {names or 'none'}"
        )
    elif split == "eval_minimal" and (game.agents > _MOST_AGENTS_OF_MINIMAL or not kind.distractor_item):
        raise ConfigurationError(
            f"split='eval_minimal' is for at most {_MOST_AGENTS_OF_MINIMAL} agents and for tasks with a distractor item"
        )


@lru_cache(maxsize=64)
def _describe(game: RtfmGame, sentences: Sentences) -> spec.EnvSpec:
    n, size = game.agents, game.size
    vocabulary = (prose_vocabulary if game.resolved_constructions else rtfm_vocabulary)()
    if sentences.digest is not None:
        _check_constructions(game, sentences)
        vocabulary = extended(vocabulary, sentences)
    words = (rock_paper_scissors_vocabulary() if game.kind.letters else vocabulary).words
    top, lifetime = len(words) - 1, spec.STEP if game.resample_text else spec.EPISODE
    rows, length, goal_length = _document_shape(game.kind, sentences, game.resolved_layout, game.resolved_constructions)
    tells = rows if game.is_split and game.tell else 0
    map_shape = (size, size, 2 * game.occupants)
    fields: list[spec.Field] = [
        spec.Grid(
            "grid",
            map_shape,
            0,
            top,
            scenery_ids=(PAD, EMPTY_ID, WALL_ID, FOG_ID),
            avatar_ids=(ME_ID, ALLY_ID),
            words_per_occupant=2,
        ),
        spec.Field("position", (2,), -1, size - 1),
        spec.Text(
            "manual",
            (rows, length),
            0,
            top,
            shared=not game.is_split,
            lifetime=spec.STEP if game.is_split else lifetime,
        ),
        spec.Text("goal", (goal_length,), 0, top, shared=True, lifetime=lifetime),
        spec.Field("inventory", (2,), 0, top),
        spec.Mask("action_mask", (len(ACTION_NAMES) + tells,)),
    ]
    if n > 1:
        fields.append(spec.Field("teammates", (n - 1, TEAMMATE_WIDTH), -1, max(top, size)))
    if game.is_split:
        fields.append(spec.Field("told_by", (rows,), -1, n))
    facts = set() if game.kind.letters or game.is_split else {spec.FACTS}
    return spec.EnvSpec(
        fields=tuple(fields),
        num_agents=n,
        actions=spec.FixedActions((*ACTION_NAMES, *(f"tell {row + 1}" for row in range(tells))), tells=tells),
        words=words,
        source=sentences.source,
        max_cycles=game.max_cycles,
        capabilities=frozenset({spec.STATE, spec.SNAPSHOT, spec.PLACES, spec.SCENE, spec.EVENTS} | facts),
        state_parts=(("grid", map_shape), ("agents", (game.bodies, AGENT_WIDTH))),
        names=frozenset(LETTERS if game.kind.letters else NAMES),
    )


def _document_shape(
    task: Task, sentences: Sentences, layout: str, constructions: tuple[str, ...]
) -> tuple[int, int, int]:
    """Rows of a manual, words of a row and words of a goal."""
    if task.letters:
        return num_statements(task), len(statement_of_letters("a", "b").split()), len(DRAGON_GOAL.split())
    members = (2, 3) if task.group else (1, 1)
    if constructions:
        rows, length = prose_shape(sentences, layout, constructions, members)
    else:
        about_element, about_team = (
            longest(sentences.plain(kind), kind, count, layout == "stream")
            for kind, count in zip((MODIFIER, TEAM), members, strict=True)
        )
        rows, length = layout_shape(layout, [about_element] * len(ELEMENTS) + [about_team] * len(TEAMS))
    return rows, length, longest(sentences.plain(GOAL), GOAL, 0, False)


@cache
def rtfm_vocabulary() -> Vocabulary:
    """Every word of every task, stage and split, held-out templates' too: an embedding table never changes size."""
    plain = [t for language in (False, True) for t in our_sentences(language).templates if t.construction == PLAIN]
    words = [*GRID_WORDS, *NAMES, *ELEMENTS, *" ".join(TEAMS).split(), COMMA, *words_of(plain)]
    return Vocabulary(dict.fromkeys(words))


@cache
def prose_vocabulary() -> Vocabulary:
    """The same words with the same ids, and behind them those of the constructions."""
    return extended(rtfm_vocabulary(), our_sentences(True))


def extended(vocabulary: Vocabulary, sentences: Sentences) -> Vocabulary:
    """Return a vocabulary whose words keep their ids, and behind them those that sentences add."""
    return Vocabulary(dict.fromkeys([*vocabulary.words[1:], *sentences.words]))


@cache
def rock_paper_scissors_vocabulary() -> Vocabulary:
    """Vocabulary of rock-paper-scissors: there the letter "a" is a weapon, not an article."""
    return Vocabulary([*GRID_WORDS, *LETTERS, DRAGON, BEATS, STOP, *DRAGON_GOAL.split()[:2]])
