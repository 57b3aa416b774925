"""Records of analyses on disk, and their comparison in a table and a picture."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from support import fakes
from support.reading import read

from fsbench.api.analyze import analysis_table, label_views
from fsbench.core.errors import UsageError
from fsbench.core.panels import draw_views
from fsbench.core.schema import Analysis, Finding, Images, Measure, Question, View
from fsbench.results import store

IMAGES = Images(name="tiny", fingerprint="f", input_size=8)


def question(**changes: Any) -> Question:
    fields = {"what": "margins", "weights": "a" * 64, "images": IMAGES, "settings": {"k": 1}}
    return Question.model_validate(fields | changes)


def view(*values: float, **more: Any) -> View:
    at = tuple(range(1, len(values) + 1))
    return View(title="t", x="x", y="y", at=at, values=values, **more)


def analysis(name: str = "a", *views: View, **measures: float) -> Analysis:
    return Analysis(
        question=question(),
        backbone=fakes.facts(name),
        finding=Finding(
            measures=tuple(
                Measure(name=n, value=v, share=n.startswith("share"))
                for n, v in (measures or {"n": 1}).items()
            ),
            views=views,
        ),
        provenance=fakes.provenance(),
    )


def test_a_record_lies_beside_the_models_results_and_is_read_back(tmp_path: Path) -> None:
    made = analysis()
    facts, question = made.backbone, made.question
    assert store.read_finding(tmp_path, facts, question) is None
    path = store.write_finding(tmp_path, made)
    digest = question.digest()[:8]
    folder = tmp_path / "a" / facts.weights_hash[:12]
    assert path == folder / "analyses" / f"margins-{digest}.json"
    assert store.read_finding(tmp_path, facts, question) == made
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name], "nothing is left behind"


@pytest.mark.parametrize(
    "changes",
    [
        {"what": "hessian"},
        {"weights": "b" * 64},
        {"images": None},
        {"images": Images(name="tiny", fingerprint="g", input_size=8)},
        {"images": Images(name="tiny", fingerprint="f", input_size=16)},
        {"settings": {"k": 2}},
    ],
)
def test_everything_that_decides_a_finding_is_in_its_name(changes: dict[str, Any]) -> None:
    assert question().digest() == question().digest()
    assert question(**changes).digest() != question().digest()


def test_records_of_analyses_are_no_results(tmp_path: Path) -> None:
    store.write_finding(tmp_path, analysis())
    with pytest.raises(UsageError, match="holds no results"):
        read(tmp_path)
    result = fakes.write(tmp_path)
    assert read(tmp_path) == [result]


def test_views_have_columns_of_one_length_and_finite_numbers() -> None:
    with pytest.raises(ValidationError, match="several lengths"):
        view(1.0, 2.0, low=(1.0,))
    with pytest.raises(ValidationError, match="several lengths"):
        View(title="t", x="x", y="y", at=(1.0, 2.0), values=(1.0,))
    with pytest.raises(ValidationError):
        view(float("nan"))


def test_the_table_has_a_column_a_model_and_says_what_is_absent() -> None:
    analyses = [analysis("a", n=1200, share=0.25, x=0.123456), analysis("b", n=7)]
    header, rows = analysis_table(analyses)
    assert header == ["analysis", "number", "a", "b"]
    assert rows == [
        ["margins", "n", "1,200", "7"],
        ["margins", "share", "25.00 %", "-"],
        ["margins", "x", "0.1235", "-"],
    ]


def test_views_of_one_title_share_a_panel() -> None:
    first = view(1.0, 2.0, low=(0.0, 1.0), high=(2.0, 3.0), places=("p", "q"), log_x=True)
    bar = View.bar("size", 4.0)
    views = label_views([analysis("a", first, bar), analysis("b", view(3.0, 4.0), bar)])
    assert [v.label for v in views] == ["a", "a", "b", "b"]
    lines, bars = draw_views(views).figure.axes
    assert [list(line.get_ydata()) for line in lines.get_lines()] == [[1, 2], [3, 4]]
    assert lines.get_xscale() == "log"
    assert "p" not in {text.get_text() for text in lines.get_xticklabels()}, "of the first alone"
    assert [text.get_text() for text in bars.get_xticklabels()] == ["a", "b"]


def test_panels_with_bars_ranges_and_names_are_drawn() -> None:
    first = view(1.0, 2.0, low=(0.0, 1.0), high=(2.0, 3.0), places=("p", "q"), y_scale="symlog")
    analyses = [analysis("a", first, View.bar("size", 4.0)), analysis("b", first)]
    left, right = draw_views(label_views(analyses)).figure.axes
    assert len(left.collections) == 2, "a range a model"
    assert [text.get_text() for text in left.get_xticklabels()] == ["p", "q"]
    assert left.get_yscale() == "symlog"
    assert [patch.get_height() for patch in right.patches] == [4]
