"""Names of devices, with and without a GPU."""

import pytest
import torch

from fsbench.core import process
from fsbench.core.errors import UsageError


@pytest.mark.parametrize(
    ("gpus", "name", "expected"),
    [
        (0, "auto", "cpu"),
        (0, "cpu", "cpu"),
        (2, "auto", "cuda:0"),
        (2, "cuda", "cuda:0"),
        (2, "cuda:1", "cuda:1"),
        *((0, name, "") for name in ("cuda", "mps", "gpu", "")),
        (1, "cuda:1", ""),
    ],
)
def test_devices_by_name(
    gpus: int, name: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """expected: empty if there is no such device."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    if expected:
        assert process.resolve_device(name) == expected
        return
    with pytest.raises(UsageError, match=f"device '{name}' is not available") as caught:
        process.resolve_device(name)
    assert "cpu" in caught.value.fix
