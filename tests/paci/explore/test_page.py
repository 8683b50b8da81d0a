"""The page in a browser: it loads nothing, fits on a phone, and answers to settings and touches."""

import re
import subprocess
import sys

import pytest

from paci import Cost, simulate
from paci.explore.page import page
from tests.paci.explore.chromium import evaluate, needs_chromium


def test_one_file_refers_to_no_other(tmp_path):
    command = [sys.executable, "-m", "paci.explore", tmp_path / "page.html"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path / 'page.html'}\n"
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert text == page()
    assert not re.search(r"https?:|//\w|<link|<img|\bsrc=|@import|url\(|fetch\(|import\(", text)
    assert not re.search(r"/\* [A-Z]+ \*/", text)  # every part is in its place


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    command = [sys.executable, "-m", "paci.explore", tmp_path / "none" / "page.html"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert re.fullmatch(r"error: .*page.html: No such file or directory\n", done.stderr)


LOOK = """
<iframe id="frame" style="border:0; width:WIDTHpx; height:844px" src="page.html#HASH"></iframe>
<script>
const frame = document.getElementById("frame");
frame.onload = () => {
  const inside = frame.contentWindow, page = inside.document;
  const canvas = page.querySelector("#canvas"), scroller = page.querySelector("#scroller");
  const touch = (x, y) => {
    const box = canvas.getBoundingClientRect();
    const place = { clientX: box.left + x, clientY: box.top + y, bubbles: true };
    canvas.dispatchEvent(new inside.MouseEvent("click", place));
    return page.querySelector("#tip").innerText;
  };
  const numbers = () => [...page.querySelectorAll("#numbers article")].map((each) =>
    [...each.querySelectorAll("h2, dd")].map((part) => part.innerText));
  const press = (key) => {
    canvas.dispatchEvent(new inside.KeyboardEvent("keydown", { key }));
    return page.querySelector("#tip").innerText;
  };
  const set = (name, value) => {
    page.forms[0][name].value = value;
    page.forms[0].dispatchEvent(new inside.Event("input", { bubbles: true }));
  };
  SCRIPT
};
</script>
"""


def look(folder, script, width=1280, hash=""):
    (folder / "page.html").write_text(page(), encoding="utf-8")
    body = LOOK.replace("WIDTH", str(width)).replace("HASH", hash).replace("SCRIPT", script)
    return evaluate(folder, body)


@needs_chromium
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(tmp_path, width):
    script = """
    const boxes = [...page.querySelectorAll("body *:not(#space)")];
    const controls = [...page.querySelectorAll("button, select")];
    say({
      page: page.documentElement.scrollWidth,
      beyond: boxes.filter((e) => e.getBoundingClientRect().right > inside.innerWidth)
                   .map((e) => e.id || e.tagName),
      small: controls.filter((e) => e.offsetHeight < 36).map((e) => e.name || e.innerText),
      drawn: canvas.getContext("2d").getImageData(60, 30, 200, 200).data.some((v) => v),
      scrolls: scroller.scrollWidth > scroller.clientWidth,
    });
    """
    said = look(tmp_path, script, width)
    assert said == {
        "page": width,
        "beyond": [],
        "small": [],
        "drawn": True,
        "scrolls": width == 390,  # actions keep a size that a finger can touch
    }


@needs_chromium
def test_settings_and_touches_are_answered(tmp_path):
    """The numbers are those of `paci.simulate`; the tip tells of micro-batch, version and drift."""
    script = """
    const answers = { first: numbers() };
    const scale = (canvas.clientWidth - 52 - 10) / 84;  // time ends at 84, of the flush
    answers.tip = touch(52 + 22.5 * scale, 26 + 5);
    answers.right = press("ArrowRight");
    answers.down = press("ArrowDown");
    press("Escape");
    answers.escaped = page.querySelector("#tip").hidden;
    set("slack", 2);
    set("jitter", 0.5);
    set("seed", 3);
    answers.slack = numbers()[0];
    answers.hash = inside.location.hash;
    set("other", "dualpipev");
    answers.refused = page.querySelector(".refused").innerText;
    set("other", "none");
    answers.alone = numbers().length;
    say(answers);
    """
    said = look(tmp_path, script)
    flush = simulate("1f1b-flush", 4, 16, 4)
    assert (flush.makespan, round(100 * flush.utilization)) == (84, 57)
    assert said["first"] == [
        ["paci, a = 4", "84 %", "57.0", "1 bound 1", "4"],
        ["1f1b-flush, m = 4", "57 %", "84.0", "0", "4"],
    ]
    assert said["tip"].splitlines() == [
        "0B4: backward of micro-batch 4",
        "rank 0, time 22 to 24",
        "weights of version 1, in its forward 0",
        "drift 1, at most 1 at this rank",
    ]
    assert said["right"].startswith("0F8: forward of micro-batch 8")
    assert said["down"].startswith("1F8: forward of micro-batch 8\nrank 1, time")
    assert said["escaped"]
    cost = Cost(jitter=0.5)
    run = simulate("paci", 4, 16, 4, slack=2, cost=cost, seed=3)
    assert said["slack"] == [
        "paci, a = 4, slack = 2",
        f"{100 * run.utilization:.0f} %",
        f"{run.makespan:.1f}",
        f"{max(run.max_drift)} bound 2",
        str(max(run.peak_in_flight)),
    ]
    assert said["hash"] == "#slack=2&jitter=0.5&seed=3"
    assert "at least as many micro-batches an update as stages" in said["refused"]
    assert said["alone"] == 1


@needs_chromium
def test_an_address_with_settings_opens_with_them(tmp_path):
    said = look(tmp_path, "say(numbers().map(([title]) => title));", hash="schedule=zbv&window=8")
    assert said == ["zbv, m = 8", "1f1b-flush, m = 8"]
