"""Names of devices, with and without a GPU."""

import pytest
import torch
from support.cases import read_cases

from fsbench.core import process
from fsbench.core.errors import UsageError

CASES = read_cases("backbones")


@pytest.mark.parametrize(("gpus", "name", "expected"), CASES["devices"])
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
