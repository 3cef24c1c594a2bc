"""A real Chromium without a screen, driven by Playwright; tests that want it are skipped where there is none."""

import shutil
from contextlib import asynccontextmanager

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_chromium():
    """Where it is; skips the calling module where it, or Playwright, is not installed."""
    pytest.importorskip("playwright", reason="playwright is not installed: make test-browser installs it")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no chromium is installed (on Debian: apt install chromium)", allow_module_level=True)
    return found


@asynccontextmanager
async def browser(path):
    """A browser; whatever a page's script complains of fails the test."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        there = await playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield there
        finally:
            await there.close()


async def open_page(context, address, errors):
    """A page of a context at an address; what goes wrong in it is added to `errors`."""
    page = await context.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    await page.goto(address)
    return page
