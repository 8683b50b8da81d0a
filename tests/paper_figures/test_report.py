"""The page of everything: whole, from disk alone, and readable wherever it is opened."""

import re
from html.parser import HTMLParser

import pytest

from paper_figures import command, report
from paper_figures.output import save_manifest
from tests.paper_figures import browser

ENVIRONMENT = '[{"from_update": 0, "processor": "<fast> & new", "packages": {"torch": "2.13.0"}}]'
TEXT = "[...document.querySelectorAll('body *')].filter(e => [...e.childNodes].some(n => n.nodeType == 3 && n.data.trim()))"  # noqa: E501
CONTRASTS = f"""
(() => {{
  const rgb = css => css.match(/[\\d.]+/g).map(Number);
  const light = css => rgb(css).slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const ground = e => e == null ? 'rgb(255, 255, 255)'
    : rgb(getComputedStyle(e).backgroundColor)[3] === 0 ? ground(e.parentElement)
    : getComputedStyle(e).backgroundColor;
  return {TEXT}.map(e => {{
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))];
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.textContent.trim().slice(0, 40)];
  }}).filter(([ratio]) => ratio < 4.5);
}})()
"""


@pytest.fixture(scope="module")
def runs(q1_once):
    """A folder of runs whose figures and page are made; one item is refused, one is broken."""
    (q1_once / "paci-s1" / "environment.json").write_text(ENVIRONMENT)
    (q1_once / "paci-s1" / "status.json").write_text('{"state": "failed", "why": "<disk> full"}')
    command.main(["claims", "drift", "table_3_stability", "figure_5_training_loss"], [str(q1_once)])
    refused = {"state": "refused", "why": "no throughput run is completed"}
    broken = {"state": "broken", "why": "KeyError: 'stage'"}
    save_manifest(
        {
            name: report.Item(name, "A title.", ("throughput",), **what)
            for name, what in (("time", refused), ("speed-up", broken))
        },
        q1_once / "figures",
    )
    assert report.main([str(q1_once)]) == 0
    return q1_once


@pytest.fixture(scope="module")
def html(runs):
    return (runs / "figures" / "report.html").read_text()


class Links(HTMLParser):
    """Everything that a page refers to, its images' descriptions and its headings' levels."""

    def __init__(self, html: str):
        super().__init__()
        self.tags, self.links, self.ids, self.levels, self.alts = set(), [], [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.add(tag)
        self.links += [attributes[key] for key in ("src", "href") if key in attributes]
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.levels += [int(tag[1])] if re.fullmatch("h[1-6]", tag) else []
        self.alts += [attributes.get("alt", "")] if tag == "img" else []


def test_the_page_holds_all_it_refers_to(html):
    page = Links(html)
    assert "script" not in page.tags
    assert "url(" not in html
    assert all(link.startswith(("data:", "#")) for link in page.links)
    inside = {link[1:] for link in page.links if link.startswith("#")}
    assert inside <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert len(page.alts) == 3
    assert all(len(alt) > 20 for alt in page.alts)
    steps = zip(page.levels, page.levels[1:], strict=False)
    assert page.levels[0] == 1
    assert all(after - before <= 1 for before, after in steps)


def test_the_page_says_what_it_stands_on(html):
    assert "5 of 6 runs, 2 seeds" in html
    assert "Partial data: drawn from 5 of 6 runs." in html
    assert "1f1b-flush-s0, 1f1b-flush-s1" in html  # a row of the runs behind each number
    assert "&lt;disk&gt; full" in html
    assert "no throughput run is completed" in html
    assert "a bug: KeyError: &#39;stage&#39;" in html
    assert "&lt;fast&gt; &amp; new" in html
    assert "torch 2.13.0" in html


def test_numbers_are_those_of_the_tables(runs, html):
    table = (runs / "figures" / "table_3_stability.md").read_text()
    row = next(line for line in table.splitlines() if "| paci a=" in line)
    for cell in (cell.strip() for cell in row.strip("|").split("|")[2:]):
        assert f">{cell}</t" in html


def test_claims_without_runs_are_not_counted_among_those_of_the_runs(runs):
    table = report.read_table(runs / "figures" / "claims.csv")
    of_runs, calculated = report.tallies(runs / "figures" / "claims.csv").values()
    assert sum(calculated.values()) == sum(table["question"] == "extrapolation") > 0
    assert sum(of_runs.values()) == sum(table["question"] != "extrapolation")


def test_the_same_logs_make_the_same_page(runs, html):
    report.main([str(runs)])
    assert (runs / "figures" / "report.html").read_text() == html


def test_without_figures_it_says_how_to_make_them(q1, capsys):
    assert report.main([str(q1)]) == 2
    assert "python -m paper_figures" in capsys.readouterr().out


@pytest.mark.skipif(not browser.CHROMIUM, reason="no Chromium is installed to open the page in")
@pytest.mark.parametrize(("width", "dark"), [(390, True), (1280, False)])
def test_the_page_in_a_browser(runs, html, width, dark):
    url = (runs / "figures" / "report.html").as_uri()
    with browser.Page(url, width, dark) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.evaluate(CONTRASTS) == []
        shown = page.evaluate("[...document.images].map(i => i.complete && i.naturalWidth > 0)")
        assert shown == [True] * 3
        for complaint in ("exceptionThrown", "consoleAPICalled", "entryAdded", "loadingFailed"):
            assert page.happened(complaint) == []
        asked = [event["request"]["url"] for event in page.happened("requestWillBeSent")]
        assert [one for one in asked if not one.startswith("data:")] == [url]
