"""The status page in a real browser, beside a server under load. Its pictures are build/status/*.png."""

import os
import re
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
from browser import Browser  # noqa: E402
from support import ROOT, Server, pb, quantize, tensor, wait_for  # noqa: E402

PICTURES = ROOT / "build" / "status"
LOOKS = int(os.environ.get("QUANTD_TEST_LOOKS", "12"))  # at the page, before its pictures are taken


class Load:
    """Calls of all kinds, from three threads, until it is stopped."""

    def __init__(self, server):
        self.stopped = threading.Event()
        big = pb.DynamicQuantizeRequest(x=tensor(np.random.default_rng(1).normal(size=1 << 18).astype(np.float32)))
        wrong = quantize([1.0], scale=[1.0, 2.0])
        calls = [
            [lambda: server.stub.Quantize(quantize(np.ones(2000)), timeout=20)],
            [lambda: server.stub.DynamicQuantize(big, timeout=20), lambda: time.sleep(0.02)],
            [lambda: server.stub.Quantize.future(wrong, timeout=20).exception(), lambda: server.stub.Dequantize(
                pb.DequantizeRequest(x=server.stub.Quantize(quantize(np.ones(100)), timeout=20).y, scale=tensor(1.0)), timeout=20),
             lambda: time.sleep(0.05)],
        ]  # fmt: skip
        self.threads = [threading.Thread(target=self.run, args=(of,), daemon=True) for of in calls]
        for thread in self.threads:
            thread.start()

    def run(self, calls):
        while not self.stopped.is_set():
            for call in calls:
                call()

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join(30)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("server"))
    load = Load(running)
    yield running
    load.stop()
    assert running.stop() == 0


@pytest.fixture
def browser():
    made = Browser()
    yield made
    made.close()


def text(browser, selector):
    return browser.run("return [...document.querySelectorAll(arguments[0])].map(e => e.innerText)", selector)


def test_it_shows_the_load_and_loads_nothing_from_elsewhere(server, browser):
    browser.look_like(1280)
    browser.open(f"http://{server.http}/")
    wait_for(lambda: text(browser, "#state") == ["serving"], 20, "the first look")
    looks = "return looks.length"
    wait_for(lambda: browser.run(looks) >= LOOKS, 10 + 4 * LOOKS, "it goes on looking")
    methods = browser.run("return [...document.querySelectorAll('#methods tbody tr')].map(row => [...row.cells].map(cell => cell.innerText))")
    shown = {row[0]: row for row in methods}
    assert set(shown) == {"Quantize", "DynamicQuantize", "Dequantize"}
    assert all(re.fullmatch(r"[\d.,]+K?", row[2]) and re.fullmatch(r"[\d.]+ (µs|ms|s)", row[6]) for row in shown.values()), shown
    assert "InvalidArgument" in text(browser, "#trouble dt")
    # Nothing is wider than the window.
    for width in 1280, 360:
        for scheme in "light", "dark":
            browser.look_like(width, scheme)
            assert browser.run("return document.documentElement.scrollWidth") <= width
            browser.picture(PICTURES / f"{scheme}-{width}.png")
    assert browser.console() == []
    # The browser's own first page is not ours.
    requests = [url for url in browser.requests() if not url.startswith(("chrome:", "data:"))]
    assert {url.removeprefix(f"http://{server.http}") for url in requests} == {"/", "/status.json"}


def test_hidden_it_does_not_look_and_a_server_that_is_gone_is_called_so(tmp_path, browser):
    server = Server(tmp_path)
    browser.open(f"http://{server.http}/")
    wait_for(lambda: browser.run("return looks.length >= 2"), 30, "the first looks")
    assert browser.run("return !document.getElementById('none').hidden")  # no call yet
    browser.run("Object.defineProperty(document, 'hidden', {value: true, configurable: true}); document.dispatchEvent(new Event('visibilitychange'))")
    before = browser.run("return looks.length")
    time.sleep(5)  # two looks, if there were any
    assert browser.run("return looks.length") == before
    assert server.stop() == 0
    browser.run("Object.defineProperty(document, 'hidden', {value: false}); document.dispatchEvent(new Event('visibilitychange'))")
    wait_for(lambda: text(browser, "#state") == ["no answer"], 20, "it says so")


def test_without_script_the_figures_are_in_the_page(server, browser):
    browser.look_like(1280)
    browser.devtools("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(f"http://{server.http}/")
    page = server.get("/")[1]
    assert re.search(r"<th scope=row>methods Quantize started<td>[1-9]", page) and "limits max message bytes<td>64 MiB" in page
    browser.picture(PICTURES / "without-script.png")
