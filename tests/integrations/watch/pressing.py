"""Presses buttons of the page of a live run, in a browser."""

from __future__ import annotations

from tests.lab.report import chromium


def press(browser: chromium.Browser, id: str, answer: str) -> None:
    """Press a button of the page of a live run, and give an answer to what it asks."""
    answered = "Number(document.getElementById('sure').dataset.answered ?? 0)"
    before = browser.value(answered)
    browser.value(f"document.getElementById('wish-{id}').click()")
    browser.wait_for("document.getElementById('sure').open")
    if answer == "Escape":
        browser.ask("Input.dispatchKeyEvent", type="keyDown", key=answer, windowsVirtualKeyCode=27)
    else:
        chosen = "#sure-yes" if answer == "Yes" else "#sure button"
        browser.value(f"document.querySelector('{chosen}').click()")
    browser.wait_for(f"{answered} > {before}")
