"""Where tensors live: cpu, cuda, cuda:N or mps, settled before work starts."""

from __future__ import annotations

from fsbench.core.errors import UsageError


def resolve_device(name: str) -> str:
    """The device called `name`; `auto` is the first GPU, else the CPU.

    mps is never chosen by `auto`, because its numbers follow other kernels. Raises UsageError for a
    device that this machine lacks.
    """
    devices = available_devices()
    if name == "auto":
        return "cuda:0" if "cuda:0" in devices else "cpu"
    chosen = "cuda:0" if name == "cuda" else name
    if chosen not in devices:
        raise UsageError(
            f"there is no device '{name}' here",
            fix=f"--device auto, or one of: {', '.join(devices)}",
        )
    return chosen


def available_devices() -> tuple[str, ...]:
    """The devices that torch can use here, the CPU first."""
    import torch

    gpus = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    mps = ["mps"] if torch.backends.mps.is_available() else []
    return ("cpu", *gpus, *mps)


def device_model(device: str) -> str:
    """What equal bits depend on: the GPU model, else the device type."""
    import torch

    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device
