"""RTFMWorld: B games of RTFM, with one agent or several, or of rock-paper-scissors."""

from __future__ import annotations

import numpy as np

from magrounding.capabilities import Relate
from magrounding.envs.compiled import OUTCOME_NAMES, CompiledWorld, added, salt_of
from magrounding.envs.render import Figure, Scene, sorted_figures
from magrounding.envs.rtfm import arrays, kernels
from magrounding.envs.rtfm.facts import MOST_FACTS, RELATIONS, Fact, fact_accuracy, name_facts
from magrounding.envs.rtfm.games import RtfmGame
from magrounding.envs.rtfm.ontology import ELEMENTS, PROSE_SPLITS, SPLITS, TEAMS, TRAINING, UNSEEN, num_statements
from magrounding.envs.rtfm.tables import make_claims, make_tables
from magrounding.envs.rtfm.text import LAYOUTS
from magrounding.vocabulary import PAD

_TASK = "group moving language distractor_monster distractor_item letters layout constructions"
_OPTIONS = (  # like _TASK in the order in which salts have them
    "agents size split max_cycles sight occupants death drop_mode chase_range "
    "resample_text shuffle_manual manual layout constructions"
)


class RTFMWorld(CompiledWorld[RtfmGame]):
    """Read to Fight Monsters; arguments as of `CompiledWorld`."""

    def __init__(self, num_envs: int, game: RtfmGame, num_threads: int = 1) -> None:
        self._sentences = game.sentences
        rules = _make_rules(game, self._sentences.digest)
        tables = make_tables(game, self._sentences)
        slots = rules.agents + rules.monsters + rules.items
        super().__init__(num_envs, game, num_threads, kernels, arrays, rules, tables, slots)

    def entity_places(self) -> np.ndarray:
        """Return places of the monsters alive and of the items on the floor, [B, E, 2] float32."""
        entities = self._games.entities[:, self.num_agents :]
        places = entities[..., [arrays.ROW, arrays.COLUMN]]
        return np.where(entities[..., arrays.PRESENT, None] == 1, places, -1).astype(np.float32)

    def facts(self, row: int) -> tuple[Fact, ...]:
        """Return the claims of the manual of one row, as written, also where it is reassigned: see `facts.Fact`."""
        return name_facts(self.fact_table()[row], self.game)

    def fact_table(self) -> np.ndarray:
        """Return the claims of all manuals [B, F, 9] int64, columns RELATION … NAME_LAST of `arrays`; −1 is none.

        Made anew with each call, from what the manuals were drawn from.
        """
        facts = np.full((self.num_envs, MOST_FACTS, arrays.NUM_FACT_COLUMNS), -1, np.int64)
        counts, manuals = np.zeros(self.num_envs, np.int64), np.zeros_like(self.observation["manual"])
        claims = make_claims(self.game, self._sentences)
        kernels.write_facts(self._rules, self._tables, self._games, claims, manuals, facts, counts)
        shown = self.observation["manual"].any(-1)  # a statement that is left out claims nothing
        facts[~np.take_along_axis(shown, np.maximum(facts[..., arrays.MANUAL_ROW], 0), 1)] = -1
        return facts

    def fact_accuracy(self, relate: Relate) -> float | None:
        words, table = self.spec.vocabulary, self.fact_table()
        ontology = UNSEEN if self.game.split == "eval_new" else TRAINING
        believed = np.full((self.num_envs, len(RELATIONS), len(ontology.monsters)), -1)
        for k, (subjects, names) in enumerate(((ontology.modifiers, ELEMENTS), (ontology.monsters, TEAMS))):
            width = max(len(name.split()) for name in names)
            related = relate(
                np.array([words[word] for word in subjects]), np.array([words.encode(name, width) for name in names])
            )
            if related is None:
                return None
            believed[:, k, : len(subjects)] = related.argmax(2)
        return fact_accuracy(table, believed)

    def events(self) -> dict[str, np.ndarray]:
        agents = self._games.entities[:, : self.num_agents]
        return {"kills": agents[..., arrays.KILLS].copy(), "held": agents[..., arrays.HELD].copy()}

    def scene(self, row: int) -> Scene:
        entities, scalars, words = self._games.entities[row], self._games.scalars[row], self.spec.words
        n, items = self._rules.agents, self._rules.agents + self._rules.monsters
        texts = self.text(row)
        figures = []
        for slot, entity in enumerate(entities):
            if entity[arrays.PRESENT]:
                at = int(entity[arrays.ROW]), int(entity[arrays.COLUMN])
                if slot < n:
                    figures.append(Figure(*at, "agent", str(slot)))
                else:
                    first, second = (words[entity[column]] for column in (arrays.WORD_1, arrays.WORD_2))
                    quality, name = (first, second) if entity[arrays.WORD_2] != PAD else ("", first)
                    figures.append(Figure(*at, "monster" if slot < items else "item", name, quality))
        shown = [arrays.WORD_1, arrays.WORD_2]
        held = [entities[item, shown] if item >= 0 else () for item in entities[:n, arrays.HELD]]
        walls = np.ones(self.spec.grid.shape[:2], np.bool_)
        walls[1:-1, 1:-1] = False
        return Scene(
            walls=walls,
            figures=sorted_figures(figures),
            alive=tuple(bool(agent[arrays.PRESENT]) for agent in entities[:n]),
            inventories=tuple(self.spec.vocabulary.decode(item) for item in held),
            goal=str(texts["goal"]),
            manual=tuple(texts["manual"]),
            step=int(scalars[arrays.STEP]),
            max_cycles=self.spec.max_cycles,
            outcome=OUTCOME_NAMES[scalars[arrays.OUTCOME]],
        )


def _make_rules(game: RtfmGame, digest: str | None) -> arrays.Rules:
    n, task = game.agents, game.kind
    options = tuple(getattr(game, name) for name in _OPTIONS.split())
    if digest is not None:  # which names documents as when there was no such option; the file may be another tomorrow
        options = *options, digest
    later = added(game, f"{_OPTIONS} task stage templates omission distraction decoys")
    return arrays.Rules(
        agents=n,
        monsters=task.monsters(n),
        items=task.items(n),
        targets=n,
        size=game.size,
        occupants=game.occupants,
        max_cycles=game.max_cycles,
        moving=task.moving,
        individual_death=game.death == "individual",
        leave_item=game.drop_mode == "left",
        monsters_first=bool(task.letters),
        resample_text=game.resample_text,
        shuffle_manual=game.shuffle_manual,
        statements=num_statements(task),
        layout=LAYOUTS.index(game.resolved_layout),
        prose=bool(game.resolved_constructions),
        pairs=game.split in PROSE_SPLITS,
        minimal=game.split == "eval_minimal",
        reassigned=game.manual == "reassigned",
        letters=bool(task.letters),
        sight_squared=-1.0 if game.sight is None else float(game.sight) ** 2,
        chase_squared=-1.0 if game.chase_range is None else float(game.chase_range) ** 2,
        side=SPLITS[game.split],
        salt=salt_of(task, _TASK, *options, *later),
        omission=float(game.omission),
        distraction=float(game.distraction),
        decoys=float(game.decoys),
    )
