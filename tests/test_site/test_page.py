"""The page as text: one file that asks for nothing and runs nothing but its own script."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from support import methods as fakes_methods
from support import site as fakes_site
from support.pages import Elements

from fsbench.core.schema import DatasetRecord, Result
from leaderboard.badges import BadgeVerdict
from leaderboard.methods import build_from_table
from leaderboard.official import find_official_board
from leaderboard.render.frame import FLAGS
from leaderboard.render.json import build_columns_json
from leaderboard.render.notes import to_percent
from leaderboard.site import data, page
from leaderboard.tables import rank_tracks
from leaderboard.trust import Verification

HOSTILE = '</script><script>window.hit=1</script><img src=x onerror="window.hit=1">'
HOME = Path(page.__file__).parent
PASTED = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(")


def render(*names: str) -> str:
    return page.render_page(data.build_page_data(*fakes_site.source(names)))


@pytest.fixture(scope="module")
def text() -> str:
    return render("a", "b", HOSTILE)


def test_one_file_asks_for_nothing_and_its_policy_names_exactly_its_script_and_style(
    text: str,
) -> None:
    elements = Elements(text).all
    (policy,) = (e.attributes["content"] for e in elements if e.attributes.get("http-equiv"))
    assert policy.startswith("default-src 'none';")
    digests = [
        base64.b64encode(hashlib.sha256(element.text.encode()).digest()).decode()
        for tag in ("script", "style")
        for element in elements
        if element.tag == tag and "id" not in element.attributes
    ]
    assert re.findall(r"'sha256-(.+?)'", policy) == digests
    assert "unsafe" not in policy
    assert [element.tag for element in elements].count("script") == 2


def test_equal_boards_give_equal_pages_whose_data_come_back_whole(text: str) -> None:
    assert render("a", "b", HOSTILE) == text
    (content,) = (
        json.loads(e.text) for e in Elements(text).all if e.attributes.get("id") == "data"
    )
    made = data.build_page_data(*fakes_site.source(["a", "b", HOSTILE]))
    assert HOSTILE in content["facts"]
    assert content == json.loads(json.dumps(made))
    assert "every number is recomputed from stored outcomes" in text
    assert "board.json" not in made["about"]


def test_assets_are_all_shown_and_never_paste_text_as_markup() -> None:
    assert sorted(page.CSS) == sorted(path.stem for path in (HOME / "css").iterdir())
    for path in [*(HOME / "js").iterdir(), *(HOME / "css").iterdir(), HOME / "page.html.j2"]:
        content = path.read_text(encoding="utf8")
        assert content.count("\n") <= 300, path
        assert not PASTED.search(content), path


def test_a_board_without_entries_has_a_page() -> None:
    text = render()
    assert "0 entries" in " ".join(text.split())
    assert "fsbench submit results --init" in text


def test_an_official_board_says_what_it_measures_before_any_entry() -> None:
    file = find_official_board("cdfsl")
    made = data.build_page_data(file, [], rank_tracks(file, []))
    assert made["about"] == file.about
    assert made["edition"] == f"version {file.version} of {file.date}"
    assert made["datasets"] == ["chestx", "cropdisease", "eurosat", "isic"]
    assert made["tracks"][0]["finding"] == ""
    assert made["tracks"][0]["data"] == (
        "Frozen features of ChestX (25,848 images), CropDisease (43,456 images), EuroSAT "
        "(27,000 images), ISIC (10,015 images)."
    )


def test_a_finding_says_who_gains_and_names_no_entry_that_its_table_lacks() -> None:
    """Two networks share a table of the board, and have pages of methods of their own."""
    other = {"architecture": "fsbench/other@8"}
    runs = {"best": fakes_methods.facts("normal")}
    runs |= {
        name: fakes_methods.facts(method).model_copy(update=other)
        for name, method in (("second", "normal"), ("third", "seal"))
    }
    board = fakes_site.source(list(runs), backbones=runs, controls=["best", "second"])
    made = data.build_page_data(*board)
    assert any(name in made["tracks"][0]["finding"] for name in runs)
    findings = {methods["finding"] for methods in made["methods"]}
    assert findings == {
        "",
        "Significantly above plain training of equal compute: none; below: none. 0 of 1 entries "
        "have the several seeds that this needs.",
    }
    assert made["tracks"][0]["finding"].endswith(f". {max(findings)}")
    for methods in made["methods"]:
        others = set(runs) - {row["name"] for row in methods["rows"]}
        assert others
        assert not [name for name in others if name in methods["finding"]]


def test_a_subset_and_a_lone_entry_are_said_in_words() -> None:
    file, entries, _ = fakes_site.source(["a"])
    (table,) = rank_tracks(file, entries)
    overall = to_percent(table.ranking.tiers[0][0].overall or 0)
    finding = data.describe_finding(table, build_from_table(table))
    assert finding == f"a ({overall} %) is the only ranked entry: it is compared with nothing."
    results = {
        column: (result.model_copy(update={"dataset": subset(result)}),)
        for column, (result,) in table.rows["a"].results.items()
    }
    row = replace(table.rows["a"], results=results)
    text = data.describe_images(build_columns_json(replace(table, rows={"a": row})))
    assert "EuroSAT (20 of 27,000 images, a subset), ISIC (14 of 10,015 images, a sub" in text


def test_flags_are_explained_where_they_occur_and_no_sentence_names_an_option() -> None:
    file, entries, (table,) = fakes_site.source(["a", "b"])
    assert data.build_page_data(file, entries, [table])["flags"] == {}
    flags = {"a": ("subset", "saw isic"), "b": ("derived",)}
    column = table.ranking.columns[0]
    rows = {
        name: replace(row, column_flags={**row.column_flags, column: flags[name]})
        for name, row in table.rows.items()
    }
    made = data.build_page_data(file, entries, [replace(table, rows=rows)])
    assert made["flags"] == {name: FLAGS[name] for name in ("subset", "derived")}
    del made["facts"]  # commands as their submitters gave them
    assert not re.search(r"[\s\"]--[a-z]", json.dumps(made))


def test_numbers_are_marked_by_what_their_signed_badge_decides() -> None:
    """One column of each verdict but `tolerant`, which counts as verified."""
    file, (entry,), _ = fakes_site.source(["a"])
    verdicts: tuple[BadgeVerdict, ...] = ("verified", "undecided", "failed", "tolerant")
    keys = [(c.result.backbone.identity, str(c.result.column)) for c in entry.loaded]
    said = Verification(4, dict(zip(keys, verdicts, strict=True)), "2026-01-02")
    entry = replace(entry, verification=said)
    made = data.build_page_data(file, [entry], rank_tracks(file, [entry]))
    (track,) = made["tracks"]
    (row,) = track["entries"]
    columns = [column["name"] for column in track["columns"]]
    flagged = {flag: [columns[i] for i in at] for flag, at in row["column_flags"].items()}
    assert flagged == {"self-reported": [keys[1][1]], "failed verification": [keys[2][1]]}
    assert str(said) in row["flags"]
    assert made["facts"]["a"]["badge"] == {"verdict": "failed", "words": str(said)}


def subset(result: Result) -> DatasetRecord:
    dataset = result.dataset
    counts = (2,) * len(dataset.class_counts)
    return dataset.model_copy(update={"class_counts": counts, "flags": ("subset",)})
