"""Methods that act at round starts leave the first round alone."""

from pathlib import Path

import pytest
from support.events import changed, finish_epoch, open_round, tensors, train_round
from support.pretrain import equal, lines, tiny, trainer


@pytest.mark.parametrize("name", ["welsr", "wels", "dsd", "fc", "rescale", "kels", "imp", "lw"])
def test_the_first_round_is_plain_training(name: str, tmp_path: Path) -> None:
    made, plain = trainer(tiny(name), tmp_path / name), trainer(tiny("normal"), tmp_path / "normal")
    before, after = open_round(made)
    assert changed(before, after) == set()
    finish_epoch(made)
    train_round(made)
    train_round(plain)
    assert equal(tensors(made), tensors(plain))
    assert lines(tmp_path / name, "rewrites.jsonl") == []
