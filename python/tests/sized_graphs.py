# SPDX-License-Identifier: Apache-2.0
"""What tests of programs for many sizes share."""

import torch
from inputs import values
from numerics import assert_exact, compiled, poison, poisoned
from torch_spyre.compile_backend import compiled_parts


def run(f, *arguments, dims=((0, 0),)):
    """Runs on poisoned copies of the arguments; gives a host tensor or a tuple.

    ``dims`` are those (argument, dimension) that Dynamo makes symbols of.
    """
    poison()
    arguments = [poisoned(a.to("spyre")) for a in arguments]
    for argument, dim in dims:
        torch._dynamo.mark_dynamic(arguments[argument], dim)
    results = f(*arguments)
    if isinstance(results, torch.Tensor):
        return results.cpu()
    return tuple(r.cpu() for r in results)


def parts_since(before):
    return compiled_parts()[before:]


def num_sizes(part):
    """How many sizes a program takes."""
    return part.graph.num_sizes


def of_one_size(f, x):
    """What a program for just this size gives."""
    return run(compiled(f), x, dims=())


def shape_of(size, dims):
    """A matrix with ``size`` along ``dims``; if it is both, they differ."""
    return {(0,): (size, 70), (1,): (40, size), (0, 1): (size, size + 3)}[dims]


def check_bits_of_one_size(function, dims, sizes):
    """One program gives the bits of programs of one size, with poison in all that no
    element is in.
    """
    f = compiled(function, dynamic=None)
    before = len(compiled_parts())
    found = {}
    for size in sizes:
        x = values(shape_of(size, dims), torch.float16, size, -1, 1)
        found[size] = x, run(f, x, dims=[(0, dim) for dim in dims])
    programs = parts_since(before)
    assert all(num_sizes(p) == len(dims) for p in programs)
    assert len(programs) == 1
    for size, (x, actual) in found.items():
        assert_exact(actual, of_one_size(function, x), f"s = {size}")
