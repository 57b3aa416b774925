"""The page in a real browser, opened from disk, on a desk and on a phone."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import methods as fakes_methods
from support import site as fakes_site
from support.colours import compute_contrast

from fsbench.core import statistics
from leaderboard.site import data, page
from leaderboard.tables import EXTRA, rank_tracks
from leaderboard.trust import Verification

HOSTILE = '</script><script>window.hit=1</script><img src=x onerror="window.hit=1">'
OTHER = "startup 224px"
FLAGS = (
    "headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage",
    "disable-background-networking", "disable-component-update", "disable-sync", "no-first-run",
    "hide-scrollbars",
)  # fmt: skip
DESK, PHONE = (1280, 900), (390, 844)
MACS = {"third": {"macs": 500_000_000}, "first": {}, "second": {"macs": 4_000_000_000}}
NAMES = ["first", "second", "third", HOSTILE, "fifth"]


class Browser:
    """A page in a driver: calls wait for the first element of a selector."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.run = driver.execute_script

    def open(self, address: str, size: tuple[int, int] = DESK) -> None:
        self.resize(size)
        self.prefer_dark(False)
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get(address)

    def resize(self, size: tuple[int, int]) -> None:
        """The size of the page itself, whatever the window's least width is."""
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def prefer_dark(self, is_dark: bool) -> None:
        """What the reader's system prefers; without motion, so that colours are there at once."""
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def __call__(self, selector: str) -> Any:
        from selenium.webdriver.support.ui import WebDriverWait

        wait = WebDriverWait(self.driver, 5, 0.05)
        return wait.until(lambda _: self.find(selector) or None)[0]

    def find(self, selector: str, inside: Any = None) -> list[Any]:
        return list((inside or self.driver).find_elements("css selector", selector))

    def texts(self, selector: str) -> list[str]:
        return [element.text for element in self.find(selector)]

    def go(self, view: str) -> None:
        self.run("location.hash = arguments[0]", view)

    def measure(self, selector: str, side: str) -> float:
        script = "return document.querySelector(arguments[0]).getBoundingClientRect()[arguments[1]]"
        return float(self.run(script, selector, side))

    @property
    def focused(self) -> Any:
        return self.driver.switch_to.active_element

    @property
    def names(self) -> list[str]:
        return [row.get_attribute("title") for row in self.find(".board tbody .name")]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A headless Chromium of the system with a fresh profile, for all tests of this file."""
    programs = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in programs:
        pytest.skip("no chromium and chromedriver: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is in the dev extra")
    options = webdriver.ChromeOptions()
    options.binary_location = programs[0]
    for flag in (*FLAGS, f"user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(programs[1]))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture
def browser(driver: Any) -> Iterator[Browser]:
    """A browser; fails on any message in the console, any request and any script of a name."""
    browser = Browser(driver)
    yield browser
    assert [line["message"] for line in driver.get_log("browser")] == []
    assert browser.run("return window.hit") is None
    assert browser.run("return performance.getEntriesByType('resource').length") == 0


@pytest.fixture(scope="module")
def source() -> fakes_site.SiteBoard:
    """The first entry has a signed badge of one result, the second unsigned claims."""
    first = fakes_methods.facts("seal", flops=2 * 10**12)
    runs = {
        "first": first.model_copy(update={"pretraining_data": ("tinyimagenet",)}),
        "second": fakes_methods.facts("normal"),
        "third": fakes_methods.facts("normal", schedule="single_cycle"),
    }
    board = fakes_site.source(NAMES, backbones=runs, controls=["second", "third"])
    one = board.entries[0].loaded[0].result
    key = (one.backbone.identity, str(one.column))
    says = {
        "first": Verification(4, {key: "verified"}, "2026-01-02"),
        "second": Verification(4, claims=2),
    }
    entries = [replace(e, verification=says.get(e.name, Verification(4))) for e in board.entries]
    return fakes_site.SiteBoard(board.file, entries, rank_tracks(board.file, entries))


def write_page(folder: Path, made: Any) -> str:
    """Write the page of these data and return its address."""
    written = folder / "index.html"
    written.write_text(page.render_page(made), encoding="utf8")
    return written.as_uri()


@pytest.fixture(scope="module")
def address(source: fakes_site.SiteBoard, tmp_path_factory: pytest.TempPathFactory) -> str:
    made = data.build_page_data(*source)
    made["tracks"].append({**made["tracks"][0], "title": OTHER})
    row = next(row for row in made["tracks"][0]["entries"] if row["name"] == HOSTILE)
    made["facts"][HOSTILE]["link"] = row["link"] = "javascript:window.hit=1"
    made["facts"][HOSTILE]["ref"] = "run:a; touch it's"
    made["facts"]["second"] |= {"pretraining_data": ["imagenet"], "targets_seen": ["isic"]}
    for row in made["tracks"][0]["entries"]:
        row["cost"] = row["cost"] | MACS[row["name"]] if row["name"] in MACS else None
    return write_page(tmp_path_factory.mktemp("site"), made)


@pytest.fixture
def opened(browser: Browser, address: str) -> Browser:
    """The first table on a desk."""
    browser.open(f"{address}#/t/0")
    return browser


def test_tiers_and_entries_stand_in_order(opened: Browser, source: fakes_site.SiteBoard) -> None:
    assert opened.names == source.tables[0].names
    heads = [head.split(" ·")[0] for head in opened.texts(".tier-head th")]
    tiers = source.tables[0].ranking.tiers
    assert heads == [f"Tier {i}" for i, tier in enumerate(tiers, 1) if len(tier) > 1] != []
    assert opened.texts(".board tbody .badge") == [str(s.tier) for tier in tiers for s in tier]
    steps = opened.run(
        "return [...document.querySelectorAll('.board tbody tr')].map((row) =>"
        " row.querySelector('.shade')?.className.match(/q(\\d)/)[1]).filter(Boolean)"
    )
    assert sorted(map(int, steps), reverse=True) == [8, 6, 4, 2, 0], "by rank within a column"


def test_numbers_without_a_signed_badge_are_marked(
    opened: Browser, source: fakes_site.SiteBoard
) -> None:
    n = len(source.tables[0].ranking.columns)
    rows = opened.find(".board tbody tr:has(.name)")
    marked = [len(opened.find(".cell .self", row)) for row in rows]
    assert marked == [n, *[n + 1] * (len(NAMES) - 1)]
    tags = dict(zip(opened.names, opened.texts(".board .flags"), strict=True))
    assert tags["first"].count("verified 1 of 4 results, 2026-01-02") == 1
    assert opened.texts(".cell .mark") == ["✓"]
    assert "19 of 20 numbers have no signed badge" in opened("#caveat").text
    assert "unsigned claim" in tags["second"]
    assert [name for name, text in tags.items() if "verified" in text] == ["first"]
    assert "ˢ self-reported: no signed badge" in opened(".legend").text
    assert len(opened.find("tr.single")) == len(marked)
    opened("#caveat summary").click()
    assert "fabricated entry" in opened("#caveat").text
    opened.find(".board tbody .name")[1].click()
    assert "fabricated entry" in opened("#trust").text
    assert len(opened.find("#cells td .self")) == n


def test_tracks_are_tabs_that_keep_their_own_filter(opened: Browser) -> None:
    assert opened.texts(".tabs a") == ["Methods", "linear ibm 224px", OTHER]
    opened("#filter").send_keys("first")
    for tab, n in ((":last-child", len(NAMES)), (":nth-child(2)", 1)):
        opened(f".tabs a{tab}").click()
        assert opened(f'.tabs a{tab}[aria-current="page"]')
        assert len(opened.names) == n
    assert opened.names == ["first"]


def test_sorting_by_keyboard_and_back(opened: Browser, source: fakes_site.SiteBoard) -> None:
    from selenium.webdriver.common.keys import Keys

    ranking = source.tables[0].ranking
    scores = {s.name: s.scores[ranking.columns[0]].mean for s in ranking.entries}
    opened('[data-sort="0"]').send_keys(Keys.ENTER)
    for order, sign in (("descending", -1), ("ascending", 1)):
        assert opened.names == sorted(scores, key=lambda name: sign * scores[name])
        assert opened.find(f'th[aria-sort="{order}"] [data-sort="0"]')
        assert opened.focused.get_attribute("data-sort") == "0"
        opened.focused.send_keys(Keys.ENTER)


def test_filters_by_words_and_data_set(opened: Browser) -> None:
    opened("#filter").send_keys("toy FIR")
    assert opened.names == ["first"]
    assert opened.texts("#count")[0] == "1 of 5 entries"
    opened.run("document.querySelector('select').focus()")
    opened('select option[value="isic"]').click()
    assert opened.texts(".board .group") == ["isic"]
    opened("#filter").send_keys(" nothing")
    assert opened.find("#board .empty")


def test_filters_by_pretraining_data_and_by_targets_seen(opened: Browser) -> None:
    """What entries declare; the choices stay beside the filter by words."""
    for value, names in (("imagenet", ["second"]), ("toy_source", NAMES[:1] + NAMES[2:])):
        opened(f'[aria-label="pretraining data"] option[value="{value}"]').click()
        assert opened.names == names
    opened('[aria-label="pretraining data"] option[value=""]').click()
    assert len(opened.names) == len(NAMES)
    opened('[aria-label="targets seen"] option[value="none"]').click()
    assert "second" not in opened.names
    assert opened("#status").get_attribute("textContent") == "4 of 5 entries"
    opened('[aria-label="targets seen"] option[value="isic"]').click()
    assert opened.names == ["second"]


def test_exact_costs_are_sorted_and_measured_ones_name_their_machine(opened: Browser) -> None:
    opened('[data-sort="macs"]').click()
    assert opened.names[:3] == ["third", "first", "second"], "the lowest first, unknown ones last"
    rows = opened.texts(".board tbody tr:has(.name)")
    assert "0.5 90.5 images/s, 716 MiB AMD EPYC 7763, 2 threads" in rows[0].replace("\n", " ")
    heads = [head.text for head in opened.find(".board thead tr:last-child > *")]
    assert heads[-4:] == ["parameters", "GMACs", "measured", "flags"]
    assert not opened.find("th button[title*='machine']")


def test_an_entry_opens_with_its_facts_and_histograms(
    opened: Browser, source: fakes_site.SiteBoard
) -> None:
    opened('.name[title="second"]').click()
    assert opened(".title h2").text == "second"
    text = opened("#cells table").text
    ranking = source.tables[0].ranking
    (row,) = (row for row in ranking.entries if row.name == "second")
    for score in row.scores.values():
        assert f"{100 * score.mean:.2f} ± {100 * score.ci95:.2f}" in text
    opened("#episodes svg")
    titles = opened.find("#episodes svg:first-of-type title")
    bars = [title.get_attribute("textContent") for title in titles]
    counts = [int(re.findall(r"(\d+) episodes", bar)[0]) for bar in bars]
    assert sum(counts) == 60 * len(ranking.columns)
    assert "fsbench benchmark -m run:runs/a" in opened("#recompute").text
    (entry,) = (entry for entry in source.entries if entry.name == "second")
    assert opened("#hashes .hash").text == entry.digest
    assert opened.find('dl.facts a[href="https://example.org"]')
    opened.driver.back()
    assert opened(".board")


def test_two_entries_compared_as_stats_paired(
    opened: Browser, source: fakes_site.SiteBoard
) -> None:
    for name in ("first", "third"):
        opened(f'[aria-label="compare {name}"]').click()
    opened("#compare").click()
    opened(".pair svg")
    opened(".pair summary").click()
    table = source.tables[0]
    columns = table.ranking.columns
    blocks = [columns, *([column] for column in columns)]
    for row, block in zip(opened.texts(".pair tbody tr"), blocks, strict=True):
        a, b = ([table.contenders[name][c] for c in block] for name in ("first", "third"))
        draws = [x.draws for x in a]
        paired = statistics.paired([x.values for x in a], [x.values for x in b], draws)
        numbers = re.findall(r"[+−]?\d+\.\d+(?= |$)", row)[:3]
        gap, low, high = (float(text.replace("−", "-")) for text in numbers)
        assert gap == pytest.approx(100 * paired.gap, abs=0.006)
        assert (high - low) / 2 == pytest.approx(100 * paired.ci95, rel=0.007, abs=0.011)


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_no_page_scrolls_sideways(opened: Browser, size: tuple[int, int]) -> None:
    opened.resize(size)
    for view in ("#/m", "#/t/0", "#/t/0/e/first", "#/t/0/c/first/second/third"):
        opened.go(view)
        opened(".box")
        shown = opened.run("return [innerWidth, document.documentElement.scrollWidth]")
        assert shown == [size[0], size[0]], view


def test_a_hostile_name_is_only_text(opened: Browser) -> None:
    assert HOSTILE in opened.names
    links = opened.find(".board tbody .links a")
    assert [link.get_attribute("href") for link in links] == ["https://example.org/"] * 4
    opened(".name[title*='onerror']").click()
    assert opened(".title h2").text == HOSTILE
    assert not opened.find("main img, main script")
    assert "javascript:window.hit=1" in opened("dl.facts").text
    assert not opened.find('a[href^="javascript"]')
    assert "-m 'run:a; touch it'\\''s'" in opened("#recompute pre").text


def test_light_and_dark_follow_the_system_and_the_button_and_are_readable(opened: Browser) -> None:
    """What the browser computes, not only what the palette says."""
    paper = "return getComputedStyle(document.body).backgroundColor"
    papers = []
    for is_dark in (False, True):
        opened.prefer_dark(is_dark)
        papers.append(opened.run(paper))
        assert find_lowest_contrast(opened) >= 4.5
    assert papers[0] == "rgb(255, 255, 255)" != papers[1]
    opened("#theme").click()
    assert opened.run(paper) == papers[0]


def find_lowest_contrast(browser: Browser) -> float:
    pairs = browser.run(
        "return [...document.querySelectorAll('.board td.cell, .board .badge, .board th .name,"
        " .about, .count, .board thead button, footer p, .tier-head .muted')].map((e) => {"
        " let b = e; while (getComputedStyle(b).backgroundColor === 'rgba(0, 0, 0, 0)'"
        " && b.parentElement) b = b.parentElement;"
        " return [getComputedStyle(e).color, getComputedStyle(b).backgroundColor]; })"
    )
    colours = [[tuple(int(v) / 255 for v in re.findall(r"\d+", c)[:3]) for c in p] for p in pairs]
    return min(compute_contrast(a, b) for a, b in colours)


def test_the_skip_link_comes_first_and_leads_to_the_table(opened: Browser) -> None:
    from selenium.webdriver.common.keys import Keys

    opened.run("document.body.focus()")
    opened("body").send_keys(Keys.TAB)
    assert opened.focused.get_attribute("class") == "skip"
    opened.focused.send_keys(Keys.ENTER)
    assert opened.focused.get_attribute("id") == "main"


@pytest.mark.parametrize(
    ("view", "titles"),
    [
        ("#/t/0", ["Critical difference"]),
        ("#/m", ["Gains over normal", "Gains over normal, other schedule"]),
    ],
)
def test_charts_of_the_track_are_drawn(opened: Browser, view: str, titles: list[str]) -> None:
    opened.go(view)
    opened("#panels img")
    assert opened.texts("#panels h2") == titles
    widths = opened.driver.execute_async_script(
        "const done = arguments[0]; Promise.all([...document.images].map((image) =>"
        " image.decode().then(() => image.naturalWidth))).then(done, done);"
    )
    assert len(widths) == len(titles)
    assert min(widths) > 400, "each picture is drawn"


def test_published_rows_stand_where_they_have_numbers(opened: Browser) -> None:
    assert "papers do not state whether SD, SE or CI" in opened("#published .note").text
    transfer, in_domain = opened.find("#published .box")
    assert "seal-paper-seal" in transfer.text
    assert "swr-paper-swr" in in_domain.text
    heads = [head.text for head in opened.find("thead th", transfer)]
    assert heads[1].startswith(("isic:5w1s", "eurosat:5w1s"))
    assert heads[-1] == "tinyimagenet:in-domain"
    (spread,) = (c for c in opened.find("#published td") if c.text == "43.48 (± 0.25)")
    assert spread.get_attribute("title").startswith("Table 1: ± over seeds as printed")


def test_finding_and_caveat_stand_above_the_table(opened: Browser) -> None:
    assert "5 entries" in opened(".about").text
    finding = opened(".finding").text
    for part in ("share tier 1", "first (74.95 %) has the highest mean", "plain training of equal"):
        assert part in finding
    note = opened(".finding + .note").text
    assert "Frozen features of EuroSAT (27,000 images), ISIC" in note
    parts = ("h1", ".about", "#caveat", ".finding", "#board")
    tops = [opened.measure(part, "top") for part in parts]
    assert tops == sorted(tops)
    assert tops[-1] < DESK[1]
    assert not opened("#submit ol").is_displayed()
    opened("#submit summary").click()
    assert "fsbench submit results --to" in opened("#submit ol").text


def test_methods_are_the_first_tab(browser: Browser, address: str) -> None:
    browser.open(address)
    assert browser('.tabs a:first-child[aria-current="page"]').text == "Methods"
    rows = {row.text.split()[0]: row for row in browser.find(".methods tbody tr")}
    assert {"first", "second"} <= rows.keys()
    assert "seal" in rows["first"].text
    assert ["baseline" in rows[name].text for name in ("first", "second")] == [False, True]
    assert "○" in rows["first"].text
    assert browser.find(".gain.hollow .whisker", rows["first"])
    browser.find(".name", rows["first"])[0].click()
    assert browser(".title h2").text == "first"


def test_every_tab_is_reached_by_wheel_and_by_keys(browser: Browser, address: str) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
    from selenium.webdriver.common.keys import Keys

    browser.open(address, (200, 800))
    bar, tabs = browser(".tabs"), browser.find(".tabs a")

    def is_visible(tab: Any) -> bool:
        script = (
            "const [a, b] = [...arguments].map((element) => element.getBoundingClientRect());"
            "return a.left >= b.left - 1 && a.right <= b.right + 1"
        )
        return bool(browser.run(script, tab, bar))

    heights = {bar.get_property(name) for name in ("scrollHeight", "clientHeight")}
    assert len(heights) == 1, "nothing to scroll upwards, so no spinner beside the tabs"
    assert not is_visible(tabs[-1])
    origin = ScrollOrigin.from_element(bar)
    ActionChains(browser.driver).scroll_from_origin(origin, 0, 600).perform()
    assert is_visible(tabs[-1])
    browser.run("arguments[0].focus()", tabs[0])
    for key, tab in ((Keys.ARROW_RIGHT, tabs[1]), (Keys.END, tabs[-1])):
        browser.focused.send_keys(key)
        assert browser.focused == tab
    assert is_visible(tabs[-1])
    browser.resize(DESK)
    assert all(map(is_visible, tabs))


def test_names_stay_in_sight_on_a_phone(opened: Browser) -> None:
    opened.resize(PHONE)
    opened.run("document.getElementById('board').scrollLeft = 300")
    assert 0 <= opened.measure(".board tbody .entry", "left") < 60
    opened.go("#/t/0/c/first/second/third")
    opened("#shots")
    opened.run("window.scrollTo(0, 900)")
    assert opened(".compared").text.split() == ["first", "second", "third"]
    assert opened.measure(".compared", "top") == 0
    opened.run("document.querySelector('#side .box').scrollLeft = 400")
    assert 0 <= opened.measure("#side tbody tr td", "left") < 150


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page of two methods with two seeds each and one with one."""
    runs = {m: [fakes_methods.facts(m, s) for s in (0, 1)] for m in ("seal", "normal")}
    runs |= {"swr": [fakes_methods.facts("swr")]}
    board = fakes_site.source(list(runs), backbones=runs, controls=["normal"])
    return write_page(tmp_path_factory.mktemp("seeded"), data.build_page_data(*board))


def test_seeds_expand_under_their_row(browser: Browser, seeded: str) -> None:
    browser.open(f"{seeded}#/t/0")
    browser(".board")
    assert sorted(browser.names) == ["normal", "seal", "swr"]
    assert len(browser.find(".board tbody tr.single:has(.name)")) == 1
    assert not browser.find(".seed")
    browser('[data-expand="seal"]').click()
    after = browser.names
    assert after[after.index("seal") + 1 :][:2] == ["seal seed 0", "seal seed 1"]
    assert browser.focused.get_attribute("data-expand") == "seal"
    browser('[data-expand="seal"]').click()
    assert not browser.find(".seed")
    browser.go("#/t/0/e/seal")
    assert browser("#hashes .hash").text
    browser("#seeds a").click()
    commands = browser("#recompute pre").text
    assert "recompute seal --board" in commands
    assert "verify 'seal seed 0' --board" in commands
    browser.go("#/m")
    browser('.methods [data-expand$="seal"]').click()
    assert len(browser.find(".methods .seed")) == 2


def test_a_seed_of_a_row_is_compared_as_an_independent_sample(
    browser: Browser, seeded: str
) -> None:
    browser.open(f"{seeded}#/t/0/c/seal%20seed%200/swr")
    assert "columns are not paired here (a seed of a row" in browser(".pair .note").text
    assert "swr" in browser(".pair .verdict").text + browser(".pair h3").text


def test_a_phone_shows_gains_and_commands_without_scrolling(browser: Browser, seeded: str) -> None:
    browser.open(f"{seeded}#/m", PHONE)
    browser(".methods .gain")
    assert browser.measure(".methods .gain", "right") <= PHONE[0]
    assert all("○" in text or "●" in text for text in browser.texts(".methods tbody th"))
    browser("#submit summary").click()
    for block in browser.find("#submit pre"):
        assert block.get_property("scrollWidth") <= block.get_property("clientWidth")


def test_a_column_that_came_later_has_a_table_with_the_reason(
    browser: Browser, tmp_path: Path
) -> None:
    board = fakes_site.source(["a", "b"], shots=[1])
    entries = [*board.entries, *fakes_site.source(["late"], shots=[5]).entries]
    made = data.build_page_data(board.file, entries, rank_tracks(board.file, entries))
    browser.open(f"{write_page(tmp_path, made)}#/t/1")
    assert "extra columns" in browser('.tabs a[aria-current="page"]').text
    assert browser.names == ["late"]
    assert EXTRA in browser(".board .flags .reason").text
    assert not browser.find(".board .badge")
