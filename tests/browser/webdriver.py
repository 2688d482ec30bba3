"""A browser at our command: Debian's Chromium through its WebDriver, with the standard library."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

BOUND = 60.0
DRIVER, CHROMIUM = shutil.which("chromedriver"), shutil.which("chromium")

_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",  # tests may run as root, where Chromium has no sandbox
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--no-proxy-server",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)


class Browser:
    """One window. `port` is that of the WebDriver, `chosen` what its owner has set before."""

    def __init__(self, port: int, profile: Path, chosen: Mapping[str, object]) -> None:
        self._url = f"http://127.0.0.1:{port}"
        self._said: list[str] = []
        options = {
            "binary": CHROMIUM,
            "args": [*_ARGUMENTS, f"--user-data-dir={profile}"],
            "prefs": chosen,
        }
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        answer = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._url += f"/session/{answer['sessionId']}"

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        request = urllib.request.Request(
            self._url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=BOUND) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from None

    def open(self, url: str) -> None:
        """Go to a page and wait until it is loaded.

        Once more when a network interface of this machine came or went, as those of Pods do:
        Chromium then cuts what it is loading.
        """
        for _ in range(10):
            self._ask("POST", "/url", {"url": url})
            self._said = self._log()
            if not any("ERR_NETWORK_CHANGED" in each for each in self._said):
                return

    def run(self, script: str, *arguments: object) -> Any:
        """Run the body of a function in the page; what it returns, or what its promise gives."""
        return self._ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def until(self, script: str, *arguments: object) -> Any:
        """Wait until an expression is true and return it."""
        end = time.monotonic() + BOUND
        while not (found := self.run(f"return {script}", *arguments)):
            assert time.monotonic() < end, f"never: {script}\n{self.text('body')}"
            threading.Event().wait(0.05)
        return found

    def text(self, selector: str) -> str:
        """Return what an element shows."""
        return str(self.run("return document.querySelector(arguments[0]).innerText", selector))

    def click(self, selector: str) -> None:
        """Click, as a person does."""
        element = self._ask("POST", "/element", {"using": "css selector", "value": selector})
        (number,) = element.values()
        self._ask("POST", f"/element/{number}/click", {})

    def press(self, *keys: str) -> None:
        """Press keys one after the other, wherever the focus is."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        body = {"actions": [{"type": "key", "id": "keys", "actions": actions}]}
        self._ask("POST", "/actions", body)

    def devtools(self, command: str, **parameters: object) -> Any:
        """Send a command of the DevTools protocol."""
        return self._ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def look(self, *, width: int, height: int, dark: bool, scale: float = 1.0) -> None:
        """Be a screen of that size, with people who prefer light or dark."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.devtools("Emulation.setEmulatedMedia", features=[scheme])

    def hide(self, hidden: bool) -> None:
        """Put another window in front of the page, or take it away."""
        self.run(
            """
            Object.defineProperty(document, "hidden", {configurable: true, value: arguments[0]});
            document.dispatchEvent(new Event("visibilitychange"));
            """,
            hidden,
        )

    def heap(self) -> int:
        """Return the bytes that the page's objects take, after a collection."""
        self.devtools("HeapProfiler.collectGarbage")
        return int(self.devtools("Runtime.getHeapUsage")["usedSize"])

    def picture(self) -> bytes:
        """Return what is seen, as PNG."""
        return base64.b64decode(self._ask("GET", "/screenshot"))

    def complaints(self) -> list[str]:
        """Return what the console has said since the last call: errors, refused by a policy."""
        said, self._said = self._said + self._log(), []
        return said

    def _log(self) -> list[str]:
        log = self._ask("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in log if entry["level"] in ("SEVERE", "WARNING")]

    def quit(self) -> None:
        """Close it."""
        self._ask("DELETE", "")


@contextlib.contextmanager
def driving(folder: Path) -> Iterator[Callable[..., Browser]]:
    """Start a WebDriver; yields what opens browsers, which all end with it.

    What it yields may be given preferences. `folder` is their owner's home.
    """
    assert DRIVER is not None
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder)}
    driver = subprocess.Popen(
        [DRIVER, "--port=0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environ,
        start_new_session=True,
    )
    browsers: list[Browser] = []
    try:
        assert driver.stdout is not None
        found = None
        while found is None:
            line = driver.stdout.readline()
            assert line, "the WebDriver has ended"
            found = re.search(r"started successfully on port (\d+)", line)
        port = int(found[1])

        def browser(chosen: Mapping[str, object] = {}) -> Browser:
            opened = Browser(port, folder / f"profile-{len(browsers)}", dict(chosen))
            browsers.append(opened)
            return opened

        yield browser
    finally:
        for opened in browsers:
            with contextlib.suppress(AssertionError, OSError):
                opened.quit()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGTERM)
        driver.communicate(timeout=BOUND)
