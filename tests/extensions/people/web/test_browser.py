"""The page in a real browser: games by keys and clicks, agents that are handed on, saved games with a slider."""

import asyncio
import json
from dataclasses import replace

import pytest

pytest.importorskip("aiohttp")

from magrounding.extensions.people.web.participants import Participants
from magrounding.extensions.people.web.study import Study
from tests.extensions.people.web.chromium import browser, find_chromium, open_page
from tests.extensions.people.web.party import party
from tests.extensions.people.web.test_study import EXAMPLE
from tests.forked import full_disk

CHROMIUM = find_chromium()
KEYS = "sudlr"
"""Of the moves of ma_rtfm, by number."""
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True}


def run(test, **offered):
    """Run a test with a server and a browser; a script's error in any page fails it."""
    errors = []

    async def whole():
        async with party(**offered) as there, browser(CHROMIUM) as chromium:
            await test(there, chromium, errors)

    asyncio.run(whole())
    assert errors == []


async def begin(page, players, env="ma_rtfm", seed="3", **options):
    """Fill in the lobby's form and start; the game's code."""
    await page.wait_for_selector("#player-0")
    await page.select_option("#env", env)
    for name, value in options.items():
        field = page.locator(f"#option-{name}")
        if not await field.is_visible():
            await page.click("#more-part summary")
        if await field.evaluate("field => field.tagName") == "SELECT":
            await field.select_option(label=value)
        else:
            await field.fill(value)
    for agent, player in enumerate(players):
        await page.select_option(f"#player-{agent}", player)
    await page.fill("#seed", seed)
    await page.click("text=Start")
    return await shown(page)


async def shown(page):
    await page.wait_for_selector("#board:not([hidden])")
    return page.url.rpartition("/")[2]


def status(page, text):
    """Wait until the page says so."""
    return page.wait_for_function("text => document.getElementById('status').textContent.includes(text)", arg=text)


def test_one_button_begins_a_game_with_a_trained_team():
    async def test(there, chromium, errors):
        page = await open_page(await chromium.new_context(**PHONE), there.origin, errors)
        await page.wait_for_selector("#player-0")
        assert await page.input_value("#env") == "ma_rtfm"
        file, button = [await page.locator(each).bounding_box() for each in ("#file", ".button:has(#file)")]
        assert file["width"] <= 2
        assert file["y"] + file["height"] <= button["y"] + button["height"]
        await page.click("#now")
        plan = there.host.rooms[await shown(page)].plan
        assert (plan.players, plan.shown["stage"]) == (("human", "pretrained:ma_rtfm-s5-2agents"), "s5")
        await status(page, "It is your move.")

    run(test, envs=("rtfm", "ma_rtfm"))


def test_a_line_that_is_clicked_is_told_to_the_other_page():
    async def test(there, chromium, errors):
        one = await open_page(await chromium.new_context(), there.origin, errors)
        code = await begin(one, ["human", "human"], stage="s2g", reading="kind")
        other = await open_page(await chromium.new_context(), f"{there.origin}/game/{code}", errors)
        await status(other, "It is your move.")
        lines = [await page.locator("#manual li").all_inner_texts() for page in (one, other)]
        assert sum(map(len, lines)) == 7
        assert await one.locator("#manual button").count() == len(lines[0])
        assert await one.locator("#moves button").count() == len(KEYS)
        await one.click("#manual button >> nth=0")
        await one.wait_for_selector("#manual button.chosen")
        await other.keyboard.press("s")
        await other.wait_for_selector("#manual .teller >> text=agent 0")
        assert await one.locator("#manual button").count() == len(lines[0]) - 1
        told = await other.locator("#manual li:has(.teller)").inner_text()
        sentence = told.removeprefix("agent 0:").strip()
        assert lines[0][0].endswith(sentence)
        for page in (one, other):
            said = " ".join(await page.locator("#board .bubble text").all_text_contents())
            assert said == f"agent 0: {sentence}"
        await other.keyboard.press("s")
        await one.keyboard.press("s")
        await one.wait_for_selector("#board .bubble", state="detached")

    run(test, envs=("ma_rtfm",))


def test_two_pages_play_one_game_to_its_end(tmp_path):
    async def test(there, chromium, errors):
        one = await open_page(await chromium.new_context(), there.origin, errors)
        code = await begin(one, ["human", "human"], stage="s1", split="train", max_cycles="40")
        await status(one, "Waiting for 1 more person")
        other = await open_page(await chromium.new_context(), f"{there.origin}/game/{code}", errors)
        await status(other, "It is your move.")
        for step in range(40):
            for agent, page in enumerate((one, other)):
                await page.keyboard.press(KEYS[there.best(code, agent)])
            for page in (one, other):
                await page.wait_for_function("step => +document.getElementById('step').max >= step", arg=step + 1)
            if there.host.rooms[code].session.now.over:
                break
        for page in (one, other):
            await status(page, "The game is won.")
        assert await one.inner_text("#last") == await other.inner_text("#last")
        async with one.expect_download() as download:
            await one.click("#saved")
        await (await download.value).save_as(tmp_path / "played.jsonl")
        # the slider goes back to the first step
        await one.focus("#step")
        await one.keyboard.press("Home")
        assert await one.inner_text("#last") == "nothing yet"

    run(test, out=tmp_path / "kept")
    (kept,) = (tmp_path / "kept").glob("*.jsonl")
    assert kept.read_text() == (tmp_path / "played.jsonl").read_text()


def test_a_phone_and_a_keyboard_are_enough():
    async def test(there, chromium, errors):
        phone = await open_page(await chromium.new_context(**PHONE), there.origin, errors)
        wide = "document.documentElement.scrollWidth"
        await phone.wait_for_selector("#player-0")
        assert await phone.evaluate(wide) == 360
        await phone.focus("#env")
        for _ in range(40):  # by Tab to the button, and Enter
            await phone.keyboard.press("Tab")
            if await phone.evaluate("document.activeElement.textContent") == "Start":
                break
        assert await phone.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        await phone.keyboard.press("Enter")
        await shown(phone)
        assert await phone.evaluate(wide) == 360
        nameless = await phone.evaluate(
            """() => [...document.querySelectorAll("button, input, select, a")].filter(each => each.checkVisibility()
                 && !(each.textContent.trim() || each.getAttribute("aria-label") || each.labels?.length)).length"""
        )
        assert nameless == 0
        assert await phone.get_attribute("#status", "aria-live") == "polite"
        await phone.focus("#moves button:not(:disabled)")
        await phone.keyboard.press("Enter")
        await status(phone, "Step 1 of")
        assert "row" in await phone.get_attribute("#board", "aria-label")

    run(test, envs=("rtfm",))


def test_a_saved_game_has_a_slider_and_shows_what_its_agents_thought(tmp_path):
    async def test(there, chromium, errors):
        person = await there.person()
        code = await person.create(["pretrained:ma_rtfm-s5-2agents-endi"] * 2, options={"stage": "s5"}, pace=0.01)
        await person.join(code)
        await person.hear("saved")
        file = tmp_path / "game.jsonl"
        file.write_text(await (await there.client.get(f"/game/{code}/saved")).text())
        page = await open_page(await chromium.new_context(), there.origin, errors)
        await page.wait_for_selector("#player-0")
        await page.set_input_files("#file", file)
        await shown(page)
        await status(page, f"after {person.frame['step']} steps")
        assert await page.locator("#board circle").count() > 0  # rings around what each takes for itself
        await page.uncheck("#show-claims")
        assert await page.locator("#board circle").count() == 0
        await page.check("#show-pursues")
        assert await page.locator("#board line").count() > 0
        await page.keyboard.press("PageDown")
        assert (await page.inner_text("#at")).startswith("step 1 of")
        file.write_text(file.read_text().replace('"seed":3', '"seed":4'))
        await page.set_input_files("#file", file)
        await page.wait_for_function("() => document.getElementById('error').textContent.includes('damaged')")
        (note,) = errors  # the browser itself notes that the server answered so
        assert "400" in note
        errors.clear()

    run(test)


def test_a_participant_goes_through_a_study(tmp_path):
    """Also where the disk is full at first, and after a line-up: the page says so, and the same button goes on."""

    def study(offers):
        return Participants(replace(Study.read(EXAMPLE, offers), seeds=(11,)), tmp_path)

    async def click_twice(page):
        with full_disk():
            await page.click("#study button")
            await page.wait_for_selector("#error >> text=this answer could not be stored")
        await page.click("#study button")

    async def test(there, chromium, errors):
        page = await open_page(await chromium.new_context(**PHONE), f"{there.origin}/study", errors)
        await page.check("text=some days")
        await page.check("[name=consent]")
        await click_twice(page)
        for _ in range(2):
            await shown(page)
            assert "an agent" in await page.inner_text("#agents")
            for _ in range(60):
                await status(page, "your move")
                code = list(there.host.rooms)[-1]
                step = there.host.rooms[code].session.now.step
                await page.keyboard.press(KEYS[there.best(code, 0)])
                await page.wait_for_function(
                    "step => +document.getElementById('step').max > step || document.getElementById('go-on')", arg=step
                )
                if there.host.rooms[code].session.now.over:
                    break
            await page.reload()  # between line-ups: it asks the questions
            await page.check("text=neither")
            await click_twice(page)
        await page.fill("textarea", "none")
        await page.click("#study button")
        await page.wait_for_selector("#study >> text=Thank you.")
        assert await page.evaluate("document.documentElement.scrollWidth") == 360
        await page.evaluate("sessionStorage.setItem('study', 'not known')")
        await page.reload()
        await page.wait_for_selector("[name=consent]")

    run(test, study=study)
    data = json.loads((tmp_path / "participant_0.json").read_text())
    assert data["finished"]
    assert [game["condition"] for game in data["games"]] == ["oracle", "trained"]
