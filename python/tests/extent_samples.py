# SPDX-License-Identifier: Apache-2.0
"""Arguments of every operator of the ATen table, for sizes with extents of 1."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from inputs import values

F16, F32, I64, BOOL = torch.float16, torch.float32, torch.int64, torch.bool

#: Positional and keyword arguments.
Call = tuple[tuple[Any, ...], dict[str, Any]]
Shape = tuple[int, ...]

SHAPES: list[Shape] = [
    (1, 1, 192),
    (),
    (1,),
    (192, 1),
    (3, 1, 65),
    (1, 64),
    (1, 1),
    (1, 2, 1, 63),
    (1, 4096),
    (130, 1, 1),
]

#: Whose arguments must not be negative or zero.
POSITIVE = ["log", "log2", "log1p", "sqrt", "rsqrt", "reciprocal", "pow", "div"]


def make(shape: Any, dtype: torch.dtype, name: str = "", seed: int = 0) -> torch.Tensor:
    low = 0.5 if any(name.startswith(p) for p in POSITIVE) else -2.0
    if not dtype.is_floating_point and dtype != BOOL:
        return values(tuple(shape), torch.int32, seed).remainder(7).add(1).to(dtype)
    return values(tuple(shape), dtype, seed, low, 2.5)


def zeros(shape: Any) -> torch.Tensor:
    return torch.zeros(tuple(shape), dtype=I64)


def _dims(shape: Shape) -> list[int]:
    """A dimension of extent 1, the last one, and the first."""
    found = [d for d, extent in enumerate(shape) if extent == 1][:1]
    return list(dict.fromkeys([*found, len(shape) - 1, 0])) if shape else [0]


# --- families ------------------------------------------------------------------


def _by_schema(op: Any, name: str, shape: Shape, dtype: torch.dtype) -> Iterator[Call]:
    """Tensors of one shape (the others of ones, too), numbers, sizes."""
    required = [a for a in op._schema.arguments if not a.has_default_value()]
    broadcasts = sum(str(a.type) == "Tensor" for a in required) > 1
    for others in [shape, tuple(1 for _ in shape)][: 2 if broadcasts else 1]:
        for dim in _dims(shape) if any(a.name == "dim" for a in required) else [0]:
            args: list[Any] = []
            kwargs: dict[str, Any] = {}
            for number, a in enumerate(required):
                own = shape if number == 0 else others
                if a.name in ("mask", "condition"):
                    args.append(make(own, BOOL, name, number))
                elif str(a.type) == "Tensor":
                    is_value = a.name == "value"
                    args.append(make(() if is_value else own, dtype, name, number))
                elif a.name in ("dim", "dims"):
                    args.append(dim if str(a.type) == "int" else [dim])
                elif "List[int]" in str(a.type):
                    args.append(list(shape))
                elif a.name == "half_to_float":
                    args.append(False)
                elif a.name == "rounding_mode":
                    kwargs[a.name] = "floor"
                else:
                    args.append(2)
            yield tuple(args), kwargs


def _reduction(*extra: dict[str, Any]) -> Callable:
    """Over every dimension by itself, all of them, keeping them or not."""

    def family(op: Any, name: str, shape: Shape, dtype: torch.dtype) -> Iterator[Call]:
        x = make(shape, dtype, name)
        parameter = next((a for a in op._schema.arguments if a.name == "dim"), None)
        if parameter is None:
            yield (x,), {}
            return
        is_list = "List" in str(parameter.type)
        has_keep = any(a.name == "keepdim" for a in op._schema.arguments)
        dims: list[Any] = [[d] if is_list else d for d in _dims(shape)]
        if is_list:
            dims.append(list(range(len(shape))))
        for number, dim in enumerate(dims):
            keep = {"keepdim": number % 2 == 0} if has_keep else {}
            for more in extra or ({},):
                yield (x,), {"dim": dim, **keep, **more}

    return family


def _sizes(extra: Callable[[Shape], tuple]) -> Callable:
    """Operators that make tensors from sizes, or like another one."""

    def family(op: Any, name: str, shape: Shape, dtype: torch.dtype) -> Iterator[Call]:
        like = op._schema.arguments[0].name == "self"
        own = (make((2, 1), dtype, name),) if like else ()
        yield (*own, list(shape), *extra(shape)), {"dtype": dtype}

    return family


def _strides(shape: Shape) -> list[int]:
    return list(torch.empty(shape).stride())


def _backward(*extra: Any) -> Callable:
    def family(op: Any, name: str, shape: Shape, dtype: torch.dtype) -> Iterator[Call]:
        gradient, x = make(shape, dtype, name), make(shape, dtype, name, 1)
        yield (gradient, x.sigmoid() if dtype.is_floating_point else x, *extra), {}

    return family


def _softmax_backward(op: Any, name: str, shape: Shape, dtype: Any) -> Iterator[Call]:
    for dim in _dims(shape):
        x = make(shape, dtype, name)
        y = x.log_softmax(dim) if "log" in name else x.softmax(dim)
        yield (make(shape, dtype, name, 1), y, dim, dtype), {}


def _norm(op: Any, name: str, shape: Shape, dtype: torch.dtype) -> Iterator[Call]:
    for count in {1, len(shape)} if shape else ():
        sizes = shape[-count:]
        x = make(shape, dtype, name)
        weight, bias = (make(sizes, dtype, name, n) for n in (1, 2))
        affine = (weight,) if "rms" in name else (weight, bias)
        if "backward" not in name:
            yield (x, list(sizes), *affine, 1e-5), {}
            yield (x, list(sizes), *[None] * len(affine), 1e-5), {}
            continue
        dims = list(range(len(shape) - count, len(shape)))
        wide = x.float()
        mean = wide.mean(dims, True)
        # Like results of the operator, of its type and kept dimensions.
        mean_square = (wide - (0 if "rms" in name else mean)).square().mean(dims, True)
        rstd = (mean_square + 1e-5).rsqrt()
        statistics = (rstd,) if "rms" in name else (mean, rstd)
        mask = [True] * (1 + len(affine))
        gradient = make(shape, dtype, name, 3)
        statistics = tuple(s.to(dtype) for s in statistics)
        yield (gradient, x, list(sizes), *statistics, *affine, mask), {}


def _index(op: Any, name: str, shape: Shape, dtype: torch.dtype) -> Iterator[Call]:
    """Operators with one index tensor, along each dimension."""
    x = make(shape, dtype, name)
    source = make(shape, dtype, name, 1)
    for dim in _dims(shape):
        one, along = zeros([1]), zeros([shape[dim] if shape else 1])
        along += torch.arange(len(along))
        first = source.narrow(dim, 0, 1) if shape else source
        if name.startswith("index_select"):
            yield (x, dim, one), {}
            yield (x, dim, along), {}
        elif name.startswith("gather"):
            yield (x, dim, zeros(first.shape)), {}
            yield (x, dim, zeros(shape)), {}
        elif name.startswith("scatter"):
            what = 2.0 if ".value" in name else source
            more = {"reduce": "add"} if name.endswith("reduce") else {}
            if name.endswith("two"):
                more = {"reduce": "amax"}
            yield (x, dim, zeros(first.shape), what), more
        elif name.startswith("index_reduce"):
            yield (x, dim, one, first, "amin"), {}
            yield (x, dim, along, source, "mean", False), {}
        elif name in ("index_add.default", "index_copy.default"):
            yield (x, dim, one, first), {}
            yield (x, dim, along, source), {}
        elif shape:
            indices = [None] * dim + [one]
            taken = x.narrow(dim, 0, 1)
            if "put" in name:
                yield (x, indices, taken + 1), {}
                yield (x, indices, make((1,), dtype, name, 2)), {}
            else:
                yield (x, indices), {}
                yield (x, [None] * dim + [zeros([1, 1])]), {}


def _take(op: Any, name: str, shape: Shape, dtype: torch.dtype) -> Iterator[Call]:
    for indices in [zeros(()), zeros([1]), zeros(shape)]:
        yield (make(shape, dtype, name), indices), {}


def _embedding(op: Any, name: str, shape: Shape, dtype: torch.dtype) -> Iterator[Call]:
    if not dtype.is_floating_point or not shape:
        return
    width = shape[-1]
    for rows, indices in [(1, (1, 1)), (5, (1,)), (5, (1, 3)), (2, ())]:
        if "backward" in name:
            gradient = make((*indices, width), dtype, name)
            yield (gradient, zeros(indices), rows, -1, False), {}
        else:
            yield (make((rows, width), dtype, name), zeros(indices)), {}


def _contraction(batches: int, *order: str) -> Callable:
    """``order``: the letters of the dimensions of each tensor argument."""

    def family(op: Any, name: str, shape: Shape, dtype: torch.dtype) -> Iterator[Call]:
        if shape != SHAPES[0]:
            return
        sizes = [(1, 1, 192), (1, 192, 1), (192, 1, 1), (1, 1, 1), (5, 1, 65)]
        for rows, depth, columns in [*sizes, (1, 65, 130), (1, 4096, 3)]:
            for batch in (1, 3)[: 1 + batches]:
                extents = {"b": batch, "m": rows, "k": depth, "n": columns, "1": 1}
                yield (
                    tuple(
                        make([extents[c] for c in letters], dtype, name, n)
                        for n, letters in enumerate(order)
                    ),
                    {},
                )

    return family


def _sum_products(op: Any, name: str, shape: Shape, dtype: Any) -> Iterator[Call]:
    """Broadcast either way: with rows, columns and sums, and without."""
    for dim in _dims(shape) if shape else []:
        x, y = make(shape, dtype, name), make(shape, dtype, name, 1)
        yield (x, y, [dim]), {}
        yield (x, y, list(range(len(shape)))), {}
        y = make([1, *shape[1:], 3], dtype, name, 1)
        bias = make([*[1] * (len(shape) - 1), 3], dtype, name, 2)
        for elementwise in (False, True):
            yield (x.unsqueeze(-1), y, [dim], bias, elementwise), {}


def _merge_last(op: Any, name: str, shape: Shape, dtype: Any) -> Iterator[Call]:
    for count in range(1, len(shape) + 1):
        yield (make(shape, dtype, name), count), {}


def _windows(op: Any, name: str, shape: Shape, dtype: Any) -> Iterator[Call]:
    """Of one element, and of all."""
    is_grouped = name.startswith("grouped")
    for count in (1, 2):
        if len(shape) < count or (is_grouped and len(shape) != 2 + count):
            continue
        ones, size = [1] * count, list(shape[-count:])
        for kernel, out in ((ones, size), (size, ones)):
            how = kernel, ones, ones, out
            for more in [(1, 0), (1, count), (shape[1], 0)] if is_grouped else [()]:
                yield (make(shape, dtype, name), *how, *more), {}


def _attention(op: Any, name: str, shape: Shape, dtype: torch.dtype) -> Iterator[Call]:
    if not dtype.is_floating_point or shape != SHAPES[0]:
        return
    for batch, heads, rows, columns, width in [
        (1, 1, 1, 1, 64),
        (1, 3, 1, 17, 64),
        (1, 1, 5, 1, 1),
        (2, 1, 1, 65, 48),
    ]:
        query = make((batch, heads, rows, width), dtype, name)
        key, value = (
            make((batch, heads, columns, width), dtype, "", n) for n in (1, 2)
        )
        if "backward" in name:
            out, none = make(query.shape, dtype, name, 3), torch.zeros(0)
            logsumexp = make((batch, heads, rows), F32, name, 4)
            mask = [True, True, True, False]
            yield (
                (
                    (make(query.shape, dtype, name, 5), query, key, value, None, mask)
                    + (
                        out,
                        logsumexp,
                        none,
                        none,
                        rows,
                        columns,
                        0.0,
                        False,
                        none,
                        none,
                    )
                ),
                {},
            )
            continue
        yield (query, key, value), {}
        mask = make((1, 1, 1, columns), dtype, name, 3)
        yield (query, key, value, mask), {}
        if rows == columns:
            yield (query, key, value, None, 0.0, True), {}


def _encoder(op: Any, name: str, shape: Shape, dtype: torch.dtype) -> Iterator[Call]:
    if not dtype.is_floating_point or shape != SHAPES[0]:
        return
    for batch, time, width, heads in [(1, 1, 64, 2), (1, 1, 192, 3), (3, 1, 64, 1)]:
        sizes = [(3 * width, width), (3 * width,), (width, width), (width,)]
        front = [make(s, dtype, name, n) * 0.1 for n, s in enumerate(sizes)]
        norms = [make((width,), dtype, name, n) for n in range(4)]
        sizes = [(2 * width, width), (2 * width,), (width, 2 * width), (width,)]
        back = [make(s, dtype, name, n) * 0.1 for n, s in enumerate(sizes)]
        for norm_first in (True, False):
            x = make((batch, time, width), dtype, name, 9)
            yield (
                (x, width, heads, *front, True, norm_first, 1e-5, *norms, *back),
                {},
            )


# --- single operators ----------------------------------------------------------


def _cat(op: Any, name: str, shape: Shape, dtype: torch.dtype) -> Iterator[Call]:
    x, y = make(shape, dtype, name), make(shape, dtype, name, 1)
    for dim in _dims(shape):
        yield ([x, y], dim), {}
        yield ([x], dim), {}


def _scatter_part(op: Any, name: str, shape: Shape, dtype: Any) -> Iterator[Call]:
    x = make(shape, dtype, name)
    for dim in _dims(shape) if shape else ():
        part = make(shape, dtype, name, 1)
        if "select" in name:
            yield (x, part.select(dim, 0).clone(), dim, shape[dim] - 1), {}
        else:
            yield (x, part, dim, 0, shape[dim]), {}
            yield (x, part.narrow(dim, 0, 1).clone(), dim, 0, 1), {}


def _pad(op: Any, name: str, shape: Shape, dtype: torch.dtype) -> Iterator[Call]:
    x = make(shape, dtype, name)
    if shape:
        yield (x, [1, 0]), {}
    if len(shape) > 1:
        yield (x, [0, 0, 1, 2], 3), {}


def _repeat(op: Any, name: str, shape: Shape, dtype: torch.dtype) -> Iterator[Call]:
    x = make(shape, dtype, name)
    yield (x, [1] * len(shape)), {}
    yield (x, [3, *[1] * max(len(shape) - 1, 0)]), {}
    yield (x, [1, *[2] * len(shape)]), {}


def _copy(op: Any, name: str, shape: Shape, dtype: torch.dtype) -> Iterator[Call]:
    x = make(shape, dtype, name)
    for target in [F16, F32, I64, BOOL]:
        yield ((x, target), {}) if "prims" in str(op) else ((x,), {"dtype": target})


def _clamp(op: Any, name: str, shape: Shape, dtype: torch.dtype) -> Iterator[Call]:
    x = make(shape, dtype, name)
    if name.endswith("Tensor"):
        yield (x, make((), dtype, name, 1), make(shape, dtype, name, 2)), {}
    else:
        yield (x, -1, 2), {}
        yield (x, None, 1), {}


def _numbers(*calls: Call) -> Callable:
    """Operators whose arguments are numbers alone."""

    def family(op: Any, name: str, shape: Shape, dtype: torch.dtype) -> Iterator[Call]:
        for args, kwargs in calls if shape == SHAPES[0] else ():
            yield args, {"dtype": dtype, **kwargs}

    return family


def _topk(op: Any, name: str, shape: Shape, dtype: torch.dtype) -> Iterator[Call]:
    # No two are equal, else there is a choice.
    count = torch.Size(shape).numel()
    x = (torch.arange(count) * 7 % 509 - 100).view(shape).to(dtype)
    for dim in _dims(shape):
        yield (x, 1, dim), {}


def _sort(op: Any, name: str, shape: Shape, dtype: torch.dtype) -> Iterator[Call]:
    count = torch.Size(shape).numel()
    x = (torch.arange(count) * 7 % 509 - 100).view(shape).to(dtype)
    # A sort that is not stable may choose among equal values.
    is_stable = name.endswith("stable")
    if not is_stable and (count > 509 or dtype == BOOL):
        return
    for dim in _dims(shape):
        more = {"stable": True} if is_stable else {}
        yield (x,), {"dim": dim, "descending": dim == 0, **more}


def _sort_pairs(op: Any, name: str, shape: Shape, dtype: torch.dtype) -> Iterator[Call]:
    if shape:
        places = torch.arange(torch.Size(shape).numel()).flip(0).view(shape)
        for descending in (False, True):
            yield (make(shape, dtype, name), places, descending, 1), {}


def _lerp(op: Any, name: str, shape: Shape, dtype: torch.dtype) -> Iterator[Call]:
    weight = make(shape, dtype, name, 2) if name.endswith("Tensor") else 0.25
    yield (make(shape, dtype, name), make(shape, dtype, name, 1), weight), {}


def _mse_backward(op: Any, name: str, shape: Shape, dtype: Any) -> Iterator[Call]:
    x, y = make(shape, dtype, name), make(shape, dtype, name, 1)
    yield (make((), dtype, name, 2), x, y, 1), {}
    yield (make(shape, dtype, name, 2), x, y, 0), {}


def _iota(length: int) -> Iterator[Call]:
    more = {"dtype": I64, "device": "cpu", "requires_grad": False}
    yield (length,), {"start": 3, "step": 2, **more}


_NONE: Callable[[Shape], tuple] = lambda shape: ()  # noqa: E731

#: Operator, with or without its overload -> family; others go by their schema.
FAMILIES: dict[str, Callable] = {
    **dict.fromkeys(
        ["sum", "mean", "any", "all", "amax", "amin", "max.default", "max.dim"]
        + ["min.default", "min.dim", "argmax", "argmin"],
        _reduction(),
    ),
    "prod": _reduction(),
    "cumsum": _reduction(),
    **dict.fromkeys(
        ["var", "std", "var_mean", "std_mean"],
        _reduction({"correction": 0}, {"correction": 1}),
    ),
    "linalg_vector_norm": _reduction({"ord": 2}, {"ord": 1}, {"ord": float("inf")}),
    **dict.fromkeys(
        ["zeros", "ones", "empty", "new_zeros", "new_ones", "new_empty"], _sizes(_NONE)
    ),
    **dict.fromkeys(["full", "new_full"], _sizes(lambda shape: (3,))),
    **dict.fromkeys(
        ["empty_strided", "new_empty_strided"], _sizes(lambda s: (_strides(s),))
    ),
    "empty_permuted": _sizes(lambda shape: (list(range(len(shape))),)),
    "arange.default": _numbers(((1,), {})),
    "arange.start": _numbers(((3, 4), {}), ((0, 1), {})),
    "arange.start_step": _numbers(((0, 1, 1), {}), ((1, 3, 5), {})),
    "scalar_tensor": _numbers(((2,), {})),
    "iota": _numbers(*_iota(1), *_iota(65)),
    **dict.fromkeys(
        ["gather", "index_select", "index", "_unsafe_index", "index_put"]
        + ["_unsafe_index_put", "_index_put_impl", "index_add", "index_copy"]
        + ["index_reduce", "scatter", "scatter_reduce"],
        _index,
    ),
    "take": _take,
    **dict.fromkeys(["embedding", "embedding_dense_backward"], _embedding),
    "mm": _contraction(0, "mk", "kn"),
    "bmm": _contraction(1, "bmk", "bkn"),
    "matmul": _contraction(1, "bmk", "kn"),
    "addmm": _contraction(0, "1n", "mk", "kn"),
    "baddbmm": _contraction(1, "b11", "bmk", "bkn"),
    "linear": _contraction(1, "bmk", "nk", "n"),
    "sum_products": _sum_products,
    "merge_last": _merge_last,
    "windows": _windows,
    "grouped_windows": _windows,
    "mv": _contraction(0, "mk", "k"),
    "dot": _contraction(0, "k", "k"),
    "vdot": _contraction(0, "k", "k"),
    "addmv": _contraction(0, "m", "mk", "k"),
    **dict.fromkeys(
        ["native_layer_norm", "layer_norm", "_fused_rms_norm", "rms_norm"]
        + ["native_layer_norm_backward", "_fused_rms_norm_backward"],
        _norm,
    ),
    **dict.fromkeys(
        ["scaled_dot_product_attention"]
        + [
            f"_scaled_dot_product_fused_attention_overrideable{end}"
            for end in ("", "_backward")
        ],
        _attention,
    ),
    "_transformer_encoder_layer_fwd": _encoder,
    **dict.fromkeys(
        ["_softmax_backward_data", "_log_softmax_backward_data"], _softmax_backward
    ),
    **dict.fromkeys(
        ["sigmoid_backward", "tanh_backward", "silu_backward", "gelu_backward"],
        _backward(),
    ),
    "threshold_backward": _backward(0),
    "softplus_backward": _backward(1, 20),
    "leaky_relu_backward": _backward(0.1, False),
    "mse_loss_backward": _mse_backward,
    "cat": _cat,
    "stack": _cat,
    "slice_scatter": _scatter_part,
    "select_scatter": _scatter_part,
    "constant_pad_nd": _pad,
    "repeat": _repeat,
    "_to_copy": _copy,
    "convert_element_type": _copy,
    "clamp": _clamp,
    "clip": _clamp,
    "topk": _topk,
    "sort": _sort,
    "sort_pairs": _sort_pairs,
    "lerp": _lerp,
}


def samples(op: Any, shape: Shape, dtype: torch.dtype) -> list[Call]:
    """Calls of an operator; those that the CPU refuses among them."""
    name = str(op).split(".", 1)[1]
    family = FAMILIES.get(name, FAMILIES.get(name.split(".")[0], _by_schema))
    try:
        return list(family(op, name, shape, dtype))
    except RuntimeError:  # An operator of the sample itself.
        return []
