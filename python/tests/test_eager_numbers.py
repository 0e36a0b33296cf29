# SPDX-License-Identifier: Apache-2.0
"""One program for all values of the numbers in an eager operator, as one for each."""

import math

import pytest
import torch
import torch_spyre
from numerics import assert_exact
from test_eager_sizes import Programs, on_device, whole
from torch_spyre import _C
from torch_spyre.frontend import eager

NUMBERS = [0.3, -1.7, 2.0, 1.0, float("inf"), 1e-9]


def record_compilations(monkeypatch):
    """A list that grows by one per program: whether it takes numbers as arguments."""
    kinds = []
    compile_ = eager._compile

    def record(call, arguments, shifts, generic):
        kinds.append(generic)
        return compile_(call, arguments, shifts, generic)

    monkeypatch.setattr(eager, "_compile", record)
    return kinds


def test_numbers_are_arguments_of_the_second_program(monkeypatch):
    """The program for any number gives the bits of the program for that number."""
    x, y = (torch.randn(40, 70, dtype=torch.float16).to("spyre") for _ in "xy")
    z = (torch.rand(40, 70, dtype=torch.float16) + 0.5).to("spyre")
    i = torch.arange(70).to("spyre")
    operations = {
        "mul": lambda s: x * s,
        "div": lambda s: x / s,
        "rdiv": lambda s: s / z,
        "rsub": lambda s: s - x,
        "alpha": lambda s: torch.add(x, y, alpha=s),
        "addcdiv": lambda s: torch.addcdiv(x, y, z, value=s),
        "addcmul": lambda s: torch.addcmul(x, y, z, value=s),
        "lerp": lambda s: torch.lerp(x, y, s),
        "less": lambda s: x < s,
        "integers": lambda s: i * s,
        "in place": lambda s: x.clone().div_(s),
        "tensor": lambda s: x * torch.tensor(s),
    }
    kinds = record_compilations(monkeypatch)
    for name, operation in operations.items():
        _C._forget_eager_programs()
        operation(0.5)
        kinds.clear()
        general = [operation(s).cpu() for s in NUMBERS]
        assert kinds == [True], name
        for number, result in zip(NUMBERS, general, strict=True):
            _C._forget_eager_programs()
            assert_exact(result, operation(number).cpu(), f"{name} {number}")


def general_results(name, operation, host, numbers, kinds):
    """What one program for all numbers gives: the bits of one for each."""
    _C._forget_eager_programs()
    x = host.to("spyre")
    operation(x, 2)
    kinds.clear()
    general = {n: operation(x, n).cpu() for n in numbers}
    assert kinds == [True], name
    for number, result in general.items():
        _C._forget_eager_programs()
        assert_exact(result, operation(x, number).cpu(), f"{name} {number}")
        assert result.dtype == operation(host, number).dtype
    return general


#: The device's 16 bits lack most of them; fp32 has all.
FAR = (1e-20, 1e-45, -1e-38, 1e38, math.inf, math.nan)


def test_numbers_beyond_the_device_share_a_program(monkeypatch):
    """Only what computes in bfloat16 has to know them."""
    host = torch.tensor([1e38, -1e20, 0.5, 0.0, 1e-38])
    operations = {
        "alpha": lambda x, n: torch.add(x, x, alpha=float(n)),
        "mul": lambda x, n: x * float(n),
        "fill": lambda x, n: x.clone().fill_(n),
        "clamp": lambda x, n: x.clamp(max=n),
    }
    kinds = record_compilations(monkeypatch)
    for name, operation in operations.items():
        found = general_results(name, operation, host, FAR, kinds)
        for number in (1e-20, 1e38):
            torch.testing.assert_close(found[number], operation(host, number))


def test_numbers_beyond_the_device_stay_finite_where_only_results_are_bfloat16():
    """Although one program serves the others."""
    x = torch.zeros(5, device="spyre")
    for number in (0.5, 2.0, 1e-20, 3.0, 1e38, -1e-12, -4.0):
        found = torch.full_like(x, number, dtype=torch.bfloat16).cpu()
        nearest = math.copysign(min(max(abs(number), 2.0**-31), 2.0**33), number)
        assert torch.equal(found, torch.full((5,), nearest).bfloat16()), number


def test_whole_numbers_are_arguments_too(monkeypatch):
    """Of floating tensors, where they are what floating numbers are."""
    host = torch.arange(-35, 35, dtype=torch.float16).expand(4, 70).contiguous()

    def set_column(x, number):
        x = x.clone()
        x[:, 3] = number
        return x

    operations = {
        "add": lambda x, n: x + n,
        "rsub": lambda x, n: n - x,
        "div": lambda x, n: x / n,
        "remainder": lambda x, n: x % n,
        "equal": lambda x, n: x == n,
        "less": lambda x, n: x < n,
        "fill": lambda x, n: x.clone().fill_(n),
        "a row": lambda x, n: x.clone()[1].fill_(n),
        "set": set_column,
        "masked_fill": lambda x, n: x.masked_fill(x > 3, n),
        "clamp": lambda x, n: x.clamp(min=n),
        "full": lambda x, n: torch.full((4, 70), float(n), device=x.device),
    }
    kinds = record_compilations(monkeypatch)
    for name, operation in operations.items():
        general_results(name, operation, host, (3, -7, 30, 1), kinds)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_whole_numbers_that_meet_integers(dtype, monkeypatch):
    """The second value gets a program for all, with the bits of one for each."""
    host = torch.arange(-35, 35, dtype=dtype).expand(4, 70).contiguous()
    operations = {
        "add": lambda x, n: x + n,
        "rsub": lambda x, n: n - x,
        "mul": lambda x, n: x * n,
        "div": lambda x, n: x / n,
        "equal": lambda x, n: x == n,
        "less": lambda x, n: x < n,
        "fill": lambda x, n: x.clone().fill_(n),
        "masked_fill": lambda x, n: x.masked_fill(x > 3, n),
        "clamp": lambda x, n: x.clamp(min=n),
    }
    kinds = record_compilations(monkeypatch)
    numbers = (3, -7, 65, 2**24 + 1, 1)
    for name, operation in operations.items():
        results = general_results(name, operation, host, numbers, kinds)
        for number, result in results.items():
            if not result.is_floating_point():
                assert_exact(result, operation(host, number), f"{name} {number}")


def test_whole_numbers_of_integers_stay_exact():
    x = torch.arange(70).to("spyre")
    for number in (3, 2**24 + 1, 2**30 + 1, -5):
        assert_exact((x + number).cpu(), torch.arange(70) + number)
        assert_exact((x == number).cpu(), torch.arange(70) == number)


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
def test_optimizer_compiles_no_third_step(kind, foreach, monkeypatch):
    numbers, kinds = [], record_compilations(monkeypatch)
    parameter = torch.nn.Parameter(torch.ones(7, 65, dtype=torch.float16).to("spyre"))
    optimizer = kind([parameter], lr=1e-2, foreach=foreach)
    for step in range(5):
        kinds.clear()
        gradient = torch.full((7, 65), 0.5 + step, dtype=torch.float16)
        parameter.grad = gradient.to("spyre")
        optimizer.step()
        numbers.append(len(kinds))
    assert numbers[2:] == [0, 0, 0]
    assert torch_spyre.fallback_report() == {}


LARGE = {torch.float16: 1e6, torch.bfloat16: 1e39, torch.float32: 1e300}
#: Some refuse numbers that the type of the elements lacks, on the CPU.
WITH_LARGE_NUMBERS = {
    "add": lambda x, n: x + n,
    "alpha": lambda x, n: torch.add(x, x, alpha=n),
    "addcmul": lambda x, n: torch.addcmul(x, x, x, value=n),
    "clamp": lambda x, n: x.clamp(max=n),
    "full": lambda x, n: torch.full_like(x, n),
    "fill": lambda x, n: x.clone().fill_(n),
    "fill one": lambda x, n: x[:1].clone().fill_(n),
    "fill tensor": lambda x, n: x.clone().fill_(torch.tensor(n, dtype=torch.float64)),
    "hardtanh": lambda x, n: torch.nn.functional.hardtanh(x, -n, n),
    "leaky_relu": lambda x, n: torch.nn.functional.leaky_relu(x, n),
    "masked_fill": lambda x, n: x.masked_fill(x > 0, n),
    "pow": lambda x, n: x.abs() ** n,
    "scatter": lambda x, n: x.scatter(0, (x[:1] * 0).long(), n),
    "where": lambda x, n: torch.where(x > 0, x, n),
}


def outcome(function, x, number):
    """The result on the host, or the error."""
    try:
        return function(x, number).cpu()
    except RuntimeError as error:
        return str(error).split("\n")[0]


@pytest.mark.parametrize("dtype", LARGE, ids=str)
def test_numbers_that_the_type_lacks(dtype):
    x = torch.tensor([1.0, 2, -0.5, 4.0], dtype=dtype)
    device, number = x.to("spyre"), LARGE[dtype]
    for name, function in WITH_LARGE_NUMBERS.items():
        for small in (0.5, 0.75):  # the second program takes any number
            function(device, small)
        expected = outcome(function, x, number)
        found = outcome(function, device, number)
        if isinstance(expected, str):
            assert found == expected, name
        else:
            assert_exact(found, expected, name)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_functions_refuse_them_too(dynamic):
    def function(x, n):
        return torch.add(x + 1, x, alpha=n) * 2

    x = torch.randn(65, device="spyre")
    run = torch.compile(function, backend="spyre", dynamic=dynamic)
    assert_exact(run(x, 0.5).cpu(), function(x, 0.5).cpu())
    with pytest.raises(Exception, match="without overflow"):
        run(x, 1e300).cpu()


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_a_program_for_many_sizes_is_for_one_sign_of_zero(zero):
    _C._forget_eager_programs()
    programs = Programs()
    for size in (5, 6, 7):
        on_device(whole(size)).div(zero)
    assert programs.new("many_sizes")
    x = whole(8) + 0.5
    assert_exact(on_device(x).div(-zero).cpu(), x / -zero, f"{-zero}")
