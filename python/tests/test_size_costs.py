# SPDX-License-Identifier: Apache-2.0
"""What programs for many sizes move, and are predicted to take."""

import pytest
import torch
from inputs import values
from numerics import assert_like_oracle, compiled, oracle


def test_few_rows_of_a_long_sum():
    """Cores that have no rows of a product, and share the sum, load nothing."""
    f = compiled(torch.matmul, dynamic=None)
    w = values((2048, 128), torch.float16, 0, -0.1, 0.1)
    on_device = w.to("spyre")
    torch._dynamo.mark_static(on_device)

    def function(x):
        return x @ w.to(x.dtype)

    for size in (300, 9, 26, 65, 2, 512):
        x = values((size, 2048), torch.float16, size, -0.1, 0.1)
        placed = x.to("spyre")
        torch._dynamo.mark_dynamic(placed, 0)
        with torch.spyre.profiler.profile() as trace:
            actual = f(placed, on_device).cpu()
        assert_like_oracle(
            actual, function(x.double()), oracle(function, x), f"s = {size}"
        )
        read = sum(k.device_bytes_read for k in trace.kernels)
        if size <= 26:
            assert read < 1.5 * w.nbytes, size


@pytest.mark.parametrize("function", [torch.argmax, torch.sum], ids=["argmax", "sum"])
def test_few_rows_overlap(function):
    """Cores with few rows compute some of them while they load others."""

    def seconds(f, x):
        with torch.spyre.profiler.profile() as trace:
            y = f(x, -1).cpu()
        assert torch.equal(y, one_size(x, -1).cpu())
        return sum(k.predicted_seconds for k in trace.kernels)

    one_size = compiled(function, dynamic=False)
    many = torch.compile(function, backend="spyre", dynamic=True)
    for size in (512, 134, 70, 32):
        x = values((size, 1024), torch.float16, size, -1, 1).to("spyre")
        torch._dynamo.mark_static(x, 1)
        assert seconds(many, x) < 1.1 * seconds(one_size, x), size
