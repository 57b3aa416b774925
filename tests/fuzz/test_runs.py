"""Run folders of others: a record with any field changed asks for no more than its weights."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from fuzz.cases import SIZES, Tally, nest
from hypothesis import strategies as st
from safetensors.torch import save_file
from support.pretrain import RUN_RECORD

from fsbench.backbones import load_backbone
from fsbench.backbones.networks import load_architecture
from fsbench.core.errors import FsbenchError

NUMBERS = st.one_of(
    st.integers(-3, 40), st.sampled_from([10**4, 10**9, 2**63, 10**30]), st.floats()
)
REFS = ["timm/resnet18", "fsbench/vgg16", "../x", "os", "timm/hf-hub:a/b", "py:os:getcwd"]
LEAVES = st.one_of(NUMBERS, st.none(), st.booleans(), st.text(max_size=5), st.sampled_from(REFS))
VALUES = nest(LEAVES, st.sampled_from(["", "layer1", "bn1", "x.y", "conv1"]))


@pytest.mark.filterwarnings("ignore")
@SIZES
def test_changed_records(size: int, tmp_path: Path, tally: Tally) -> None:
    """What is taken has the weights of the file."""
    torch.manual_seed(1)
    state = load_architecture("toy_resnet").build(5, 4).state_dict()
    save_file(state, tmp_path / "model.safetensors")
    path, ref = tmp_path / "run.json", f"run:{tmp_path}"
    path.write_text(json.dumps(RUN_RECORD))
    first = load_backbone(ref).facts

    def check(fields: dict[str, Any], cut: int) -> None:
        text = json.dumps({**RUN_RECORD, **fields})
        path.write_text(text[: cut % len(text)] if cut % 7 == 6 else text)
        outcome = tally.attempt(lambda: load_backbone(ref).facts, FsbenchError)
        if outcome is not None and outcome.architecture == first.architecture:
            assert outcome.weights_hash == first.weights_hash or outcome.n_affine != first.n_affine

    fields = st.dictionaries(
        st.sampled_from([*RUN_RECORD, "extra", "recipe_fields"]), VALUES, max_size=2
    )
    tally.explore(size, check, fields, st.integers(0, 1000))
