"""A linear probe is ranked at the rate chosen on held-out images."""

from pathlib import Path

import numpy as np
from support import fakes
from support.fakes import DECLARATION

from fsbench.api.submit import submit
from fsbench.core.records import ProbeRecords
from fsbench.core.specs import ImageSpec, ProbeSpec
from leaderboard.render.frame import make_frame
from leaderboard.render.terminal import make_score_table
from leaderboard.tables import rank_board


def test_the_held_out_rule_ranks(tmp_path: Path) -> None:
    """By the best rate on test a leads with .9 to .8; by the held-out one b does with .8 to .6."""
    spec = ProbeSpec(image=ImageSpec(input_size=224), held_out=0.1)
    for name, accuracies in (("a", (90, 60, 20)), ("b", (80, 80, 20))):
        right = np.arange(100) < np.array(accuracies)[:, None]
        curve = np.repeat(right.mean(axis=1)[:, None], spec.epochs, axis=1)
        held_out = np.array([0.5, 0.7, 0.1])
        records = ProbeRecords(np.array(spec.lrs), curve, right, right, held_out)
        fakes.store(tmp_path / name, spec, records, name=name, data=fakes.official("dogs"))
        declared = DECLARATION.model_copy(update={"name": name})
        submit(tmp_path / name, tmp_path / "board", declared)
    (table,) = rank_board(tmp_path / "board")
    assert [(e.name, e.overall) for e in table.ranking.entries] == [("b", 0.8), ("a", 0.6)]
    shown = make_score_table(make_frame(table))
    assert any(text.startswith("60.00 ± ") for text in shown.rows[1])
    assert "held-out training images" in shown.note
