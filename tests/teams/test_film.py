"""Pictures of games as films and pages."""

import base64
import io
import json
import re

import numpy as np
from PIL import Image

from magrounding.teams.film import page


def test_a_page_keeps_the_colours_of_small_things():
    """The colour of an element says what beats a monster; the picture has thousands of other shades."""
    shades = np.random.default_rng(0).integers(200, 256, (60, 80, 3)).astype(np.uint8)
    patches = {(4, 4): (60, 140, 50), (30, 40): (235, 90, 20), (50, 70): (60, 160, 230)}
    for (row, column), colour in patches.items():
        shades[row : row + 4, column : column + 4] = colour
    text = page("a game", [Image.fromarray(shades)], ["a step"], "")
    (step,) = json.loads(re.search(r"const steps = (.*);", text)[1])
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(step["src"].partition(",")[2]))).convert("RGB"))
    for (row, column), colour in patches.items():
        assert np.abs(shown[row + 2, column + 2].astype(int) - colour).max() < 16
