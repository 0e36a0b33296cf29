# SPDX-License-Identifier: Apache-2.0
"""Large tensors are converted, read and filled piece by piece.

Values do not depend on the pieces, and the host needs little memory beside the tensors.
"""

from pathlib import Path

import pytest
import torch
from interpreters import run_script

ROOT = Path(__file__).resolve().parents[2]
#: Above it, transfers that convert go in pieces (lib/Torch/Transfer/Transfer.h).
LARGE = 1 << 22

FILLS = {
    "uniform": lambda t: t.uniform_(),
    "normal": lambda t: t.normal_(),
    "exponential": lambda t: t.exponential_(),
    "whole numbers": lambda t: t.random_(0, 1000),
    "bernoulli": lambda t: t.bernoulli_(0.25),
    "bernoulli of tensors": lambda t: t.bernoulli_(torch.full_like(t, 0.25)),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("name", FILLS)
def test_random_numbers_do_not_depend_on_pieces(name, dtype):
    """Rows of 2^20 elements draw the numbers that five of them draw together."""
    fill = FILLS[name]
    torch.manual_seed(3)
    together = fill(torch.empty(5, 1 << 20, dtype=dtype, device="spyre"))
    torch.manual_seed(3)
    apart = [fill(torch.empty(1 << 20, dtype=dtype, device="spyre")) for _ in range(5)]
    for row, other in zip(together, apart, strict=True):
        assert torch.equal(row.cpu(), other.cpu())


def test_pieces_begin_at_any_lane():
    """Rows of 2051 elements, whose pieces begin with other lanes of a counter."""
    shape = (2051, 2051)
    torch.manual_seed(5)
    rows = torch.empty(shape, dtype=torch.float16, device="spyre").normal_().cpu()
    torch.manual_seed(5)
    flat = torch.empty(2051 * 2051, dtype=torch.float16, device="spyre").normal_()
    assert torch.equal(rows.view(-1), flat.cpu())
    torch.manual_seed(5)
    turned = torch.empty(shape, dtype=torch.float16, device="spyre").t().normal_()
    assert torch.equal(turned.cpu(), rows)
    torch.manual_seed(5)
    part = torch.zeros(2060, 2060, dtype=torch.float16, device="spyre")
    part[3:2054, 7:2058].normal_()
    part = part.cpu()
    assert torch.equal(part[3:2054, 7:2058], rows)
    part[3:2054, 7:2058] = 0
    assert not part.any()


SHAPES = [(LARGE + 3,), (2049, 2051), (3, 1, 1 << 21), (2, 3, 65, 129, 101)]


@pytest.mark.parametrize("shape", SHAPES)
def test_conversions_do_not_depend_on_pieces(shape):
    torch.manual_seed(1)
    x = torch.randint(-1000, 1000, shape)
    for host, device in (
        (torch.float32, torch.float16),
        (torch.int64, torch.float32),
        (torch.float32, torch.int32),
        (torch.bool, torch.float16),
    ):
        values = x.to(host)
        there = values.to("spyre", device)
        assert torch.equal(there.cpu(), values.to(device))
        assert torch.equal(there.to("cpu", torch.float64), values.to(device).double())
        assert torch.equal(there[1:].cpu(), values[1:].to(device))
        assert there.sum().isfinite()


def test_a_number_fills_a_large_part():
    """64-bit values that no program fills go through the host, which says so."""
    t = torch.zeros(2050, 2051, dtype=torch.int64, device="spyre")
    with pytest.warns(UserWarning, match="does not support int64"):
        t[1:].fill_(1 << 40)
    t = t.cpu()
    assert t[0].eq(0).all() and t[1:].eq((1 << 31) - 1).all()


def status(key: str) -> int:
    with open("/proc/self/status") as file:
        (line,) = (line for line in file if line.startswith(f"{key}:"))
    return int(line.split()[1]) << 10


ROWS = 8192
#: What it does, and how many tensors of fp16 it makes on host and device.
WORK = {
    "normal": (lambda t, h: t.normal_(), 0),
    "whole numbers": (lambda t, h: t.random_(0, 9), 0),
    "store fp32": (lambda t, h: t.copy_(h), 0),
    "store a number": (lambda t, h: t.copy_(torch.tensor(3.0).expand(t.shape)), 0),
    "read as fp32": (lambda t, h: t.to("cpu", torch.float32), 2),
    "read a half": (lambda t, h: t[ROWS // 2 :].cpu(), 0.5),
    "read half as fp32": (lambda t, h: t[:, ::1][ROWS // 2 :].to("cpu", h.dtype), 1),
}


@pytest.mark.parametrize("name", WORK)
def test_takes_little_memory_of_the_host(name):
    """Beside the tensors, at most a quarter of one: 64 MiB here."""
    work, made = WORK[name]
    t = torch.zeros(ROWS, 4096, dtype=torch.float16, device="spyre")
    h = torch.ones(ROWS, 4096)
    work(t[:8], h[:8])
    torch.accelerator.synchronize()
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # from here on VmHWM is new
    except OSError:
        pytest.skip("the kernel does not let a process reset its peak")
    before = status("VmRSS")
    result = work(t, h)
    torch.accelerator.synchronize()
    peak = status("VmHWM") - before
    assert peak <= (made + 0.25) * t.nbytes
    del result


def test_the_script_of_large_shapes_runs():
    """The smallest case of the table in docs/reference/large.md."""
    script = ROOT / "benchmarks/large.py"
    done = run_script(script, "2.34")
    assert done.returncode == 0, done.stderr
    assert "| 2^34 multiply-accumulates | 0.07 |" in done.stdout
    assert "2048 x 4096 x 2048, 0 s" in done.stderr
