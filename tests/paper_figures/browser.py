"""A page in a headless Chromium, over its own protocol: what it asks for, says and measures."""

import json
import os
import shutil
import subprocess
import time

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)


class Page:
    """A page opened at a width in pixels, as on a phone; a context manager."""

    def __init__(self, url: str, width: int, dark: bool = False):
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe")
        self._process = subprocess.Popen(  # it reads from descriptor 3 and writes to 4
            ["bash", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "_", CHROMIUM, *options],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._unread, self._count, self._session, self.events = b"", 0, None, []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")
        screen = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": True}
        self.ask("Emulation.setDeviceMetricsOverride", **screen)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Page.navigate", url=url)
        give_up = time.monotonic() + 30
        while not self.happened("loadEventFired"):
            assert time.monotonic() < give_up, "the page does not load"
            time.sleep(0.05)
            self.evaluate("0")  # an answer brings what happened before it along

    def __enter__(self) -> "Page":
        return self

    def __exit__(self, *_) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._commands)
        os.close(self._answers)

    def ask(self, method: str, **params) -> dict:
        """The browser's answer to a command; what happens meanwhile is added to `events`."""
        self._count += 1
        command = {"id": self._count, "method": method, "params": params}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while True:
            while b"\0" not in self._unread:
                read = os.read(self._answers, 1 << 20)
                assert read, "Chromium has ended"
                self._unread += read
            message, _, self._unread = self._unread.partition(b"\0")
            message = json.loads(message)
            if message.get("id") == self._count:
                assert "error" not in message, message["error"]
                return message["result"]
            self.events.append(message)

    def evaluate(self, expression: str) -> object:
        """The value of a JavaScript expression."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        return found["result"].get("value")

    def happened(self, what: str) -> list[dict]:
        """Return the parameters of the recorded events whose method ends so."""
        return [event["params"] for event in self.events if event.get("method", "").endswith(what)]
