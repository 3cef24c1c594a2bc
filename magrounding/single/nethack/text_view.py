"""NetHackText: observations of NetHack in words: glyphs by what NetHack calls them, signs as on its screen."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import nle.nethack

from magrounding.single.nethack.words import SHADES, first_ids
from magrounding.text_view import Occupant, TextView, way
from magrounding.vector import Observation

_NETHACK: Any = nle.nethack


class NetHackText(TextView):
    """Things have NetHack's names and the number of their glyph, as different glyphs may share a name.

    What NetHack calls an object in this game is not known from its glyph, so objects have the name of their class.
    """

    def word(self, i: int) -> str:
        glyph, character, colour = first_ids()
        if glyph <= i < character:
            return f"{_glyph(i - glyph)[1]} (glyph {i - glyph})"
        if character <= i < colour:
            return f"shown as {chr(i - character)!r}"
        return f"in {SHADES[i - colour]}" if colour <= i < colour + len(SHADES) else super().word(i)

    def sign(self, occupant: Occupant) -> str:
        glyph, character, _ = first_ids()
        return _glyph(occupant[0] - glyph)[0] if glyph <= occupant[0] < character else super().sign(occupant)

    def own_cell(self, seen: Observation) -> tuple[int, int] | None:
        grid, row = self.spec.grid, int(seen["position"][0])
        if row < 0 or not grid.egocentric:
            return super().own_cell(seen)
        return grid.height // 2, grid.width // 2

    def way(self, down: int, right: int) -> str:
        return way(down, right, ("north", "south", "west", "east"))


@lru_cache(maxsize=1024)
def _glyph(number: int) -> tuple[str, str]:
    """Return the sign of a glyph on the screen, and what NetHack calls it."""
    nethack = _NETHACK
    if nethack.glyph_is_cmap(number):
        shown = nethack.symdef.from_idx(nethack.glyph_to_cmap(number))
        return chr(shown.sym), shown.explanation or "effect"
    if nethack.glyph_is_monster(number):
        monster = nethack.permonst(nethack.glyph_to_mon(number))
        sign = nethack.class_sym.from_mlet(monster.mlet).sym
        kinds = (
            (nethack.glyph_is_pet, "tame "),
            (nethack.glyph_is_detected_monster, "detected "),
            (nethack.glyph_is_ridden_monster, "ridden "),
        )
        return sign, next((kind for is_kind, kind in kinds if is_kind(number)), "") + monster.mname
    if nethack.glyph_is_body(number):
        return "%", f"{nethack.permonst(number - nethack.GLYPH_BODY_OFF).mname} corpse"
    if nethack.glyph_is_statue(number):
        return "'", f"statue of {nethack.permonst(number - nethack.GLYPH_STATUE_OFF).mname}"
    if nethack.glyph_is_normal_object(number):
        shown = nethack.class_sym.from_oc_class(nethack.objclass(nethack.glyph_to_obj(number)).oc_class)
        return shown.sym, shown.explain
    return "", "warning" if nethack.glyph_is_warning(number) else "something"
