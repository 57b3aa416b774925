"""Features and heads are true float32, whatever precision the host program has chosen."""

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fsbench.backbones.kernels import exact_float32

BACKENDS = torch.backends
OPERATIONS: dict[str, Any] = {
    "cuda.matmul": BACKENDS.cuda.matmul,
    "cudnn.conv": BACKENDS.cudnn.conv,
    "cudnn.rnn": BACKENDS.cudnn.rnn,
    "mkldnn.matmul": BACKENDS.mkldnn.matmul,
    "mkldnn.conv": BACKENDS.mkldnn.conv,
    "mkldnn.rnn": BACKENDS.mkldnn.rnn,
}
HOSTS = (
    "pass",
    "torch.set_float32_matmul_precision('medium')",
    "torch.backends.cuda.matmul.allow_tf32 = True",
    "torch.backends.cuda.matmul.fp32_precision = 'ieee'",
    "torch.backends.mkldnn.fp32_precision = 'bf16'",
    "torch.backends.cudnn.fp32_precision = 'tf32'",
    "torch.backends.fp32_precision = 'ieee'",
    "torch.backends.fp32_precision = 'tf32'",
)
PROGRAM = """
for host in hosts:
    exec(host)
    before = state()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (result,) = fsbench.evaluate(
            "fsbench/toy_resnet", "toy_tiles:2w1s", random_init=0, episodes=20, threads=1,
            progress=False, cache=f"{sys.argv[1]}/{hosts.index(host)}",
        )
    means = [result.score.mean, result.dense.mean]
    print(json.dumps([before == state(), str(means), result.provenance.precision]))
"""


def state() -> list[Any]:
    """Everything that a program can read of its own choice."""
    parts = ("cuda.matmul", "cudnn.conv", "cudnn.rnn", "mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn")
    names = [f"{name}.fp32_precision" for name in (*parts, "cudnn", "mkldnn")]
    names += ["fp32_precision", "cuda.matmul.allow_tf32", "cudnn.allow_tf32"]
    values: list[Any] = [torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic]
    for name in names:
        try:
            values.append(eval(f"torch.backends.{name}", {"torch": torch}))
        except RuntimeError:  # the old switches beside the new ones
            values.append("an error")
    return values


def test_the_choice_of_the_host_program_neither_acts_nor_changes(tmp_path: Path) -> None:
    start = "import json, sys\nfrom typing import Any\nimport torch\nimport fsbench\n"
    source = f"{start}hosts = {HOSTS}\n{inspect.getsource(state)}{PROGRAM}"
    program = [sys.executable, "-c", source, str(tmp_path)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(results) == len(HOSTS)
    assert all(unchanged for unchanged, _, _ in results)
    assert len({digest for _, digest, _ in results}) == 1
    assert {precision for _, _, precision in results} == {"ieee"}


@pytest.mark.parametrize("value", ["none", "ieee", "tf32"])
def test_every_operation_is_exact_inside_and_follows_its_backend_afterwards(value: str) -> None:
    before = BACKENDS.fp32_precision
    try:
        BACKENDS.fp32_precision = value
        with exact_float32():
            assert {operation.fp32_precision for operation in OPERATIONS.values()} == {"ieee"}
            assert BACKENDS.cudnn.deterministic
        BACKENDS.fp32_precision = "tf32"
        if value != "none":
            assert {operation.fp32_precision for operation in OPERATIONS.values()} == {"tf32"}
    finally:
        BACKENDS.fp32_precision = before
        for operation in OPERATIONS.values():
            operation.fp32_precision = "none"
        BACKENDS.cudnn.conv.fp32_precision = "tf32"  # as a fresh process has it


def test_products_inside_are_those_of_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    a = torch.randn(256, 256, generator=torch.Generator().manual_seed(0))
    exact = (a.double() @ a.double()).float().numpy()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = (a @ a).float().numpy()
        with exact_float32():
            inside = (a @ a).numpy()
    assert np.abs(rough - exact).max() > 1e-2 > 1e-3 > np.abs(inside - exact).max()
