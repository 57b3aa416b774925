"""Names of devices, with and without a GPU."""

import pytest
import torch

from fsbench.core import process
from fsbench.core.errors import UsageError


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: request.param)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize(
    ("gpus", "name", "expected"),
    [
        (0, "auto", "cpu"),
        (0, "cpu", "cpu"),
        (2, "auto", "cuda:0"),
        (2, "cuda", "cuda:0"),
        (2, "cuda:1", "cuda:1"),
        (2, "cpu", "cpu"),
    ],
    indirect=["gpus"],
)
def test_resolve(name: str, expected: str) -> None:
    assert process.resolve_device(name) == expected


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize(
    ("gpus", "name"),
    [(0, "cuda"), (1, "cuda:1"), (0, "mps"), (1, "gpu"), (1, "")],
    indirect=["gpus"],
)
def test_devices_that_are_not_there(name: str) -> None:
    with pytest.raises(UsageError, match=f"device '{name}' is not available") as caught:
        process.resolve_device(name)
    assert "cpu" in caught.value.fix
