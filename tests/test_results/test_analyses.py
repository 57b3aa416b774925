"""Records of analyses on disk, and their comparison in a table and a picture."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from support import fakes
from support.reading import read

from fsbench.api.analyze import analysis_table, label_views
from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.plotting import draw_views
from fsbench.core.schema import Analysis, Finding, Images, Measure, Question, View
from fsbench.results import store

IMAGES = Images(name="tiny", fingerprint="f", input_size=8)


def question(**changes: Any) -> Question:
    fields = {"what": "margins", "weights": "a" * 64, "images": IMAGES, "settings": {"k": 1}}
    return Question.model_validate(fields | changes)


def view(*values: float, **more: Any) -> View:
    at = tuple(range(1, len(values) + 1))
    return View(**{"title": "t", "x": "x", "y": "y", "at": at, "values": values} | more)


def analysis(name: str = "a", *views: View, **measures: float) -> Analysis:
    parts = [
        Measure(name=n, value=v, share=n == "share") for n, v in (measures or {"n": 1}).items()
    ]
    return Analysis(
        question=question(),
        backbone=fakes.facts(name),
        finding=Finding(measures=tuple(parts), views=views),
        provenance=fakes.provenance(),
    )


def test_a_record_lies_beside_the_models_results_and_is_none(tmp_path: Path) -> None:
    made = analysis()
    assert store.read_finding(tmp_path, made.backbone, made.question) is None
    path = store.write_finding(tmp_path, made)
    folder = tmp_path / "a" / made.backbone.weights_hash[:12]
    assert path == folder / "analyses" / f"margins-{made.question.digest()[:8]}.json"
    assert store.read_finding(tmp_path, made.backbone, made.question) == made
    assert sorted(path.parent.iterdir()) == [path], "nothing is left behind"
    path.rename(store.locate_finding(tmp_path, made.backbone, question(what="hessian")))
    with pytest.raises(ValidationFailed, match="answers another question"):
        store.read_finding(tmp_path, made.backbone, question(what="hessian"))
    with pytest.raises(UsageError, match="holds no results"):
        read(tmp_path)


def test_everything_that_decides_a_finding_is_in_its_name() -> None:
    others = [{"fingerprint": "g"}, {"input_size": 16}]
    changes: list[dict[str, Any]] = [{}, {"what": "hessian"}, {"weights": "b" * 64}]
    changes += [{"settings": {"k": 2}}, {"images": None}]
    changes += [{"images": IMAGES.model_copy(update=other)} for other in others]
    assert question().digest() == question().digest()
    assert len({question(**change).digest() for change in changes}) == 7


@pytest.mark.parametrize("fields", [{"low": (1.0,)}, {"at": (1.0,)}, {"values": (float("nan"), 1)}])
def test_views_have_columns_of_one_length_and_finite_numbers(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"several lengths|finite"):
        view(1.0, 2.0, **fields)


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
    ranges = {"low": (0.0, 1.0), "high": (2.0, 3.0), "places": ("p", "q")}
    first, bar = view(1.0, 2.0, **ranges, log_x=True), View.bar("size", 4.0)
    views = label_views([analysis("a", first, bar), analysis("b", view(3.0, 4.0), bar)])
    assert [v.label for v in views] == ["a", "a", "b", "b"]
    lines, bars = draw_views(views).figure.axes
    assert [list(line.get_ydata()) for line in lines.get_lines()] == [[1, 2], [3, 4]]
    assert (lines.get_xscale(), len(lines.collections)) == ("log", 1)
    assert "p" not in {text.get_text() for text in lines.get_xticklabels()}, "of the first alone"
    assert [text.get_text() for text in bars.get_xticklabels()] == ["a", "b"]
    assert [patch.get_height() for patch in bars.patches] == [4, 4]
    alike = label_views([analysis(n, view(1.0, 2.0, **ranges, y_scale="symlog")) for n in "ab"])
    (axes,) = draw_views(alike).figure.axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["p", "q"]
    assert (axes.get_yscale(), len(axes.collections)) == ("symlog", 2)
