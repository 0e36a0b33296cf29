# SPDX-License-Identifier: Apache-2.0
"""Graphs that go on with numbers, and with as many elements, as values say."""

import pytest
import torch
import torch_spyre
from numerics import compiled
from torch_spyre.compile_backend import compiled_parts

pytestmark = pytest.mark.usefixtures("no_fallback")


@pytest.fixture(autouse=True)
def capture():
    with torch._dynamo.config.patch(
        capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True
    ):
        yield


def integer(x):
    count = x[0].item()
    torch._check(count >= 0)
    torch._check(count < 100)
    return torch.arange(count, device=x.device) * count


def several(x):
    sizes = x[:3].tolist()
    for size in sizes:
        torch._check(size >= 0)
    parts = torch.arange(7, device=x.device).split(sizes)
    return torch.stack([part.sum() for part in parts])


def store(x):
    places = (x > 2).nonzero(as_tuple=True)[0]
    x[places] = 9
    return places, x.add_(places.numel())


def unique(x):
    values, inverse = torch.unique(x, return_inverse=True)
    return values * 2, inverse + 1


@pytest.mark.parametrize("function", [integer, several, store, unique])
def test_captured(function):
    f = compiled(function, fullgraph=True)
    for values in ([4, 1, 2, 3], [2, 5, 0, 1], [4, 1, 2, 3]):
        host = torch.tensor(values)
        given = host.to("spyre")
        actual, wanted = f(given), function(host)
        for a, e in zip(
            torch.utils._pytree.tree_leaves(actual),
            torch.utils._pytree.tree_leaves(wanted),
            strict=True,
        ):
            assert torch.equal(a.cpu(), e)
        assert torch.equal(given.cpu(), host)


def test_captured_floats_and_gradients():
    def function(x, weight):
        chosen = x[x > 0]
        total = (chosen * 2).sum() * weight
        return total * (x > 0).sum().item() + chosen.mean() * x.amax().item()

    def run(f, x, weight):
        inputs = [t.detach().requires_grad_() for t in (x, weight)]
        result = f(*inputs)
        return result.detach(), *torch.autograd.grad(result.sum(), inputs)

    f = compiled(function, fullgraph=True)
    weight = torch.tensor([0.5, -2.0, 3.0])
    for seed in range(2):
        x = torch.randn(50, generator=torch.Generator().manual_seed(seed))
        actual = run(f, x.to("spyre"), weight.to("spyre"))
        for a, e in zip(actual, run(function, x, weight), strict=True):
            torch.testing.assert_close(a.cpu(), e, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_floats_that_are_used_and_returned(requires_grad):
    """Dynamo computes with them twice, on the host and in float64 on the device."""

    def function(x, factor):
        number = x.sum().item() * factor
        return x * number, number, number + 1

    f = compiled(function, fullgraph=True, dynamic=None)
    for factor in (1.5, 2.5, 3.5):
        x = torch.tensor([3.0, -1.0, 0.25]).requires_grad_(requires_grad)
        given = x.detach().to("spyre").requires_grad_(requires_grad)
        (found, *numbers), (wanted, *expected) = f(given, factor), function(x, factor)
        assert torch.equal(found.cpu(), wanted) and numbers == expected
        if requires_grad:
            found.sum().backward()
            wanted.sum().backward()
            assert torch.equal(given.grad.cpu(), x.grad)


def test_whole_numbers_are_arguments():
    """Programs serve all values of numbers that only meet tensors."""

    def function(x, counts, given):
        number = given.sum().item()
        return x * number + 1, counts * number, x / (number + 2), number

    f = compiled(function, fullgraph=True)
    x, counts = torch.randn(8), torch.arange(5)
    parts = []
    for value in (3, 5, -4):
        given = torch.full((3,), value)
        actual = f(x.to("spyre"), counts.to("spyre"), given.to("spyre"))
        for a, e in zip(actual, function(x, counts, given), strict=True):
            torch.testing.assert_close(
                a.cpu() if isinstance(a, torch.Tensor) else a, e, rtol=1e-6, atol=0
            )
        parts.append(len(compiled_parts()))
    assert parts[0] == parts[2]


def rows_doubled(x, mask):
    return (x[mask] * 2).sum(0)


def rows_stored(x, mask):
    rows = x[mask] @ x[:8]
    return torch.zeros_like(x).index_put((mask.nonzero().squeeze(1),), rows)


def rows_replaced(x, mask):
    y = x * 1
    y[mask] = y[mask] * 2
    y[mask] += 1
    return y


def rows_filled(x, mask):
    y = x * 1
    y[mask] = 3
    y[:, 2:][mask] = x[0, 2:]
    return y.index_put((mask,), x[0], accumulate=True)


def rows_of_batches(x, mask):
    y, mask = x.view(3, 50, 8) * 1, mask.view(3, 50)
    y[mask] = y[mask].softmax(-1)
    return y


def elements(x, mask):
    y = x[:, 0] * 1
    y[mask] = x[:, 1][mask] * 2 + y[mask]
    return y


def columns_replaced(x, mask):
    y = x.t() * 1
    y[:, mask] = y[:, mask] + x[:8, 0][:, None]
    return y


def first_rows(x, mask):
    count = mask.sum().item()
    torch._check(count >= 0)
    torch._check(count <= x.shape[0])
    return x[:count].softmax(0), torch.arange(count, device=x.device) + 1


def attention(x, mask):
    rows = x[mask][None]
    return torch.nn.functional.scaled_dot_product_attention(rows, rows, rows)


@pytest.mark.parametrize(
    "function",
    [
        rows_doubled,
        rows_stored,
        rows_replaced,
        rows_filled,
        rows_of_batches,
        elements,
        columns_replaced,
        first_rows,
        attention,
    ],
)
def test_sizes_that_values_say_share_programs(function):
    f = compiled(function, fullgraph=True)
    x = torch.randn(150, 8, generator=torch.Generator().manual_seed(0))
    parts = []
    # The first calls are for the first size, no rows, one row, and many sizes.
    for count in (64, 0, 1, 2, 5, 63, 65, 128, 97, 33, 3):
        mask = torch.zeros(150, dtype=torch.bool)
        mask[:: 150 // count if count else 150][:count] = count > 0
        mask = mask[torch.randperm(150, generator=torch.Generator().manual_seed(count))]
        assert mask.sum() == count
        actual = f(x.to("spyre"), mask.to("spyre"))
        for a, e in zip(
            torch.utils._pytree.tree_leaves(actual),
            torch.utils._pytree.tree_leaves(function(x, mask)),
            strict=True,
        ):
            torch.testing.assert_close(a.cpu(), e, rtol=1e-5, atol=1e-5)
        parts.append(len(compiled_parts()))
    assert parts[5] == parts[-1]


def test_rows_for_a_mask():
    """Graphs that get the values, as many as the mask selects, share programs, too."""

    def function(x, mask, rows):
        y = x * 2
        y[mask] = rows + 1
        return y

    f = compiled(function, dynamic=True)
    x = torch.arange(150 * 8.0).view(150, 8)
    parts = []
    for count in (64, 2, 5, 128, 97, 3):
        mask = torch.zeros(150, dtype=torch.bool)
        mask[
            torch.randperm(150, generator=torch.Generator().manual_seed(1))[:count]
        ] = 1
        rows = torch.randn(count, 8, generator=torch.Generator().manual_seed(2))
        actual = f(x.to("spyre"), mask.to("spyre"), rows.to("spyre"))
        assert torch.equal(actual.cpu(), function(x, mask, rows))
        parts.append(len(compiled_parts()))
    assert parts[2] == parts[-1]
    with pytest.raises((IndexError, RuntimeError), match="shape"):
        f(x.to("spyre"), mask.to("spyre"), rows[:2].to("spyre")).cpu()
    # The CPU says so.
    torch_spyre.reset_fallback_report()


def test_marked_unbacked():
    f = compiled(lambda x: torch.relu(x * 2 + 1), fullgraph=True)
    parts = []
    for size in (5, 7, 1, 64, 65, 100, 3):
        x = torch.randn(size, 8)
        given = x.to("spyre")
        torch._dynamo.decorators.mark_unbacked(given, 0)
        torch.testing.assert_close(f(given).cpu(), torch.relu(x * 2 + 1))
        parts.append(len(compiled_parts()))
    assert parts[2] == parts[-1]
