"""A headless Chromium that runs a page and gives back what the page writes."""

import html
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="there is no chromium here")

HARNESS = """<!doctype html><meta charset="utf-8"><body style="margin:0">
<pre id="result"></pre>
<script>
const say = (value) => { document.getElementById("result").textContent = JSON.stringify(value); };
window.onerror = (message) => say({ error: String(message) });
</script>
"""


def evaluate(folder: Path, body: str) -> Any:
    """Return the value that the HTML `body`, served beside the files of `folder`, gives to
    `say(value)`."""
    (folder / "harness.html").write_text(HARNESS + body, encoding="utf-8")
    with served(folder) as address:
        command = [
            CHROMIUM,
            "--headless=new",
            "--no-sandbox",  # root has none
            "--disable-gpu",
            "--hide-scrollbars",  # a phone's take no room
            f"--user-data-dir={folder / 'profile'}",
            "--virtual-time-budget=5000",
            "--dump-dom",
            f"{address}/harness.html",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    found = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stdout[-1000:] + done.stderr[-1000:]
    assert found[1], done.stderr[-1000:]
    value = json.loads(html.unescape(found[1]))
    assert not (isinstance(value, dict) and "error" in value), value
    return value


@contextmanager
def served(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass
