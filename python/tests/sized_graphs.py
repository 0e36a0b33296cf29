# SPDX-License-Identifier: Apache-2.0
"""What tests of programs for many sizes share."""

import plan_bits  # noqa: F401  (sums do not depend on the plan)
import torch
from inputs import values
from numerics import assert_exact, compiled, poison, poisoned
from torch._subclasses.functional_tensor import dispatch_functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_leaves
from torch_spyre.compile_backend import _compiler, compile_options, compiled_parts
from torch_spyre.decompositions.table import decompositions


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


def of_one_size(function, x):
    """What a program for just this size gives.

    Its graph has the operators that AOTAutograd would find, and is traced without it
    and Dynamo: there is one for each size, and six sevenths of the time would be
    theirs. The program for many sizes comes by both.
    """

    def listed(x):
        result = function(x)
        return result if isinstance(result, tuple) else (result,)

    def compile_and_run(x):
        graph = make_fx(
            dispatch_functionalize(listed),
            decomposition_table=decompositions(),
            tracing_mode="fake",
        )(x)
        graph.graph.eliminate_dead_code()
        results = _compiler("graph", compile_options({}), False)(graph, [x])([x])
        return results[0] if len(results) == 1 else tuple(results)

    return run(compile_and_run, x, dims=())


def shape_of(size, dims):
    """A matrix with ``size`` along ``dims``; if it is both, they differ."""
    return {(0,): (size, 70), (1,): (40, size), (0, 1): (size, size + 3)}[dims]


def check_bits_of_one_size(
    function, dims, sizes, symbols=None, graphs=1, programs_each=1
):
    """One program gives the bits of programs of one size, with poison in all that no
    element is in. It has as many ``symbols`` as sizes vary, unless some are divided;
    Dynamo may have several ``graphs``, each with a program, or with two where no plan
    serves all sizes.
    """
    f = compiled(function, dynamic=None)
    before = len(compiled_parts())
    found = {}
    for size in sizes:
        x = values(shape_of(size, dims), torch.float16, size, -1, 1)
        found[size] = x, run(f, x, dims=[(0, dim) for dim in dims])
    programs = parts_since(before)
    assert [num_sizes(p) for p in programs] == [symbols or len(dims)] * (
        graphs * programs_each
    )
    assert len({p.name for p in programs}) == graphs
    for size, (x, actual) in found.items():
        expected = of_one_size(function, x)
        for a, e in zip(tree_leaves(actual), tree_leaves(expected), strict=True):
            assert_exact(a, e, f"s = {size}")
