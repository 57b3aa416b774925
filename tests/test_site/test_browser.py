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
from fsbench.core.tasks import ColumnId
from leaderboard.published import PublishedEntry, select_published
from leaderboard.site import data, page
from leaderboard.tables import EXTRA, BoardTable, rank_tracks
from leaderboard.trust import Verification

HOSTILE = '</script><script>window.hit=1</script><img src=x onerror="window.hit=1">'
OTHER = "startup 224px"
FLAGS = (
    "headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage",
    "disable-background-networking", "disable-component-update", "disable-sync", "no-first-run",
    "hide-scrollbars",
)  # fmt: skip
DESK, PHONE = (1280, 900), (390, 844)
NAMES = ["first", "second", "third", HOSTILE, "fifth"]


@pytest.fixture(scope="module")
def source() -> fakes_site.SiteBoard:
    runs = {
        "first": fakes_methods.facts("seal", flops=2 * 10**12),
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
    board = fakes_site.SiteBoard(board.file, entries, rank_tracks(board.file, entries))
    printed = printed_entries("swr-paper-swr")[:1]
    return board._replace(tables=[show_published(table, printed) for table in board.tables])


def show_published(table: BoardTable, entries: tuple[PublishedEntry, ...]) -> BoardTable:
    """Return the table with other published entries than those on its data sets."""
    changed = replace(table)
    vars(changed)["published"] = entries
    return changed


def printed_entries(*names: str) -> tuple[PublishedEntry, ...]:
    """Entries with names that begin so, on the data sets of the board."""
    columns = [ColumnId.parse(f"{name}:5w1s/linear@ibm 224px") for name in ("isic", "eurosat")]
    entries = select_published(None, columns, ["tinyimagenet"])
    return tuple(entry for entry in entries if entry.name.startswith(names))


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


def resize(driver: Any, size: tuple[int, int]) -> None:
    """The size of the page itself, whatever the window's least width is."""
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def prefer_dark(driver: Any, is_dark: bool) -> None:
    """What the reader's system prefers; without motion, so that colours are there at once."""
    features = [
        {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


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
    return write_page(tmp_path_factory.mktemp("site"), made)


@pytest.fixture
def opened(driver: Any, address: str) -> Iterator[Any]:
    """The first table on a desk; fails on any message in the console and any request."""
    resize(driver, DESK)
    prefer_dark(driver, False)
    driver.get("about:blank")
    driver.get_log("browser")
    driver.get(f"{address}#/t/0")
    yield driver
    assert [line["message"] for line in driver.get_log("browser")] == []
    assert driver.execute_script("return window.hit") is None
    assert driver.execute_script("return performance.getEntriesByType('resource').length") == 0


def find(driver: Any, selector: str) -> list[Any]:
    elements: list[Any] = driver.find_elements("css selector", selector)
    return elements


def wait(driver: Any, selector: str) -> Any:
    """The first such element, as soon as it is there."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driver, 5, 0.05).until(lambda d: find(d, selector) or None)[0]


def go(driver: Any, view: str) -> None:
    driver.execute_script("location.hash = arguments[0]", view)


def left_of(driver: Any, selector: str) -> float:
    script = "return document.querySelector(arguments[0]).getBoundingClientRect().left"
    return float(driver.execute_script(script, selector))


def names(driver: Any) -> list[str]:
    return [row.get_attribute("title") for row in find(driver, ".board tbody .name")]


def test_tiers_and_entries_stand_in_order(opened: Any, source: fakes_site.SiteBoard) -> None:
    assert names(opened) == source.tables[0].names
    heads = [head.text.split(" ·")[0] for head in find(opened, ".tier-head th")]
    tiers = source.tables[0].ranking.tiers
    assert heads == [f"Tier {i}" for i, tier in enumerate(tiers, 1) if len(tier) > 1] != []
    marks = [mark.text for mark in find(opened, ".board tbody .badge")]
    assert marks == [str(s.tier) for tier in tiers for s in tier]
    steps = opened.execute_script(
        "return [...document.querySelectorAll('.board tbody tr')].map((row) =>"
        " row.querySelector('.shade')?.className.match(/q(\\d)/)[1]).filter(Boolean)"
    )
    assert sorted(map(int, steps), reverse=True) == [8, 6, 4, 2, 0], "by rank within a column"


def test_numbers_without_a_signed_badge_are_marked(
    opened: Any, source: fakes_site.SiteBoard
) -> None:
    """The first entry has one signed result of all, the second unsigned claims, others nothing."""
    n = len(source.tables[0].ranking.columns)
    marked = [len(find(row, ".cell .self")) for row in find(opened, ".board tbody tr:has(.name)")]
    assert marked == [n, *[n + 1] * (len(NAMES) - 1)]
    texts = (row.text for row in find(opened, ".board .flags"))
    tags = dict(zip(names(opened), texts, strict=True))
    assert tags["first"].count("verified 1 of 4 results, 2026-01-02") == 1
    assert [mark.text for mark in find(opened, ".cell .mark")] == ["✓"]
    assert "19 of 20 numbers have no signed badge" in wait(opened, "#caveat").text
    assert "unsigned claim" in tags["second"]
    assert [name for name, text in tags.items() if "verified" in text] == ["first"]
    assert "ˢ self-reported: no signed badge" in wait(opened, ".legend").text
    assert marked == [len(find(row, ".cell .self")) for row in find(opened, "tr.single")]
    wait(opened, "#caveat summary").click()
    assert "fabricated entry" in wait(opened, "#caveat").text
    find(opened, ".board tbody .name")[1].click()
    assert "fabricated entry" in wait(opened, "#trust").text
    assert len(find(opened, "#cells td .self")) == n


def test_tracks_are_tabs_that_keep_their_own_filter(opened: Any) -> None:
    assert [tab.text for tab in find(opened, ".tabs a")] == ["Methods", "linear ibm 224px", OTHER]
    wait(opened, "#filter").send_keys("first")
    wait(opened, ".tabs a:last-child").click()
    assert wait(opened, '.tabs a:last-child[aria-current="page"]')
    assert len(names(opened)) == len(NAMES)
    wait(opened, ".tabs a:nth-child(2)").click()
    assert wait(opened, '.tabs a:nth-child(2)[aria-current="page"]')
    assert names(opened) == ["first"]


def test_sorting_by_keyboard_and_back(opened: Any, source: fakes_site.SiteBoard) -> None:
    from selenium.webdriver.common.keys import Keys

    track = source.tables[0]
    scores = {s.name: s.scores[track.ranking.columns[0]].mean for s in track.ranking.entries}
    wait(opened, '[data-sort="0"]').send_keys(Keys.ENTER)
    assert names(opened) == sorted(scores, key=lambda name: -scores[name])
    assert find(opened, 'th[aria-sort="descending"] [data-sort="0"]')
    opened.switch_to.active_element.send_keys(Keys.ENTER)
    assert names(opened) == sorted(scores, key=lambda name: scores[name])
    assert find(opened, 'th[aria-sort="ascending"] [data-sort="0"]')
    assert opened.switch_to.active_element.get_attribute("data-sort") == "0"


def test_filters_by_words_and_data_set(opened: Any) -> None:
    wait(opened, "#filter").send_keys("toy FIR")
    assert names(opened) == ["first"]
    assert find(opened, "#count")[0].text == "1 of 5 entries"
    opened.execute_script("document.querySelector('select').focus()")
    wait(opened, 'select option[value="isic"]').click()
    assert [head.text for head in find(opened, ".board .group")] == ["isic"]
    wait(opened, "#filter").send_keys(" nothing")
    assert find(opened, "#board .empty")


def test_an_entry_opens_with_its_facts_and_histograms(
    opened: Any, source: fakes_site.SiteBoard
) -> None:
    wait(opened, '.name[title="second"]').click()
    assert wait(opened, ".title h2").text == "second"
    text = wait(opened, "#cells table").text
    entry_row = next(s for s in source.tables[0].ranking.entries if s.name == "second")
    for score in entry_row.scores.values():
        assert f"{100 * score.mean:.2f} ± {100 * score.ci95:.2f}" in text
    wait(opened, "#episodes svg")
    titles = find(opened, "#episodes svg:first-of-type title")
    bars = [title.get_attribute("textContent") for title in titles]
    counts = [int(re.findall(r"(\d+) episodes", bar)[0]) for bar in bars]
    assert sum(counts) == 60 * len(source.tables[0].ranking.columns)
    assert "fsbench benchmark -m run:runs/a" in wait(opened, "#recompute").text
    entry = next(entry for entry in source.entries if entry.name == "second")
    assert wait(opened, "#hashes .hash").text == entry.digest
    assert find(opened, 'dl.facts a[href="https://example.org"]')
    opened.back()
    assert wait(opened, ".board")


def test_two_entries_compared_as_stats_paired(opened: Any, source: fakes_site.SiteBoard) -> None:
    for name in ("first", "third"):
        wait(opened, f'[aria-label="compare {name}"]').click()
    wait(opened, "#compare").click()
    wait(opened, ".pair svg")
    wait(opened, ".pair summary").click()
    track = source.tables[0]
    rows = [row.text for row in find(opened, ".pair tbody tr")]
    blocks = [track.ranking.columns, *([column] for column in track.ranking.columns)]
    for row, columns in zip(rows, blocks, strict=True):
        a, b = ([track.contenders[n][c] for c in columns] for n in ("first", "third"))
        draws = [x.draws for x in a]
        paired = statistics.paired([x.values for x in a], [x.values for x in b], draws)
        gap, low, high = map(number, re.findall(r"[+−]?\d+\.\d+(?= |$)", row)[:3])
        assert gap == pytest.approx(100 * paired.gap, abs=0.006)
        assert (high - low) / 2 == pytest.approx(100 * paired.ci95, rel=0.007, abs=0.011)


def number(text: str) -> float:
    return float(text.replace("−", "-"))


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_no_page_scrolls_sideways(opened: Any, size: tuple[int, int]) -> None:
    resize(opened, size)
    for view in ("#/m", "#/t/0", "#/t/0/e/first", "#/t/0/c/first/second/third"):
        go(opened, view)
        wait(opened, ".box")
        shown = opened.execute_script("return [innerWidth, document.documentElement.scrollWidth]")
        assert shown == [size[0], size[0]], view


def test_a_hostile_name_is_only_text(opened: Any) -> None:
    assert HOSTILE in names(opened)
    links = find(opened, ".board tbody .links a")
    assert [link.get_attribute("href") for link in links] == ["https://example.org/"] * 4
    find(opened, ".name[title*='onerror']")[0].click()
    assert wait(opened, ".title h2").text == HOSTILE
    assert not find(opened, "main img, main script")
    assert "javascript:window.hit=1" in wait(opened, "dl.facts").text
    assert not find(opened, 'a[href^="javascript"]')
    assert "-m 'run:a; touch it'\\''s'" in wait(opened, "#recompute pre").text


def test_light_and_dark_follow_the_system_and_the_button_and_are_readable(opened: Any) -> None:
    """What the browser computes, not only what the palette says."""
    papers = []
    for is_dark in (False, True):
        prefer_dark(opened, is_dark)
        papers.append(read_paper(opened))
        assert lowest_contrast(opened) >= 4.5
    assert papers[0] == "rgb(255, 255, 255)" != papers[1]
    wait(opened, "#theme").click()
    assert read_paper(opened) == papers[0]


def read_paper(driver: Any) -> str:
    script = "return getComputedStyle(document.body).backgroundColor"
    return str(driver.execute_script(script))


def lowest_contrast(driver: Any) -> float:
    pairs = driver.execute_script(
        "return [...document.querySelectorAll('.board td.cell, .board .badge, .board th .name,"
        " .about, .count, .board thead button, footer p, .tier-head .muted')].map((e) => {"
        " let b = e; while (getComputedStyle(b).backgroundColor === 'rgba(0, 0, 0, 0)'"
        " && b.parentElement) b = b.parentElement;"
        " return [getComputedStyle(e).color, getComputedStyle(b).backgroundColor]; })"
    )
    colours = [[tuple(int(v) / 255 for v in re.findall(r"\d+", c)[:3]) for c in p] for p in pairs]
    return min(compute_contrast(a, b) for a, b in colours)


def test_the_skip_link_comes_first_and_leads_to_the_table(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    opened.execute_script("document.body.focus()")
    wait(opened, "body").send_keys(Keys.TAB)
    assert opened.switch_to.active_element.get_attribute("class") == "skip"
    opened.switch_to.active_element.send_keys(Keys.ENTER)
    assert opened.switch_to.active_element.get_attribute("id") == "main"


def test_a_download_is_the_file_that_was_made(opened: Any) -> None:
    opened.execute_script(
        "window.saved = []; const make = URL.createObjectURL;"
        "URL.createObjectURL = (blob) => { window.saved.push(blob); return make(blob); };"
    )
    wait(opened, '[data-download="csv"]').click()
    text = opened.execute_async_script(
        "const done = arguments[0]; const look = () => window.saved.length"
        " ? window.saved[0].text().then(done) : setTimeout(look, 20); look();"
    )
    assert text.splitlines()[0].startswith("table,track,entry,tier,overall,column,mean")


@pytest.mark.parametrize(
    ("view", "titles"),
    [
        ("#/t/0", ["Critical difference"]),
        ("#/m", ["Gains over normal", "Gains over normal, other schedule"]),
    ],
)
def test_charts_of_the_track_are_drawn(opened: Any, view: str, titles: list[str]) -> None:
    go(opened, view)
    wait(opened, "#panels img")
    assert [head.text for head in find(opened, "#panels h2")] == titles
    widths = opened.execute_async_script(
        "const done = arguments[0]; Promise.all([...document.images].map((image) =>"
        " image.decode().then(() => image.naturalWidth))).then(done, done);"
    )
    assert len(widths) == len(titles)
    assert min(widths) > 400, "each picture is drawn"


def test_published_rows_stand_where_they_have_numbers(
    driver: Any, source: fakes_site.SiteBoard, tmp_path: Path
) -> None:
    printed = printed_entries("seal-", "swr-")
    tables = [show_published(table, printed) for table in source.tables]
    made = data.build_page_data(*source._replace(tables=tables))
    driver.get(f"{write_page(tmp_path, made)}#/t/0")
    assert "papers do not state whether SD, SE or CI" in wait(driver, "#published .note").text
    transfer, in_domain = find(driver, "#published .box")
    assert "seal-paper-seal" in transfer.text
    assert "swr-paper-swr" in in_domain.text
    assert not find(driver, "#published .absent")
    heads = [head.text for head in transfer.find_elements("css selector", "thead th")]
    assert heads[1].startswith("isic:5w1s") or heads[1].startswith("eurosat:5w1s")
    assert heads[-1] == "tinyimagenet:in-domain"
    spread = next(c for c in find(driver, "#published td") if c.text == "43.48 (± 0.25)")
    assert spread.get_attribute("title").startswith("Table 1: ± over seeds as printed")


def test_finding_and_caveat_stand_above_the_table(opened: Any) -> None:
    texts = {name: wait(opened, name).text for name in (".about", "#caveat", ".finding")}
    assert "5 entries" in texts[".about"]
    for part in (
        "share tier 1", "first (74.95 %) has the highest mean", "plain training of equal compute"
    ):  # fmt: skip
        assert part in texts[".finding"]
    note = wait(opened, ".finding + .note").text
    assert "Frozen features of EuroSAT (27,000 images), ISIC" in note
    tops = opened.execute_script(
        "return ['h1', '.about', '#caveat', '.finding', '#board'].map((name) =>"
        " document.querySelector(name).getBoundingClientRect().top + scrollY)"
    )
    assert tops == sorted(tops)
    assert tops[-1] < DESK[1]
    assert not wait(opened, "#submit ol").is_displayed()
    wait(opened, "#submit summary").click()
    assert "fsbench submit results --to" in wait(opened, "#submit ol").text


def test_methods_are_the_first_tab(opened: Any, address: str) -> None:
    opened.get("about:blank")
    opened.get(address)
    assert wait(opened, '.tabs a:first-child[aria-current="page"]').text == "Methods"
    rows = {row.text.split()[0]: row for row in find(opened, ".methods tbody tr")}
    assert {"first", "second"} <= rows.keys()
    assert "seal" in rows["first"].text
    assert ["baseline" in rows[name].text for name in ("first", "second")] == [False, True]
    assert "○" in rows["first"].text
    assert find(rows["first"], ".gain.hollow .whisker")
    wait(rows["first"], ".name").click()
    assert wait(opened, ".title h2").text == "first"


def test_every_tab_is_reached_by_wheel_and_by_keys(driver: Any, address: str) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
    from selenium.webdriver.common.keys import Keys

    resize(driver, (200, 800))
    driver.get("about:blank")
    driver.get(address)
    bar, tabs = wait(driver, ".tabs"), find(driver, ".tabs a")

    def visible(tab: Any) -> bool:
        inside: bool = driver.execute_script(
            "const [a, b] = [...arguments].map((element) => element.getBoundingClientRect());"
            "return a.left >= b.left - 1 && a.right <= b.right + 1", tab, bar
        )  # fmt: skip
        return inside

    heights = {bar.get_property(name) for name in ("scrollHeight", "clientHeight")}
    assert len(heights) == 1, "nothing to scroll upwards, so no spinner beside the tabs"
    assert not visible(tabs[-1])
    ActionChains(driver).scroll_from_origin(ScrollOrigin.from_element(bar), 0, 600).perform()
    assert visible(tabs[-1])
    driver.execute_script("arguments[0].focus()", tabs[0])
    driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert driver.switch_to.active_element == tabs[1]
    driver.switch_to.active_element.send_keys(Keys.END)
    assert driver.switch_to.active_element == tabs[-1]
    assert visible(tabs[-1])
    resize(driver, DESK)
    assert all(map(visible, tabs))


def test_names_stay_in_sight_on_a_phone(opened: Any) -> None:
    resize(opened, PHONE)
    opened.execute_script("document.getElementById('board').scrollLeft = 300")
    assert 0 <= left_of(opened, ".board tbody .entry") < 60
    go(opened, "#/t/0/c/first/second/third")
    wait(opened, "#shots")
    opened.execute_script("window.scrollTo(0, 900)")
    assert wait(opened, ".compared").text.split() == ["first", "second", "third"]
    script = "return document.querySelector('.compared').getBoundingClientRect().top"
    assert opened.execute_script(script) == 0
    opened.execute_script("document.querySelector('#side .box').scrollLeft = 400")
    assert 0 <= left_of(opened, "#side tbody tr td") < 150


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page of two methods with two seeds each and one with one."""
    runs = {m: [fakes_methods.facts(m, s) for s in (0, 1)] for m in ("seal", "normal")}
    runs |= {"swr": [fakes_methods.facts("swr")]}
    board = fakes_site.source(list(runs), backbones=runs, controls=["normal"])
    return write_page(tmp_path_factory.mktemp("seeded"), data.build_page_data(*board))


def test_seeds_expand_under_their_row(driver: Any, seeded: str) -> None:
    resize(driver, DESK)
    driver.get(f"{seeded}#/t/0")
    wait(driver, ".board")
    assert sorted(names(driver)) == ["normal", "seal", "swr"]
    assert len(find(driver, ".board tbody tr.single:has(.name)")) == 1
    assert not find(driver, ".seed")
    wait(driver, '[data-expand="seal"]').click()
    after = names(driver)
    assert after[after.index("seal") + 1 :][:2] == ["seal seed 0", "seal seed 1"]
    assert driver.switch_to.active_element.get_attribute("data-expand") == "seal"
    wait(driver, '[data-expand="seal"]').click()
    assert not find(driver, ".seed")
    go(driver, "#/t/0/e/seal")
    assert wait(driver, "#hashes .hash").text
    wait(driver, "#seeds a").click()
    commands = wait(driver, "#recompute pre").text
    assert "recompute seal --board" in commands
    assert "verify 'seal seed 0' --board" in commands
    go(driver, "#/m")
    wait(driver, '.methods [data-expand$="seal"]').click()
    assert len(find(driver, ".methods .seed")) == 2


def test_a_seed_of_a_row_is_compared_as_an_independent_sample(driver: Any, seeded: str) -> None:
    driver.get("about:blank")
    driver.get(f"{seeded}#/t/0/c/seal%20seed%200/swr")
    assert "columns are not paired here (a seed of a row" in wait(driver, ".pair .note").text
    assert "swr" in wait(driver, ".pair .verdict").text + wait(driver, ".pair h3").text
    assert driver.get_log("browser") == []


def test_a_phone_shows_gains_and_commands_without_scrolling(driver: Any, seeded: str) -> None:
    resize(driver, PHONE)
    driver.get("about:blank")
    driver.get(f"{seeded}#/m")
    right = "return arguments[0].getBoundingClientRect().right"
    gains = find(driver, ".methods tbody .gain:nth-of-type(3)") or find(driver, ".methods .gain")
    assert max(driver.execute_script(right, gain) for gain in gains[:1]) <= PHONE[0]
    names_of_rows = [head.text for head in find(driver, ".methods tbody th")]
    assert all("○" in text or "●" in text for text in names_of_rows)
    wait(driver, "#submit summary").click()
    for block in find(driver, "#submit pre"):
        assert block.get_property("scrollWidth") <= block.get_property("clientWidth")


def test_a_column_that_came_later_has_a_table_with_the_reason(driver: Any, tmp_path: Path) -> None:
    board = fakes_site.source(["a", "b"], shots=[1])
    more = fakes_site.source(["late"], shots=[5]).entries
    entries = [*board.entries, *more]
    made = data.build_page_data(board.file, entries, rank_tracks(board.file, entries))
    resize(driver, DESK)
    driver.get(f"{write_page(tmp_path, made)}#/t/1")
    assert "extra columns" in wait(driver, '.tabs a[aria-current="page"]').text
    assert names(driver) == ["late"]
    assert EXTRA in wait(driver, ".board .flags .reason").text
    assert not find(driver, ".board .badge")
