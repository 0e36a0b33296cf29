# SPDX-License-Identifier: Apache-2.0
"""scaled_dot_product_attention stays one operator and is right in eager mode."""

import pytest
import torch
import torch.nn.functional as F
import torch_spyre
from functorch.compile import make_boxed_func
from numerics import device_value
from torch._dynamo.backends.common import aot_autograd
from torch.nn.attention import SDPBackend, sdpa_kernel

FUSED = torch.ops.aten._scaled_dot_product_fused_attention_overrideable.default


def inputs(heads=8, kv_heads=8, tokens=33, keys=33, rank=4):
    torch.manual_seed(0)
    shapes = [(2, heads, tokens, 64), (2, kv_heads, keys, 64), (2, kv_heads, keys, 64)]
    return [torch.randn(s[4 - rank :], dtype=torch.float16) for s in shapes]


CASES = {
    "plain": (dict(), dict()),
    "causal": (dict(), dict(is_causal=True)),
    "gqa": (dict(kv_heads=2), dict(is_causal=True, enable_gqa=True)),
    "scale": (dict(keys=65), dict(scale=0.3)),
    "rank3": (dict(rank=3), dict()),
    "bool_mask": (dict(keys=65), dict(attn_mask=torch.rand(33, 65) > 0.3)),
    "float_mask": (dict(), dict(attn_mask=torch.randn(2, 1, 33, 33).half())),
}


def move(arguments, device):
    return {
        k: v.to(device) if isinstance(v, torch.Tensor) else v
        for k, v in arguments.items()
    }


def reference(tensors, arguments):
    wide = {
        k: v.float() if isinstance(v, torch.Tensor) and v.is_floating_point() else v
        for k, v in arguments.items()
    }
    return F.scaled_dot_product_attention(*[t.float() for t in tensors], **wide)


@pytest.mark.parametrize("name", CASES)
def test_one_node_in_the_graph(name):
    shape, arguments = CASES[name]
    graphs = []

    def keep(graph, _):
        graphs.append(graph)
        return make_boxed_func(graph.forward)

    torch._dynamo.reset()
    tensors = inputs(**shape)
    backend = aot_autograd(fw_compiler=keep)
    compiled = torch.compile(F.scaled_dot_product_attention, backend=backend)
    result = compiled(*[t.to("spyre") for t in tensors], **move(arguments, "spyre"))
    targets = [n.target for n in graphs[0].graph.nodes if n.op == "call_function"]
    assert targets.count(FUSED) == 1
    assert not any("softmax" in str(t) or "bmm" in str(t) for t in targets)
    expected = reference(tensors, arguments)
    torch.testing.assert_close(result.cpu().float(), expected, atol=6e-3, rtol=6e-3)


@pytest.mark.parametrize("name", CASES)
def test_eager_forward_and_backward(name):
    shape, arguments = CASES[name]
    tensors = inputs(**shape)
    host = [device_value(t).float().requires_grad_() for t in tensors]
    device = [t.to("spyre").requires_grad_() for t in tensors]
    expected = reference(host, arguments)
    torch_spyre.reset_fallback_report()
    result = F.scaled_dot_product_attention(*device, **move(arguments, "spyre"))
    torch.testing.assert_close(result.cpu().float(), expected, atol=6e-3, rtol=6e-3)
    gradient = torch.randn_like(expected).half()
    expected.backward(device_value(gradient).float())
    result.backward(gradient.to("spyre"))
    assert torch_spyre.fallback_report() == {}
    for a, b in zip(device, host, strict=True):
        assert a.grad.stride() == a.stride()
        torch.testing.assert_close(a.grad.cpu().float(), b.grad, atol=1e-2, rtol=1e-2)


MASKED = {
    "bool": (lambda: torch.rand(2, 1, 33, 65) > 0.3, {}, False),
    "fixed": (lambda: torch.randn(33, 65), {}, False),
    "learned": (lambda: torch.randn(8, 33, 65), {}, True),
    "broadcast": (lambda: torch.randn(2, 1, 1, 65), dict(kv_heads=2), True),
    "one": (lambda: torch.randn(2, 8, 33, 1), {}, True),
    "rank3": (lambda: torch.randn(8, 1, 65), dict(kv_heads=2, rank=3), True),
    "hidden": (lambda: torch.zeros(33, 65).index_fill(0, ROWS, -INF), {}, True),
}
ROWS, INF = torch.tensor([0, 32]), float("inf")


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", MASKED)
def test_gradients_with_masks_stay_on_the_device(name, compiled):
    make, shape, is_learned = MASKED[name]
    tensors = [*inputs(keys=65, **shape), make()]
    if tensors[3].is_floating_point():
        tensors[3] = tensors[3].half()
    wanted = [True, True, True, is_learned]

    def leaves(device):
        moved = [t.to(device) for t in tensors]
        if device == "cpu":
            moved = [t.float() if t.is_floating_point() else t for t in moved]
        return [t.requires_grad_(w) for t, w in zip(moved, wanted, strict=True)]

    def call(q, k, v, mask):
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, enable_gqa="kv_heads" in shape
        )

    host, device = leaves("cpu"), leaves("spyre")
    expected = call(*host)
    gradient = device_value(torch.randn_like(expected).half()).half()
    torch_spyre.reset_fallback_report()
    torch._dynamo.reset()
    run = torch.compile(call, backend="spyre", dynamic=False) if compiled else call
    run(*device).backward(gradient.to("spyre"))
    assert torch_spyre.fallback_report() == {}
    # The CPU's own gradients of rows that see nothing are NaN.
    expected.nan_to_num().backward(gradient.float())
    for a, b, w in zip(device, host, wanted, strict=True):
        if w:
            actual, right = a.grad.cpu().float(), b.grad.nan_to_num()
            torch.testing.assert_close(actual, right, atol=1e-2, rtol=1e-2)


def test_fully_masked_rows_are_zero():
    q, k, v = (t.to("spyre") for t in inputs())
    mask = torch.ones(33, 33, dtype=torch.bool)
    mask[5] = False
    result = F.scaled_dot_product_attention(q, k, v, attn_mask=mask.to("spyre"))
    assert not result[:, :, 5].cpu().any()
    assert result.cpu().isfinite().all()


def test_rows_of_the_lowest_number_are_uniform():
    """Masks often hide with the lowest finite number: such rows are no zeros."""
    q, k, v = (t.float() for t in inputs())
    mask = torch.zeros(33, 33)
    mask[3] = torch.finfo(torch.float32).min
    actual = F.scaled_dot_product_attention(
        *[t.to("spyre") for t in (q, k, v)], attn_mask=mask.to("spyre")
    )
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    torch.testing.assert_close(actual.cpu(), expected, rtol=1e-5, atol=1e-5)


def test_strides_follow_the_query():
    q, k, v = (t.transpose(1, 2).contiguous().transpose(1, 2) for t in inputs())
    device = [t.to("spyre") for t in (q, k, v)]
    assert F.scaled_dot_product_attention(*device).stride() == q.stride()


@pytest.mark.parametrize(
    "change",
    [
        lambda q, k, v: (q, k, v, dict(dropout_p=0.5)),
        lambda q, k, v: (q[:, :, :0], k, v, {}),
        lambda q, k, v: (q, k[:1], v[:1], {}),
        lambda q, k, v: (q[0, 0], k[0, 0], v[0, 0], {}),
    ],
    ids=["dropout", "empty", "broadcast", "rank2"],
)
def test_what_the_fused_operator_cannot_do_decomposes(change):
    q, k, v, arguments = change(*[t.to("spyre") for t in inputs()])
    result = F.scaled_dot_product_attention(q, k, v, **arguments)
    assert result.shape == q.shape


@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("compiles", [False, True], ids=["eager", "compiled"])
def test_large_scores(causal, compiles):
    """Scores above 100, of which the weights depend on small differences."""
    torch.manual_seed(2)
    tensors = [(9 * torch.randn(2, 3, 40, 16)).half() for _ in range(3)]
    seed = torch.randn(2, 3, 40, 16).half()

    def results(q, k, v, seed):
        leaves = [t.detach().requires_grad_() for t in (q, k, v)]
        out = F.scaled_dot_product_attention(*leaves, is_causal=causal)
        return [out.detach(), *torch.autograd.grad(out, leaves, seed)]

    wide = [device_value(t) for t in (*tensors, seed)]
    assert (wide[0] @ wide[1].mT / 4).abs().max() > 300
    torch._dynamo.reset()
    run = torch.compile(results, backend="spyre") if compiles else results
    found = run(*[t.to("spyre") for t in (*tensors, seed)])
    for actual, expected in zip(found, results(*wide), strict=True):
        error = (actual.cpu().double() - expected).abs().max()
        # A weight is off by two roundings of DL16, and by those of what it weighs.
        assert error <= 2.0**-8 * expected.abs().max()


def test_gradients_of_rows_that_see_one_key():
    """A weight of 1 does not change, whatever the gradient of what it selects."""
    torch.manual_seed(0)
    rows = 40 * torch.eye(33, 64, dtype=torch.float16).expand(1, 4, 33, 64)
    v, start = (torch.randn(1, 4, 33, 64).half() for _ in range(2))
    q, k, v = (t.to("spyre").requires_grad_() for t in (rows, rows, v))
    start = start.to("spyre")
    F.scaled_dot_product_attention(q, k, v).backward(start)
    assert torch.equal(v.grad.cpu(), start.cpu())
    assert q.grad.abs().max() < 2.0**-10
    assert k.grad.abs().max() < 2.0**-10


@pytest.mark.parametrize("transform", ["vmap", "vmap of grad", "jvp", "hessian"])
def test_transforms(transform):
    """The fused operator has no rules for them: attention is taken apart."""

    def attend(x):
        return F.scaled_dot_product_attention(x[None], x[None] * 2, x[None])[0]

    def total(x):
        return attend(x).square().sum()

    function = {
        "vmap": torch.func.vmap(attend),
        "vmap of grad": torch.func.vmap(torch.func.grad(total)),
        "jvp": lambda x: torch.func.jvp(attend, (x[0],), (x[1],))[1],
        "hessian": lambda x: torch.func.hessian(total)(x[0]),
    }[transform]
    x = torch.randn(2, 3, 4, 8, generator=torch.Generator().manual_seed(0))
    actual = function(x.to("spyre")).cpu()
    with sdpa_kernel(SDPBackend.MATH):  # as the CPU has no rules either
        wanted = function(x.double())
    bound = 1e-5 * wanted.abs().max().item()
    torch.testing.assert_close(actual.double(), wanted, rtol=0, atol=bound)


def jagged(lengths, width, device, seed):
    draw = torch.Generator().manual_seed(seed)
    parts = [torch.randn(n, 2, width, generator=draw).to(device) for n in lengths]
    return torch.nested.nested_tensor(
        parts, layout=torch.jagged, device=device, requires_grad=True
    )


def attend_jagged(query, key, value, **options):
    query, key, value = (t.transpose(1, 2) for t in (query, key, value))
    return F.scaled_dot_product_attention(query, key, value, **options).transpose(1, 2)


def jagged_gradients(function, device):
    given = [
        jagged(lengths, width, device, seed)
        for seed, (lengths, width) in enumerate((((3, 5, 4), 16), ((6, 1, 2), 16)))
    ]
    result = function(given[0], given[1], given[1])
    result.values().square().sum().backward()
    return [t.cpu() for t in (result.values(), *(x.grad.values() for x in given))]


def test_attention_of_jagged_tensors(no_fallback):
    wanted = jagged_gradients(attend_jagged, "cpu")
    for a, e in zip(jagged_gradients(attend_jagged, "spyre"), wanted, strict=True):
        torch.testing.assert_close(a, e, rtol=2e-6, atol=2e-6)
    compiled = torch.compile(attend_jagged, backend="spyre", fullgraph=True)
    with torch.no_grad():
        x, y = (jagged(n, 16, "spyre", s) for s, n in enumerate(((3, 5, 4), (6, 1, 2))))
        result = compiled(x, y, y)
    torch.testing.assert_close(result.values().cpu(), wanted[0], rtol=2e-6, atol=2e-6)


def test_causal_attention_of_jagged_tensors(no_fallback):
    x = jagged((3, 5, 4), 16, "spyre", 0).detach()
    result = attend_jagged(x, x, x, is_causal=True)
    for actual, part in zip(result.unbind(), x.unbind(), strict=True):
        tensors = [part.cpu().transpose(0, 1)] * 3
        expected = F.scaled_dot_product_attention(*tensors, is_causal=True)
        torch.testing.assert_close(
            actual.cpu().transpose(0, 1), expected, rtol=0, atol=2e-6
        )
    y = jagged((6, 1, 2), 16, "spyre", 0).detach()
    with pytest.raises(RuntimeError, match="do not share their offsets"):
        attend_jagged(x, y, y, is_causal=True)


def test_strided_nested_tensors_are_refused():
    parts = [torch.ones(n, 4, device="spyre") for n in (2, 3)]
    for make in (torch.nested.nested_tensor, torch.nested.as_nested_tensor):
        with pytest.raises(NotImplementedError, match=r"layout=torch\.jagged"):
            make(parts)
    nested = torch.nested.nested_tensor([part.cpu() for part in parts])
    uses = [
        lambda: nested.to("spyre"),
        lambda: torch.nested.nested_tensor([[1.0], [2.0, 3.0]], device="spyre") + 1,
        lambda: torch.empty_like(nested, device="spyre").to_padded_tensor(0.0),
        lambda: torch.nested.to_padded_tensor(
            torch.empty_like(nested, device="spyre"), 0
        ),
    ]
    for use in uses:
        with pytest.raises(NotImplementedError, match=r"layout=torch\.jagged"):
            use()


def test_time_follows_the_number_of_tokens():
    """Rows of queries are cut into tiles, whatever divides their number: tiles of keys
    rescale sums that are as large as the result, in device memory.
    """

    def of_rows(*rows):
        heads = [x.view(1, -1, 8, 64).transpose(1, 2) for x in rows]
        return F.scaled_dot_product_attention(*heads, is_causal=True)

    def seconds(tokens):
        torch.manual_seed(tokens)
        rows = [torch.randn(tokens, 512).half().to("spyre") for _ in range(3)]
        with torch_spyre.profiler.profile() as trace:
            torch.compile(of_rows, backend="spyre", dynamic=False)(*rows)
            torch.spyre.synchronize()
        return sum(k.predicted_seconds for k in trace.kernels)

    whole = seconds(2048)
    for tokens in (1600, 1700, 1900):
        assert seconds(tokens) < 1.3 * whole, tokens
