# SPDX-License-Identifier: Apache-2.0
"""Eight cards in one process. Eight processes are in test_distributed.py."""

import textwrap

from interpreters import run_python

START = """
import threading
import torch
from torch import nn
from torch_spyre.compile_backend import compiled_parts

cards = [torch.device("spyre", i) for i in range(8)]
assert torch.spyre.device_count() == 8


def values(*sizes):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(3)).half()


"""


def run(code):
    done = run_python(START + textwrap.dedent(code), AIU_WORLD_SIZE="8")
    assert done.returncode == 0, done.stderr[-3000:]


def test_replicas_have_the_same_bits():
    run("""
    x = values(3, 130)
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(130, 257), nn.GELU(), nn.Linear(257, 65)).half()
    state = module.state_dict()
    compiled = torch.compile(module, fullgraph=True)
    bits = []
    with torch.no_grad():
        for card in cards:
            module.load_state_dict(state)
            module.to(card)
            for call in (compiled, module):
                y = call(x.to(card))
                assert y.device == card and torch.spyre.memory_allocated(card) > 0
                bits.append(y.cpu())
            module.cpu()
    expected = module.float()(x.float())
    assert (bits[0].float() - expected).abs().max() < 4e-3
    assert all(torch.equal(b, bits[0]) for b in bits)
    """)


def test_threads_of_their_own():
    run("""
    x = values(65, 130)
    sums = [None] * 8

    def work(i):
        torch.spyre.set_device(i)
        y = x.to("spyre")
        for _ in range(20):
            y = torch.relu(y * 1.01 - 0.01 * i)
        assert y.device.index == i
        sums[i] = y.cpu()

    threads = [threading.Thread(target=work, args=[i]) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = list(sums)
    for i in range(8):
        work(i)
        assert torch.equal(sums[i], together[i])
    """)


def test_a_compiled_function_on_many_cards():
    run("""
    def around(xs):
        total = xs[0] * 2
        for x in xs[1:]:
            total = torch.relu(total.to(x.device) + x * 2)
        return total, total.to(xs[0].device) + xs[0]

    xs = [(values(5, 70) + i).to(card) for i, card in enumerate(cards)]
    expected = around(xs)
    actual = torch.compile(around, fullgraph=True)(xs)
    for a, e, card in zip(actual, expected, (cards[7], cards[0])):
        assert a.device == e.device == card
        assert torch.equal(a.cpu(), e.cpu())
    # A program for each card, and one more for the first, none for several.
    assert len(compiled_parts()) == 9, compiled_parts()

    def mixed(x, y):
        return x + y

    try:
        torch.compile(mixed)(xs[1], xs[2])
    except RuntimeError as error:
        assert "same device" in str(error) or "two different devices" in str(error)
    else:
        raise AssertionError("added tensors of two cards")
    """)


def test_compiled_functions_that_only_name_a_card():
    """No tensor from there tells which of them it is."""
    run("""
    torch.spyre.set_device(1)
    number = torch.tensor(2.0)
    functions = [
        (lambda: torch.ones(4, device=cards[5]) + 1, False, []),
        (lambda x: torch.ones(4, device=cards[5]) + x, False, [number]),
        (lambda n: torch.arange(n, device=cards[5]) + 1, True, [5, 7]),
    ]
    for function, dynamic, inputs in functions:
        compiled = torch.compile(function, dynamic=dynamic, fullgraph=True)
        for arguments in [[x] for x in inputs] or [[]]:
            y = compiled(*arguments)
            assert y.device == cards[5], y.device
            assert torch.equal(y.cpu(), function(*arguments).cpu())
    assert torch.spyre.current_device() == 1
    """)


def test_what_a_copy_between_cards_takes():
    run("""
    import torch_spyre
    numbers = torch_spyre._C.device_spec()
    x = values(640, 64).to(cards[2])
    with torch.spyre.profiler.profile() as prof:
        y = x.to(cards[5])
    (copy,) = prof.transfers
    assert copy.kind == "card to card" and copy.bytes == 640 * 128
    expected = numbers["cardLinkSeconds"]
    expected += copy.bytes / numbers["cardLinkBytesPerSecond"]
    assert abs(copy.predicted_seconds / expected - 1) < 1e-6, (copy, expected)
    assert torch.equal(y.cpu(), x.cpu())
    """)
