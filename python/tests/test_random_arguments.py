# SPDX-License-Identifier: Apache-2.0
"""Operators with random arguments as their schemas allow, against the CPU.

Each operator that has a row of the ATen table or a decomposition is called with what
the CPU takes, operator by operator and, some of them, compiled.
``SPYRE_RANDOM_ARGUMENTS=20 SPYRE_RANDOM_SEED=1`` draws as many calls of each from that
seed on, and compiles all.
"""

import os
import zlib

import pytest
import torch
from numerics import compiled
from random_arguments import Arguments, Unknown, operators
from torch.utils._pytree import tree_leaves, tree_map

COUNT = int(os.environ.get("SPYRE_RANDOM_ARGUMENTS", 1))
SEED = int(os.environ.get("SPYRE_RANDOM_SEED", 0))
#: Of so many operators, one is compiled by default.
STEP = 8
#: Draws until the CPU takes one.
TRIES = 60
#: So many operators are called, at least.
LEAST = 180


def moved(value, device):
    def move(v):
        return v.to(device, copy=True) if isinstance(v, torch.Tensor) else v

    return tree_map(move, value)


def results(function, arguments):
    return moved(function(*moved(arguments, "spyre")), "cpu")


def is_comparable(value):
    return all(
        isinstance(t, torch.Tensor) and not t.is_complex() and t.dtype != torch.float64
        for t in tree_leaves(value)
    )


def draw_call(op, seed):
    """Arguments that the CPU takes, and what it gives; None if none were found."""
    for number in range(TRIES):
        try:
            arguments = Arguments(f"{op} {seed} {number}").of(op)
        except Unknown:
            continue
        try:
            expected = op(*moved(arguments, "cpu")[0], **arguments[1])
        except (RuntimeError, IndexError, ValueError, NotImplementedError):
            continue
        if is_comparable(expected):
            return arguments, expected
    return None


def describe(op, arguments):
    def show(value):
        if isinstance(value, torch.Tensor):
            return f"{value.dtype}{list(value.shape)}"
        return value

    return f"{op}({tree_map(show, arguments)})"


def check(op, arguments, expected, is_compiled):
    def call(positional, named):
        return op(*positional, **named)

    for way in (call, compiled(call)) if is_compiled else (call,):
        actual = results(way, arguments)
        for a, e in zip(tree_leaves(actual), tree_leaves(expected), strict=True):
            torch.testing.assert_close(a, e, rtol=2e-4, atol=2e-4, equal_nan=True)


@pytest.mark.filterwarnings("ignore")
def test_random_arguments(capsys):
    failures, count = [], 0
    for op in operators():
        for seed in range(SEED, SEED + COUNT):
            found = draw_call(op, seed)
            if found is None:
                continue
            count += 1
            is_compiled = (
                COUNT > 1 or zlib.crc32(str(op).encode()) % STEP == seed % STEP
            )
            try:
                check(op, *found, is_compiled)
            except torch._dynamo.exc.TorchRuntimeError:
                continue  # PyTorch's meta functions refuse what the CPU takes.
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
                failures.append(f"seed {seed}: {describe(op, found[0])}: {text[:400]}")
    with capsys.disabled():
        print(f"\nseeds {SEED} to {SEED + COUNT - 1}: {count} calls")
    assert not failures, "\n".join(failures)
    assert count >= LEAST * COUNT
