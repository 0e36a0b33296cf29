# SPDX-License-Identifier: Apache-2.0
"""Seeds and states of the devices' random number generators."""

from __future__ import annotations

import os

import torch

from torch_spyre import _C
from torch_spyre.device.devices import Device, _index, device_count, is_available


def manual_seed(seed: int) -> None:
    """Seed the current device."""
    _C.manual_seed(int(seed) & 0xFFFF_FFFF_FFFF_FFFF)


def manual_seed_all(seed: int) -> None:
    """Seed every device. Called by torch.manual_seed."""
    if is_available():
        _C.manual_seed_all(int(seed) & 0xFFFF_FFFF_FFFF_FFFF)


def seed() -> int:
    """Seed the current device nondeterministically; the seed."""
    value = int.from_bytes(os.urandom(8), "little")
    manual_seed(value)
    return value


def seed_all() -> int:
    """Seed every device with one nondeterministic number; the seed."""
    value = int.from_bytes(os.urandom(8), "little")
    manual_seed_all(value)
    return value


def initial_seed(device: Device = None) -> int:
    """Seed of a device's generator."""
    return _C.initial_seed(_index(device))


def _get_generator(device: Device = None) -> torch.Generator:
    """The default generator of a device, by the name under which PyTorch asks."""
    return _C._get_default_generator(_index(device))


def get_rng_state(device: Device = "spyre") -> torch.Tensor:
    """Random state: 16 bytes, seed then offset, as a CPU uint8 tensor."""
    return _C.get_rng_state(_index(device))


def set_rng_state(new_state: torch.Tensor, device: Device = "spyre") -> None:
    """Restore what get_rng_state() gave."""
    _C.set_rng_state(new_state, _index(device))


def get_rng_state_all() -> list[torch.Tensor]:
    """Random states of all devices."""
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state_all(new_states: list[torch.Tensor]) -> None:
    """Restore what get_rng_state_all() gave."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)
