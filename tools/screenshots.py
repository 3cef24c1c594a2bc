"""Pictures of the page for the README, by Playwright: `python -m tools.screenshots docs/images`."""

import asyncio
import io
import sys
from pathlib import Path

from PIL import Image

from tests.extensions.people.web.chromium import browser, find_chromium, open_page
from tests.extensions.people.web.party import party

ENDI = "pretrained:ma_rtfm-s5-2agents-endi"
READER = "pretrained:ma_rtfm-s5-2agents"
WIDE, NARROW = {"width": 1280, "height": 860}, {"width": 360, "height": 780}
KEYS = "sudlr"


async def keep(page, path, **options):
    """A picture of a page, in few colours."""
    data = await page.screenshot(**options)
    Image.open(io.BytesIO(data)).convert("RGB").quantize(128).save(path, "png", optimize=True)
    print(path, f"{path.stat().st_size / 1024:.0f} KiB")


async def play(there, chromium, errors, scheme, path, window=WIDE):
    """A game after two moves; its page."""
    context = await chromium.new_context(viewport=window, color_scheme=scheme)
    person = await there.person()
    code = await person.create(["human", READER], options={"stage": "s5"}, seed=4)
    page = await open_page(context, f"{there.origin}/game/{code}", errors)
    for step in range(2):
        await page.wait_for_function(
            "text => document.getElementById('status').textContent.includes(text)", arg=f"Step {step} of 80. It is"
        )
        await page.keyboard.press(KEYS[there.best(code, 0)])
    await page.wait_for_function("() => document.getElementById('status').textContent.includes('Step 2 of 80. It is')")
    await page.wait_for_timeout(300)
    await keep(page, path)
    return page


async def replay(there, chromium, errors, scheme, path):
    """A saved game of two agents who divide the entities, in its middle."""
    person = await there.person()
    code = await person.create([ENDI, ENDI], options={"stage": "s5"}, seed=4, pace=0.01)
    await person.join(code)
    await person.hear("saved")
    text = await (await there.client.get(f"/game/{code}/saved")).text()
    context = await chromium.new_context(viewport=WIDE, color_scheme=scheme)
    page = await open_page(context, there.origin, errors)
    await page.wait_for_selector("#player-0")
    await page.set_input_files("#file", {"name": "game.jsonl", "mimeType": "text/plain", "buffer": text.encode()})
    await page.wait_for_selector("#board:not([hidden])")
    await page.check("#show-pursues")
    for _ in range(3):
        await page.keyboard.press("PageDown")
    await page.evaluate("() => { document.activeElement.blur(); window.scrollTo(0, 0); }")
    await page.wait_for_timeout(300)
    await keep(page, path)


async def main(folder):
    """Take all pictures."""
    errors = []
    async with party(limits={"steps": 500}) as there, browser(find_chromium()) as chromium:
        for scheme in ("light", "dark"):
            await play(there, chromium, errors, scheme, folder / f"browser-game-{scheme}.png")
            await replay(there, chromium, errors, scheme, folder / f"browser-replay-{scheme}.png")
        await play(there, chromium, errors, "dark", folder / "browser-phone.png", NARROW)
    assert errors == [], errors


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
