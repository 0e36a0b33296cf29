# SPDX-License-Identifier: Apache-2.0
"""Calls of a compiled function after the first, whose inputs lie otherwise."""

from __future__ import annotations

import pytest
import torch
import torch_spyre
from torch_spyre import _C


def update(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return y * 2 - x


def both(function, *arguments: torch.Tensor) -> None:
    """Runs it on the device and on copies on the host, and compares arguments, too."""
    made: dict[int, torch.Tensor] = {}

    def on_host(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        home = made.setdefault(
            storage._cdata, tensor.as_strided((storage.nbytes() // 2,), (1,), 0).cpu()
        )
        return home.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    copies = [on_host(a) for a in arguments]
    torch.testing.assert_close(function(*arguments).cpu(), update(*copies))
    for argument, copy in zip(arguments, copies, strict=True):
        torch.testing.assert_close(argument.cpu(), copy)


def numbers(*sizes: int) -> torch.Tensor:
    return (torch.arange(torch.Size(sizes).numel()) % 50).half().reshape(sizes)


@pytest.fixture
def compiled():
    torch._dynamo.reset()
    with torch.no_grad():
        yield torch.compile(update, backend="spyre", dynamic=False)


@pytest.mark.parametrize("size", [1, 63, 65, 200])
def test_inputs_of_one_storage_and_of_two(compiled, size):
    x, y = numbers(size, size).to("spyre"), numbers(size, size).to("spyre")
    for pair in ((x, y), (x, y), (x, x), (x, x), (x, y), (y, x), (y, y)):
        both(compiled, *pair)


def test_inputs_elsewhere_in_their_storages(compiled):
    x, y = numbers(6, 65, 64).to("spyre"), numbers(65, 64).to("spyre")
    for row in (0, 0, 1, 5, 2, 0):
        both(compiled, x[row], y)
    # Where they overlap, a program has no way to know it.
    z = numbers(4 * 65, 64).to("spyre")
    for start in (0, 65, 130, 0):
        both(compiled, z[start : start + 65], y)


def test_inputs_that_are_stored_otherwise(compiled):
    other = _C.SpyreTensorLayout([64, 192], [192, 1], torch.float16, [1, 0])
    y = numbers(64, 192).to("spyre")
    for round_ in range(6):
        x = numbers(64, 192).to("spyre")
        both(compiled, _C.to_with_layout(x, other) if round_ % 3 == 2 else x, y)


def test_a_result_that_is_an_input():
    torch._dynamo.reset()
    with torch.no_grad():
        compiled = torch.compile(lambda x: x.add_(1), backend="spyre", dynamic=False)
        for _ in range(3):
            x = numbers(3, 65).to("spyre")
            assert compiled(x).data_ptr() == x.data_ptr()
            torch.testing.assert_close(x.cpu(), numbers(3, 65) + 1)


def test_names_after_the_first_calls(compiled):
    x, y = numbers(64, 64).to("spyre"), numbers(64, 64).to("spyre")
    both(compiled, x, y)
    both(compiled, x, y)
    before = len(torch_spyre.frontend.parts.compiled_parts())
    torch_spyre.name_tensor_dims(y, ["M", "N"])
    both(compiled, x, y)
    # Names are for hints: they make another program.
    assert len(torch_spyre.frontend.parts.compiled_parts()) == before + 1
