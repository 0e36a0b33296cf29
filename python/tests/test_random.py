# SPDX-License-Identifier: Apache-2.0
"""Random numbers: Philox4x32-10 by element, the same eager and compiled."""

import struct

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import torch_spyre

pytestmark = pytest.mark.usefixtures("no_fallback")


def philox(counter, key):
    """Four 32-bit numbers; written from the paper, without the project's code."""
    c = [counter & 0xFFFFFFFF, counter >> 32, 0, 0]
    k = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        low, high = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [
            (high >> 32) ^ c[1] ^ k[0],
            high & 0xFFFFFFFF,
            (low >> 32) ^ c[3] ^ k[1],
            low & 0xFFFFFFFF,
        ]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def numbers(seed, offset, count):
    return [philox(offset + i // 4, seed)[i % 4] for i in range(count)]


def state():
    return struct.unpack("<QQ", torch.spyre.get_rng_state().numpy().tobytes())


@pytest.mark.parametrize("count", [1, 4, 63, 65])
def test_uniform_is_philox_by_element(count):
    torch.spyre.manual_seed(2**40 + 17)
    torch.rand(9, device="spyre")
    assert state() == (2**40 + 17, 3)
    x = torch.rand(count, device="spyre")
    expected = [(n >> 8) * 2.0**-24 for n in numbers(2**40 + 17, 3, count)]
    assert x.cpu().tolist() == expected
    assert state() == (2**40 + 17, 3 + -(-count // 4))


def test_integers_and_bernoulli():
    torch.spyre.manual_seed(5)
    x = torch.randint(-3, 8, (7, 9), device="spyre")
    assert x.cpu().flatten().tolist() == [-3 + n % 11 for n in numbers(5, 0, 63)]
    torch.spyre.manual_seed(5)
    y = torch.empty(7, 9, dtype=torch.float16, device="spyre").bernoulli_(0.3)
    expected = [float(n * 2.0**-32 < 0.3) for n in numbers(5, 0, 63)]
    assert y.cpu().flatten().tolist() == expected
    torch.spyre.manual_seed(5)
    p = torch.full((7, 9), 0.3).to("spyre")
    assert torch.bernoulli(p).cpu().flatten().tolist() == [
        float(n * 2.0**-32 < np.float32(0.3)) for n in numbers(5, 0, 63)
    ]


def test_normal():
    torch.spyre.manual_seed(11)
    x = torch.randn(6, device="spyre").cpu().double().numpy()
    n = numbers(11, 0, 8)
    expected = []
    for a, b in zip(n[::2], n[1::2], strict=True):
        radius = np.sqrt(-2 * np.log(((a >> 8) + 1) * 2.0**-24))
        angle = 2 * np.pi * (b >> 8) * 2.0**-24
        expected += [radius * np.cos(angle), radius * np.sin(angle)]
    np.testing.assert_allclose(x, expected[:6], rtol=2**-22)


def test_order_is_logical_whatever_the_strides():
    def draw(x):
        torch.spyre.manual_seed(3)
        return x.normal_().cpu()

    plain = draw(torch.empty(5, 70, device="spyre"))
    assert torch.equal(plain, draw(torch.empty(70, 5, device="spyre").t()))
    base = torch.zeros(5, 140, device="spyre")
    assert torch.equal(plain, draw(base[:, ::2]))
    assert not base[:, 1::2].cpu().any()


def test_generators_and_state():
    generator = torch.Generator("spyre").manual_seed(9)
    torch.spyre.manual_seed(1)
    before = torch.spyre.get_rng_state()
    assert before.numel() == 16
    a = torch.rand(5, generator=generator, device="spyre")
    assert torch.equal(torch.spyre.get_rng_state(), before)
    torch.spyre.manual_seed(9)
    assert torch.equal(torch.rand(5, device="spyre").cpu(), a.cpu())
    saved = torch.spyre.get_rng_state()
    b = torch.rand(5, device="spyre")
    torch.spyre.set_rng_state(saved)
    assert torch.equal(torch.rand(5, device="spyre").cpu(), b.cpu())
    assert not torch.equal(a.cpu(), b.cpu())
    torch.manual_seed(9)
    assert torch.equal(torch.rand(5, device="spyre").cpu(), a.cpu())
    with pytest.raises(RuntimeError, match="generator"):
        torch.empty(3, device="spyre").uniform_(generator=torch.Generator())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_distributions(dtype):
    """Means of 40,000 draws within five standard errors."""
    torch.spyre.manual_seed(0)

    def check(x, mean, deviation):
        x = x.cpu().double()
        assert abs(x.mean().item() - mean) < 5 * deviation / 200 + abs(mean) * 2**-10
        assert abs(x.std().item() - deviation) < 0.05 * deviation

    def empty():
        return torch.empty(200, 200, dtype=dtype, device="spyre")

    u = empty().uniform_(2, 5)
    check(u, 3.5, 3 / 12**0.5)
    assert u.cpu().min() >= 2
    assert u.cpu().max() < 5
    check(empty().normal_(1, 2), 1, 2)
    check(empty().exponential_(2), 0.5, 0.5)
    check(empty().bernoulli_(0.25), 0.25, 0.1875**0.5)
    check(empty().geometric_(0.5), 2, 2**0.5)
    check(torch.randint(10, (200, 200), dtype=dtype, device="spyre"), 4.5, 2.872)
    assert empty().random_().cpu().min() >= 0
    assert (empty().cauchy_().cpu() > 0).double().mean().sub(0.5).abs() < 0.02
    assert (empty().log_normal_().cpu() > 0).all()


def test_exponential_numbers_are_above_zero():
    """Samplers divide by them, also weights of 0."""
    offset = 2330056
    assert [n >> 8 == 2**24 - 1 for n in numbers(0, offset, 4)] == [0, 0, 1, 0]

    def go_there():
        state = torch.tensor([0, offset]).view(torch.uint8)
        torch.spyre.set_rng_state(state)

    for dtype in (torch.float16, torch.float32):
        go_there()
        x = torch.empty(4, dtype=dtype, device="spyre").exponential_()
        assert (x.cpu() > 0).all()
    weights = torch.tensor([0.5, 0.5, 0.0, 0.0], device="spyre")
    go_there()
    assert torch.multinomial(weights, 1).item() in (0, 1)


def test_samples_of_no_weight_come_last():
    """Where fewer have one than are asked for, as in beam search among a few tokens."""
    weights = torch.tensor([[0.0, 1, 0, 2, 0], [0, 0, 0, 0, 0.5]], device="spyre")
    for count in (3, 5):
        for drawn, some in zip(
            torch.multinomial(weights, count).tolist(), ({1, 3}, {4}), strict=True
        ):
            assert set(drawn[: len(some)]) == some
            assert len(set(drawn)) == count
    with pytest.raises(RuntimeError, match="sum of probabilities <= 0"):
        torch.multinomial(weights * torch.tensor([[1], [0]], device="spyre"), 1)


def test_randperm():
    torch.spyre.manual_seed(4)
    for n in (0, 1, 65):
        x = torch.randperm(n, device="spyre").cpu()
        assert x.sort()[0].tolist() == list(range(n))
    torch.spyre.manual_seed(4)
    order = sorted(range(65), key=lambda i: numbers(4, 0, 65)[i])
    assert torch.randperm(65, device="spyre").cpu().tolist() == order


def test_dropout():
    x = torch.ones(50, 70, dtype=torch.float16, device="spyre", requires_grad=True)
    torch.spyre.manual_seed(6)
    y = F.dropout(x, 0.25)
    kept = [(n >> 8) * 2.0**-24 > 0.25 for n in numbers(6, 0, 3500)]
    assert (y.cpu() != 0).flatten().tolist() == kept
    scale = torch.tensor(1 / 0.75).half()
    assert set(y.detach().cpu().unique().tolist()) <= {0.0, 1.333984375, scale.item()}
    y.sum().backward()
    assert torch.equal(x.grad.cpu() != 0, y.cpu() != 0)
    assert F.dropout(x, 0.5, training=False) is x
    assert not F.dropout(x, 1.0).cpu().any()


def test_same_numbers_compiled():
    def function(x):
        y = F.dropout(x, 0.5) + torch.rand_like(x)
        z = torch.randn(3, 70, device=x.device)
        return y, z * 2, torch.randint(0, 9, (5,), device=x.device)

    x = torch.ones(3, 70, dtype=torch.float16, device="spyre")
    torch.spyre.manual_seed(8)
    eager = function(x)
    end = state()
    torch._dynamo.reset()
    torch.spyre.manual_seed(8)
    for a, b in zip(
        eager, torch.compile(function, backend="spyre", dynamic=False)(x), strict=True
    ):
        assert torch.equal(a.cpu(), b.cpu())
    assert state() == end


def test_bad_arguments():
    x = torch.empty(3, device="spyre")
    with pytest.raises(RuntimeError, match="from <= to"):
        x.uniform_(2, 1)
    with pytest.raises(RuntimeError, match="p to be in"):
        x.bernoulli_(1.5)
    with pytest.raises(RuntimeError, match="less than 'to'"):
        x.random_(5, 5)
    with pytest.raises(RuntimeError, match="std"):
        x.normal_(0, -1)
    with pytest.raises(RuntimeError, match="floating-point"):
        torch.empty(3, dtype=torch.int32, device="spyre").normal_()
    with pytest.raises(RuntimeError, match="16 bytes"):
        torch.spyre.set_rng_state(torch.zeros(5016, dtype=torch.uint8))
    assert torch_spyre.fallback_report() == {}


def test_bounds_that_the_type_lacks():
    calls = {
        "to is out of bounds for c10::Half": lambda x: x.half().uniform_(0, 1e6),
        "to-from <=": lambda x: x.half().uniform_(-6e4, 6e4),
        "to - 1 is out of bounds for": lambda x: x.to(torch.int8).random_(0, 300),
        "from is out of bounds for": lambda x: x.to(torch.int8).random_(-200, 3),
        "to - 1 is out": lambda x: x.to(torch.int8).random_(300),
    }
    for message, call in calls.items():
        for device in ("cpu", "spyre"):
            with pytest.raises(RuntimeError, match=message):
                call(torch.zeros(3, device=device))
