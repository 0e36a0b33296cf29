# SPDX-License-Identifier: Apache-2.0
"""Compiles and runs one ATen operator by its row, and compares it with fp64."""

import torch
from numerics import assert_exact, device_value, unit
from torch.utils._pytree import tree_map
from torch_spyre import _C

aten = torch.ops.aten
F16, F32, I64, BOOL = torch.float16, torch.float32, torch.int64, torch.bool


def run(op, args, kwargs, wanted=None):
    """Compiles and runs one ATen operator on spyre tensors by the table."""
    builder = _C.GraphBuilder()
    storages = []

    def argument(value):
        if isinstance(value, torch.Tensor):
            tensor = value.to("spyre")
            _, _, sizes, strides, layout, dtype = _C.tensor_info(tensor)
            home = builder.add_argument(
                f"x{len(storages)}", dtype, sizes, strides, layout
            )
            storages.append(tensor)
            return _C.ValueId(
                builder.view(home, list(tensor.shape), list(tensor.stride()), 0, [])
            )
        if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
            return str(value).removeprefix("torch.")
        if isinstance(value, (list, tuple)):
            return [argument(v) for v in value]
        return value

    expected = op(*args, **kwargs)
    many = isinstance(expected, (tuple, list))
    expected = list(expected) if many else [expected]
    specs = [
        (e.dtype, list(e.shape), list(e.stride()))
        if isinstance(e, torch.Tensor) and (wanted is None or i in wanted)
        else None
        for i, e in enumerate(expected)
    ]
    ids = builder.op(
        str(op),
        [argument(a) for a in args],
        {k: argument(v) for k, v in kwargs.items()},
        specs,
        [],
    )
    kept = [i for i, s in enumerate(specs) if s is not None]
    infos = builder.set_outputs([ids[i] for i in kept])
    graph = _C.compile_graph(builder, {})
    outputs = [
        _C.empty_with_layout(sizes, strides, dtype, layout)
        for dtype, sizes, strides, layout in graph.outputs
    ]
    graph.run(storages, outputs)
    return {
        i: outputs[info.root].as_strided(info.sizes, info.strides, info.offset).cpu()
        for i, info in zip(kept, infos, strict=True)
    }


def wide(value):
    """Arguments as the device holds them, floating ones in fp64."""
    return tree_map(
        lambda v: device_value(v) if isinstance(v, torch.Tensor) else v, value
    )


def check(op, *args, units=2, terms=0, wanted=None, reference=None, **kwargs):
    """``units``: bound in the last place; ``terms``: length of a contraction."""
    actual = run(op, args, kwargs, wanted)
    exact = (reference or op)(*wide(args), **kwargs)
    exact = list(exact) if isinstance(exact, (tuple, list)) else [exact]
    for i, found in actual.items():
        if not found.is_floating_point():
            assert_exact(found, exact[i].to(found.dtype), str(op))
            continue
        want = exact[i].double()
        finite = want[want.isfinite()].abs()
        largest = max(1.0, finite.max().item() if finite.numel() else 1.0)
        bound = units * unit(want, found.dtype) + terms * 2.0**-24 * largest
        error = (found.double() - want).abs()
        good = (error <= bound + 2.0**-25) | (found.double() == want)
        good |= found.isnan() & want.isnan()
        assert good.all(), (
            f"{op} result {i}: {(~good).sum()} of {found.numel()} wrong; first "
            f"{found[~good][:4].tolist()}, not {want[~good][:4].tolist()}, "
            f"which may differ by {bound[~good][:4].tolist()}"
        )


def randn(*shape, dtype=F16, scale=1.0):
    generator = torch.Generator().manual_seed(sum(shape) + 7)
    return (torch.randn(shape, generator=generator) * scale).to(dtype)


def ints(*shape, low=-9, high=9, dtype=I64):
    generator = torch.Generator().manual_seed(sum(shape) + 11)
    return torch.randint(low, high, shape, generator=generator).to(dtype)
