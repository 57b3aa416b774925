"""Devices for tensors: cpu, cuda, cuda:N or mps, checked before work starts."""

from __future__ import annotations

from fsbench.core.errors import UsageError


def resolve_device(name: str) -> str:
    """Return the device called `name`; `auto` is the first GPU, else the CPU.

    `auto` never chooses mps, whose kernels give other numbers. Raises UsageError for a device that
    this machine lacks.
    """
    devices = available_devices()
    if name == "auto":
        return "cuda:0" if "cuda:0" in devices else "cpu"
    chosen = "cuda:0" if name == "cuda" else name
    if chosen not in devices:
        raise UsageError(
            f"device '{name}' is not available",
            fix=f"use --device auto, or one of: {', '.join(devices)}",
        )
    return chosen


def available_devices() -> tuple[str, ...]:
    """Return the devices that torch can use, the CPU first."""
    import torch

    gpus = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    mps = ["mps"] if torch.backends.mps.is_available() else []
    return ("cpu", *gpus, *mps)


def device_model(device: str) -> str:
    """Return the GPU model, else the device type: the part that bit-identical results need."""
    import torch

    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device
