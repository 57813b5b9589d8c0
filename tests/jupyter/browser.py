"""Opens a page in headless Chromium, over the DevTools protocol on a pair of pipes: no driver, no port, no library."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.suite.waiting import LONG_S, SOON_S

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    *("--headless=new", "--remote-debugging-pipe", "--window-size=1500,1200", "--hide-scrollbars", "--disable-gpu"),
    *("--disable-dev-shm-usage", "--no-first-run", "--no-default-browser-check", "--disable-extensions"),
    # Off the network: nothing of its own, and no name or address for the page but that of a server on this machine.
    *("--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-sync"),
    *("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--proxy-server=127.0.0.1:9"),
]
DRAWN = """
new Promise(resolve => {
    const plots = () => Array.from(document.querySelectorAll('.plotly-graph-div'), div => ({
        id: div.id,
        name: (div.layout || {}).meta,
        expected: (div.data || []).length,
        traces: div.querySelectorAll('.scatterlayer .trace, .heatmaplayer .hm').length,
        drawn: div.querySelectorAll('.main-svg').length > 0,
        axes: Object.keys(div.layout || {}).filter(k => /axis/.test(k)).map(k => div.layout[k].type),
    }));
    const end = Date.now() + PATIENCE_MS;
    const look = () => {
        const found = plots();
        if (Date.now() > end || found.every(p => p.drawn && p.traces >= p.expected)) resolve(JSON.stringify(found));
        else setTimeout(look, 50);
    };
    look();
})
"""


SETTLED = """
new Promise(resolve => {
    let last = '', same = 0;
    const look = () => {
        const now = [...document.querySelectorAll('.plotly-graph-div')].map(e => e.innerHTML.length).join();
        same = now === last ? same + 1 : 0;
        last = now;
        if (same > 5) resolve(true); else setTimeout(look, 60);
    };
    look();
})
"""
"""Resolves when plots have not changed for some looks: they follow a new width a moment later."""
FAULTS = """
(() => {
    const box = e => e.getBoundingClientRect(), found = new Set(), width = document.documentElement.clientWidth;
    const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
    for (const e of [document.documentElement, ...document.querySelectorAll('.scroll.runs')])
        if (e.scrollWidth > e.clientWidth) found.add(`${e.className || 'the page'} is ${e.scrollWidth} px wide`);
    let above = 0;
    for (const plot of document.querySelectorAll('.plotly-graph-div')) {
        const name = plot.layout.meta, own = box(plot.querySelector('.main-svg'));
        if (own.top < above) found.add(`${name} begins in the plot above`);
        above = own.bottom - 1;
        const parts = [...plot.querySelectorAll('.xtick text, .ytick text, .xtitle, .annotation-text, .legendtext')]
            .filter(e => e.textContent.trim() && !/rotate\\(-/.test(e.getAttribute('transform')));
        for (const [n, e] of parts.entries()) {
            const its = box(e), said = `${name}: ${e.textContent}`;
            if (its.left < own.left - 1 || its.right > own.right + 1 || its.bottom > own.bottom + 1)
                found.add(`${said} is cut`);
            for (const other of parts.slice(n + 1))
                if (meet(its, box(other))) found.add(`${said} meets ${other.textContent}`);
        }
    }
    return [...found];
})()
"""
CONTROLS = """
(window.controls = Array.from(
    document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')
).filter(e => e.tabIndex >= 0 && e.checkVisibility())).map(e => e.outerHTML.slice(0, 120))
"""
FOCUSED = """
[window.controls.indexOf(document.activeElement),
 document.activeElement.matches(':focus-visible') && getComputedStyle(document.activeElement).outlineStyle !== 'none']
"""
NAMED = {"link", "button", "checkbox", "region", "textbox", "DisclosureTriangle"}
"""Roles whose elements need a label."""


@dataclass
class Walk:
    """What the Tab key came by.

    Attributes:
        controls: all links and controls of the page, each as the beginning of its HTML.
        missed: those that it did not come by.
        unseen: those that did not show that they had the focus.
        unnamed: the roles of elements without a name for those who cannot see them.
    """

    controls: list[str]
    missed: list[str]
    unseen: list[str]
    unnamed: list[str]


@dataclass
class Page:
    """What was seen of a page."""

    text: str = ""
    plots: list[dict[str, Any]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def check(self, *served: str) -> None:
        """It has no error, all plots, and asks for nothing but files, itself and what is below these addresses."""
        assert self.errors == [], self.errors
        elsewhere = [
            requests for requests in self.requests if not requests.startswith(("file:", "data:", "blob:", *served))
        ]
        assert elsewhere == [], elsewhere
        for plot in self.plots:
            assert plot["drawn"], plot
            assert 0 < plot["expected"] <= plot["traces"], plot


class Browser:
    """A running Chromium; every command waits for its answer and keeps the events that come meanwhile."""

    def __init__(self, to: int, of: int) -> None:
        self._to, self._of = to, of
        self._buffer = b""
        self._last = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def see(self, where: Path | str, limit_s: float = SOON_S) -> Page:
        """Opens a file or an address and waits until its plots are drawn, at most ``limit_s`` after it loaded."""
        target = self._open(where)
        page = Page()
        page.plots = json.loads(self._value(DRAWN.replace("PATIENCE_MS", str(int(limit_s * 1000)))))
        page.text = self._value("document.body.innerText")
        page.errors = [text for event in self.events for text in _errors(event)]
        page.requests = [
            e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"
        ]
        self.call("Target.closeTarget", targetId=target)
        return page

    def faults(self, where: Path | str, width: int) -> list[str]:
        """What overlaps or is cut on a page in a window of this width (px), in light and in dark."""
        target = self._open(where)
        found: list[str] = []
        for scheme in ("light", "dark"):
            self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
            self._value(SETTLED)
            found += self._value(FAULTS)
        self.call("Target.closeTarget", targetId=target)
        return found

    def walk(self, where: Path | str) -> Walk:
        """Opens a page and goes through it with the Tab key."""
        target = self._open(where)
        self.call("Page.bringToFront")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        controls = self._value(CONTROLS)
        reached, unseen = set(), []
        for _ in range(len(controls) + 1):
            for kind in ("rawKeyDown", "keyUp"):
                self.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
            at, shown = self._value(FOCUSED)
            reached.add(at)
            unseen += [controls[at]] if at >= 0 and not shown else []
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        messages = [(n["role"]["value"], n.get("name", {}).get("value")) for n in nodes if not n["ignored"]]
        self.call("Target.closeTarget", targetId=target)
        missed = [control for number, control in enumerate(controls) if number not in reached]
        return Walk(controls, missed, unseen, [role for role, name in messages if role in NAMED and not name])

    def _open(self, where: Path | str) -> str:
        """Opens a page in a tab of its own, waits until it is loaded, and returns the tab's id."""
        self._session, self.events = None, []
        target = str(self.call("Target.createTarget", url="about:blank")["targetId"])
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Network", "Page"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
        self.call("Page.navigate", url=where if isinstance(where, str) else where.resolve().as_uri())
        self._wait_for("Page.loadEventFired")
        return target

    def call(self, method: str, **params: object) -> dict[str, Any]:
        self._last += 1
        message: dict[str, object] = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._last:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _value(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"]["value"]

    def _wait_for(self, method: str) -> None:
        while not any(e.get("method") == method and e.get("sessionId") == self._session for e in self.events):
            self.events.append(self._read())

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._of], [], [], LONG_S)
            assert ready, f"Chromium said nothing for {LONG_S:g} s"
            read = os.read(self._of, 1 << 20)
            assert read, "Chromium ended: see its messages above"
            self._buffer += read
        message, self._buffer = self._buffer.split(b"\0", 1)
        decoded: dict[str, Any] = json.loads(message)
        return decoded


def _errors(event: dict[str, Any]) -> Iterator[str]:
    """The errors and warnings of a console event."""
    params = event.get("params", {})
    if event.get("method") == "Runtime.exceptionThrown":
        details = params["exceptionDetails"]
        yield details.get("exception", {}).get("description") or details["text"]
    elif event.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert", "warning"):
        yield " ".join(str(a.get("value", a.get("description"))) for a in params["args"])
    elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
        yield f"{params['entry']['text']} {params['entry'].get('url', '')}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium with its own profile, removed at the end.

    A machine without it fails the test: a report that no browser has opened is not tested.
    """
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.fail("there is no Chromium to open pages with: scripts/system-packages browser")
    flags = [*FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with tempfile.TemporaryDirectory(prefix="hydra-chromium-", ignore_cleanup_errors=True) as home:
        child_in, to = os.pipe()
        of, child_out = os.pipe()
        # Chromium reads commands from descriptor 3 and answers on 4; first out of their own way.
        high_in, high_out = os.dup2(child_in, 103), os.dup2(child_out, 104)
        actions = [(os.POSIX_SPAWN_DUP2, high_in, 3), (os.POSIX_SPAWN_DUP2, high_out, 4)]
        environment = {**os.environ, "HOME": home, "DBUS_SESSION_BUS_ADDRESS": "disabled:"}
        words = [program, *flags, f"--user-data-dir={home}/profile", "about:blank"]
        pid = os.posix_spawn(program, words, environment, file_actions=actions, setpgroup=0)
        for descriptor in (child_in, child_out, high_in, high_out):
            os.close(descriptor)
        try:
            yield Browser(to, of)
        finally:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(to)
            os.close(of)
