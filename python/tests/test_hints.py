# SPDX-License-Identifier: Apache-2.0
"""Users' hints: named dimensions, tiles and work divisions."""

import gc
import re

import plan_bits  # noqa: F401  (sums do not depend on the plan)
import pytest
import torch
import torch.nn.functional as F
import torch_spyre
from numerics import (
    assert_contraction,
    assert_exact,
    compiled,
    device_value,
    on_host,
)
from torch_spyre import _C
from torch_spyre._inductor import get_op_hints
from torch_spyre._inductor.errors import Unsupported
from torch_spyre.compile_backend import compiled_parts
from torch_spyre.frontend import cache, hints
from torch_spyre.logging_config import get_logger

pytestmark = pytest.mark.usefixtures("no_fallback")


def half(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).half()


def sequence():
    """The sequence function of the part compiled last."""
    return compiled_parts()[-1].graph.print_ktir().split("func.func private")[0]


def mlp(hint):
    def function(x, up, down):
        with hint():
            return F.silu(x @ up) @ down

    return function


def test_tiles_follow_names():
    # Large enough that no sum is split between cores, which tiles never are.
    x, up, down = half(1024, 64), half(64, 128, seed=1), half(128, 70, seed=2)
    plain = compiled(lambda x, u, d: F.silu(x @ u) @ d)
    expected = plain(*[t.to("spyre") for t in (x, up, down)]).cpu()
    device = [t.to("spyre") for t in (x, up, down)]
    torch_spyre.name_tensor_dims(device[0], ["M", "K"])
    hinted = compiled(mlp(lambda: torch_spyre.spyre_hint(num_tiles_per_dim={"M": 8})))
    assert_exact(hinted(*device).cpu(), expected)
    assert sequence().count("scf.for") == 1
    assert "%c128" in sequence()


def test_a_hint_on_what_nothing_iterates_over_is_ignored(listen):
    x, up, down = half(64, 64), half(64, 128, seed=1), half(128, 70, seed=2)
    device = [t.to("spyre") for t in (x, up, down)]
    expected = compiled(lambda x, u, d: F.silu(x @ u) @ d)(*device).cpu()
    torch_spyre.declare_tensor_dim("elsewhere", 64)
    tiled = mlp(lambda: torch_spyre.spyre_hint(tiles={"elsewhere": 8}))
    divided = mlp(lambda: torch_spyre.spyre_hint(work_div={"elsewhere": 8}))
    # The second time, the program comes from the cache on disk.
    for function in (tiled, divided, tiled):
        cache._in_memory.clear()
        with listen(get_logger("spyre.inductor"), "WARNING") as records:
            assert_exact(compiled(function)(*device).cpu(), expected)
        own = [r for r in records if r.name == "spyre.inductor"]
        (text,) = [record.getMessage() for record in own]
        assert "hint ignored: no operation under it has dimension 'elsewhere'" in text
        assert f"test_hints.py:{mlp.__code__.co_firstlineno + 3}" in text
        records.clear()


def test_a_name_that_nobody_has_given():
    device = [t.to("spyre") for t in (half(64, 64), half(64, 8), half(8, 70))]
    for hint in ({"tiles": {"unnamed": 2}}, {"work_div": {"unnamed": 2}}):
        function = compiled(mlp(lambda hint=hint: torch_spyre.spyre_hint(**hint)))
        with pytest.raises(KeyError, match="'unnamed', which no declare_tensor_dim"):
            function(*device)


def test_hints_that_only_their_user_knows():
    x = half(64, 65).to("spyre")
    torch_spyre.name_tensor_dims(x, ["M", "N"])
    seen = []

    def function(x):
        with (
            torch_spyre.spyre_hint(work_div={"M": 2}, origin="layer 3"),
            torch_spyre.spyre_hint(tiles={"M": 2}, named_dims=["M", "N"]),
        ):
            return torch.exp(x)

    def remember(nodes, options):
        seen.extend(get_op_hints(node) for node in nodes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torch_spyre.frontend.hints.log_applied", remember)
        result = compiled(function)(x)
    assert_exact(result.cpu(), torch.exp(x).cpu())
    expected = {"work_div": {"M": 2}, "origin": "layer 3", "tiles": {"M": 2}}
    assert seen == [{**expected, "named_dims": ["M", "N"]}]


@pytest.mark.parametrize(
    ("key", "meant"),
    [("work_divs", "work_div"), ("num_tiles", "tiles"), ("tile", "tiles")]
    + [(key, None) for key in ("origin", "purpose", "layer")],
)
@pytest.mark.parametrize("in_graph", [True, False])
def test_a_mistyped_hint_is_told_once(listen, monkeypatch, key, meant, in_graph):
    """Others are somebody's own: their names are not like those of hints."""
    monkeypatch.setattr(hints, "_warned", set())
    x = half(64, 64).to("spyre")
    torch_spyre.name_tensor_dims(x, ["M", "N"])

    def function(x):
        with torch_spyre.spyre_hint(**{key: {"M": 4}}):
            return torch.exp(x) + 1

    with listen(get_logger("spyre.inductor"), "WARNING") as records:
        for _ in range(2):
            (compiled(function) if in_graph else function)(x)
    said = [r.getMessage() for r in records if "spyre_hint" in r.getMessage()]
    text = f"spyre_hint: {key} means nothing to the planner; did you mean {meant}?"
    assert said == ([text] if meant else [])


def test_hints_of_equal_operations_and_of_later_traces(listen):
    """Operations that a trace takes for one keep them, and new sizes have them."""

    def function(x):
        with torch_spyre.spyre_hint(work_div={"M": 4}):
            first, second = x + x, x + x
        return first * second

    torch._dynamo.reset()
    hinted = torch.compile(function, backend="inductor")
    for rows in (128, 256, 64):
        x = half(rows, 64).to("spyre")
        torch_spyre.name_tensor_dims(x, ["M", "N"])
        with listen(get_logger("spyre.inductor"), "INFO") as records:
            result = hinted(x)
        said = [r.getMessage() for r in records if "user-hint" in r.getMessage()]
        assert len(said) == 2
        assert all("work_div={'M': 4} of add" in text for text in said)
        double = x.cpu() + x.cpu()
        assert_exact(result.cpu(), (double.to("spyre") * double.to("spyre")).cpu())
        records.clear()


def test_names_go_with_their_storages():
    x = half(64, 65).to("spyre")
    torch_spyre.name_tensor_dims(x, ["rows", "columns"])
    torch_spyre.name_tensor_dims(x, ["M", "N"])
    view, identity = x[:5], _C.tensor_info(x)[0]
    del x
    gc.collect()
    assert hints.names_of(identity) == ((("M", 64),), (("N", 65),))
    del view
    gc.collect()
    assert not hints._names


def test_no_hint_changes_nothing():
    x = half(64, 65).to("spyre")

    def function(x):
        with torch_spyre.spyre_hint(), torch_spyre.spyre_hint(purpose=1):
            return torch.exp(x)

    assert_exact(compiled(function)(x).cpu(), torch.exp(x).cpu())


def test_nested_scopes():
    x, up, down = half(256, 64), half(64, 128, seed=1), half(128, 128, seed=2)
    device = [t.to("spyre") for t in (x, up, down)]
    torch_spyre.name_tensor_dims(device[0], ["M", "K"])
    torch_spyre.name_tensor_dims(device[2], ["H", "N"])

    def function(x, up, down):
        with torch_spyre.spyre_hint(tiles={"M": 4}):
            hidden = F.silu(x @ up)
            with torch_spyre.spyre_hint(slices={"N": 2}):
                return hidden @ down

    result = compiled(function)(*device).cpu()
    assert sequence().count("scf.for") == 3  # one of M; M and N
    expected = compiled(lambda x, u, d: F.silu(x @ u) @ d)(*device).cpu()
    assert_exact(result, expected)


def test_a_nested_scope_in_the_middle_is_refused():
    """What is before and after it runs in one loop, of which it would be a part."""
    x = half(64, 256).to("spyre")
    torch_spyre.name_tensor_dims(x, ["M", "N"])

    def function(x):
        with torch_spyre.spyre_hint(tiles={"M": 4}):
            first = x.exp()
            with torch_spyre.spyre_hint(tiles={"N": 2}):
                inner = -first
            return inner.sin()

    with pytest.raises(hints.RefusedHint, match="is under other tile hints") as error:
        compiled(function)(x)
    line = function.__code__.co_firstlineno + 4
    assert f"test_hints.py:{line}: error" in str(error.value)


def test_a_component_of_a_flattened_dimension():
    torch_spyre.declare_tensor_dim("heads", 4)
    torch_spyre.declare_tensor_dim("width", 64)
    x = half(5, 256)
    device = x.to("spyre")
    torch_spyre.name_tensor_dims(device, ["rows", "heads", "width"])

    def function(x):
        with torch_spyre.spyre_hint(work_div={"heads": 2}):
            return torch.softmax(x.view(5, 4, 64), -1)

    result = compiled(function)(device).cpu()
    kernels = compiled_parts()[-1].report()
    assert {kernel["num_cores"] for kernel in kernels} == {2}
    expected = compiled(lambda x: torch.softmax(x.view(5, 4, 64), -1))(device)
    assert_exact(result, expected.cpu())


@pytest.mark.parametrize(("heads", "tiles"), [(4, 2), (5, 3), (7, 7)])
@pytest.mark.parametrize("apart", [True, False])
def test_tiles_of_a_component(heads, tiles, apart):
    """Heads are cut where a view has taken them apart, and as parts of columns."""
    torch_spyre.declare_tensor_dim("heads", heads)
    torch_spyre.declare_tensor_dim("width", 64)
    x = half(5, heads * 64)
    device = x.to("spyre")
    torch_spyre.name_tensor_dims(device, ["rows", "heads", "width"])
    shape = (5, heads, 64) if apart else (5, heads * 64)

    def function(x):
        with torch_spyre.spyre_hint(num_tiles_per_dim={"heads": tiles}):
            return -torch.exp(x.view(shape))

    result = compiled(function)(device).cpu()
    assert "scf.for" in sequence()
    expected = compiled(lambda x: -torch.exp(x.view(shape)))(device).cpu()
    assert_exact(result, expected)


def test_inner_parts_are_refused():
    """A tile of a flattened dimension's inner part is no box."""
    torch_spyre.declare_tensor_dim("heads", 4)
    torch_spyre.declare_tensor_dim("width", 64)
    device = half(5, 256).to("spyre")
    torch_spyre.name_tensor_dims(device, ["rows", "heads", "width"])

    def function(x):
        with torch_spyre.spyre_hint(num_tiles_per_dim={"width": 2}):
            return torch.exp(x)

    with pytest.raises(Exception, match="only inside of larger steps"):
        compiled(function)(device)


@pytest.mark.parametrize("rows", [63, 65, 127])
def test_unequal_tiles(rows):
    x = half(rows, 130)
    device = x.to("spyre")
    torch_spyre.name_tensor_dims(device, ["M", "N"])

    def function(x):
        with torch_spyre.spyre_hint(num_tiles_per_dim={"M": 4}):
            return torch.softmax(x, -1), torch.argmax(x, 0)

    results = compiled(function)(device)
    assert "scf.for" in sequence()
    expected = compiled(lambda x: (torch.softmax(x, -1), torch.argmax(x, 0)))(device)
    for result, value in zip(results, expected, strict=True):
        assert_exact(result.cpu(), value.cpu())


def test_operations_that_nothing_connects():
    x = half(256, 130)
    device = x.to("spyre")
    torch_spyre.name_tensor_dims(device, ["M", "N"])

    def function(x):
        with torch_spyre.spyre_hint(num_tiles_per_dim={"M": 4}):
            return torch.exp(x), torch.sin(x), x.sum(-1)

    results = compiled(function)(device)
    loop = sequence().split("scf.for")[1].split("\n    }")[0]
    assert loop.count("call @") == 3
    expected = compiled(lambda x: (torch.exp(x), torch.sin(x), x.sum(-1)))(device)
    for result, value in zip(results, expected, strict=True):
        assert_exact(result.cpu(), value.cpu())


def test_an_empty_tensor_is_not_cut():
    device = torch.zeros(0, 64).half().to("spyre")
    torch_spyre.name_tensor_dims(device, ["M", "N"])

    def function(x):
        with torch_spyre.spyre_hint(num_tiles_per_dim={"M": 4}):
            return torch.exp(x) + 1

    assert compiled(function)(device).shape == (0, 64)


def test_backward_is_tiled_too():
    x, weight = half(128, 64), half(64, 64, seed=1)
    grads = []
    for hinted in (False, True):
        device = [t.to("spyre").requires_grad_() for t in (x, weight)]
        torch_spyre.name_tensor_dims(device[0], ["M", "K"])

        def function(x, w):
            if not hinted:  # noqa: B023
                return torch.tanh(x @ w)
            with torch_spyre.spyre_hint(num_tiles_per_dim={"M": 2}):
                return torch.tanh(x @ w)

        compiled(function)(*device).backward(torch.ones(128, 64).half().to("spyre"))
        grads.append([t.grad.cpu() for t in device])
    for a, b in zip(*grads, strict=True):
        assert_exact(a, b)


def test_work_division():
    x = half(64, 64).to("spyre")
    torch_spyre.name_tensor_dims(x, ["M", "N"])

    def function(x):
        with torch_spyre.spyre_hint(work_div={"M": 4}):
            return torch.exp(x)

    compiled(function)(x)
    assert compiled_parts()[-1].report()[0]["num_cores"] == 4


def test_tiles_of_the_compiler_keep_a_work_division():
    """500 rows, which fit a small LX, are no 31 slices."""
    x = half(4000, 512)
    device = x.to("spyre")
    torch_spyre.name_tensor_dims(device, ["M", "N"])

    def function(x):
        with torch_spyre.spyre_hint(work_div={"M": 31}):
            e = torch.exp(x)
            return e + torch.abs(e)

    options = {"device": {"lxBytesPerCore": 65536}}
    result = compiled(function, options=options)(device).cpu()
    assert "scf.for" in sequence()
    kernels = compiled_parts()[-1].report()
    assert {kernel["num_cores"] for kernel in kernels} == {31}
    assert_exact(result, compiled(lambda x: 2 * torch.exp(x))(device).cpu())


@pytest.mark.parametrize("k", [65, 251, 4099])
def test_work_division_of_a_reduction(k):
    a, b = half(9, k), half(k, 67, seed=1)
    device = [t.to("spyre") for t in (a, b)]
    torch_spyre.name_tensor_dims(device[0], ["M", "K"])

    def function(x, y):
        with torch_spyre.spyre_hint(work_div={"M": 3, "K": 2}):
            return x @ y, x.sum(-1), x.amax(-1)

    product, total, largest = [t.cpu() for t in compiled(function)(*device)]
    kernels = compiled_parts()[-1].report()
    assert [kernel["num_cores"] for kernel in kernels] == [6] * len(kernels)
    exact_a, exact_b = device_value(a), device_value(b)
    assert_contraction(product, exact_a @ exact_b, k, exact_a.abs() @ exact_b.abs())
    assert_contraction(total, exact_a.sum(-1), k, exact_a.abs().sum(-1))
    assert_exact(largest, on_host(exact_a.amax(-1), torch.float16))


def test_a_reduction_that_cannot_be_split():
    x = half(8, 256).to("spyre")
    torch_spyre.name_tensor_dims(x, ["M", "K"])

    def function(x):
        with torch_spyre.spyre_hint(work_div={"K": 2}):
            return x.argmax(-1)

    with pytest.raises(Exception, match="cannot be combined"):
        compiled(function)(x)


@pytest.mark.parametrize(
    ("cores", "message"),
    [
        ({"M": 9, "K": 4}, "9 x 1 x 4 slices, which exceeds SENCORES (32 cores)"),
        (
            {"M": 10},
            "its 9 iterations are not evenly divisible into that many, nor with a smaller last one; possible: ",
        ),
        (
            {"K": 5},
            "its 4 sticks are not evenly divisible into that many, nor with a smaller last one; possible: 1, 2, 4",
        ),
    ],
    ids=str,
)
def test_work_divisions_that_cannot_be(cores, message):
    """The error names the line of the program and what would do."""
    x, y = (half(9, 256).to("spyre"), half(256, 64).to("spyre"))
    torch_spyre.name_tensor_dims(x, ["M", "K"])

    def function(x, y):
        with torch_spyre.spyre_hint(work_div=cores):
            return x @ y

    with pytest.raises(Unsupported) as error:
        compiled(function)(x, y)
    assert message in str(error.value)
    assert isinstance(error.value, _C.SpyreError)
    line = function.__code__.co_firstlineno + 2
    assert f"test_hints.py:{line}" in str(error.value)


def test_one_reduction_is_divided():
    x = half(8, 16, 128).to("spyre")
    torch_spyre.name_tensor_dims(x, ["M", "K", "L"])

    def function(x):
        with torch_spyre.spyre_hint(work_div={"K": 2, "L": 2}):
            return x.sum((1, 2))

    with pytest.raises(Unsupported, match="splits the reduction dimensions 1 and 2"):
        compiled(function)(x)


def test_a_work_division_that_superdsc_cannot_say():
    x = half(9, 64).to("spyre")
    torch_spyre.name_tensor_dims(x, ["M", "N"])

    def function(x):
        with torch_spyre.spyre_hint(work_div={"M": 2}):
            return torch.exp(x)

    assert_exact(compiled(function)(x).cpu(), torch.exp(x).cpu())
    assert compiled_parts()[-1].report()[0]["num_cores"] == 2
    with pytest.raises(
        Exception, match="equal ones, which SuperDSC needs; possible: 1, 3, 9"
    ):
        compiled(function, options={"superdsc_compatible": True})(x)


@pytest.mark.parametrize(
    "arguments",
    [
        {"tiles": {"M": 0}},
        {"tiles": {"M": True}},
        {"tiles": {"M": 1 << 63}},
        {"tiles": {1: 2}},
        {"work_div": {"M": -1}},
        {"named_dims": ["M", None]},
        {"work_div": {"M": 0}},
        {"work_div": {"M": True}},
        {"work_div": {"M": 2.0}},
        {"tiles": {"M": 2}, "slices": {"M": 2}},
        {"tiles": 3},
        {"work_div": ["M", 2]},
        {"named_dims": "M"},
    ],
)
def test_nonsense_is_an_error(arguments):
    with pytest.raises(ValueError) as error:
        torch_spyre.spyre_hint(**arguments)
    assert isinstance(error.value, Unsupported)
    # The same error in a compiled function, from Dynamo or not.
    x = half(64, 64).to("spyre")
    torch_spyre.name_tensor_dims(x, ["M", "N"])

    def function(x):
        with torch_spyre.spyre_hint(**arguments):
            return torch.exp(x)

    with pytest.raises(Unsupported, match=re.escape(str(error.value))):
        compiled(function, fullgraph=True)(x)


def test_names_are_a_list():
    with pytest.raises(ValueError, match="must be a list, not 'MN'"):
        torch_spyre.name_tensor_dims(half(64, 64).to("spyre"), "MN")


@pytest.mark.parametrize(
    ("cores", "text"),
    [(0, "must be positive"), (-1, "must be positive"), (True, "must be an integer")]
    + [(2.0, "must be an integer"), ("2", "must be an integer")],
)
def test_wrong_numbers_of_cores_are_unsupported(cores, text):
    with pytest.raises(Unsupported, match=text):
        torch_spyre.spyre_hint(work_div={"M": cores})


def test_hints_that_are_applied_are_logged(listen):
    x = half(64, 130).to("spyre")
    torch_spyre.name_tensor_dims(x, ["M", "N"])

    def function(x):
        with torch_spyre.spyre_hint(work_div={"M": 4}):
            return x + x

    with listen(get_logger("spyre.inductor"), "INFO") as records:
        for _ in range(2):  # Traced again, the hint is still there.
            torch._dynamo.reset()
            compiled(function)(x)
            assert compiled_parts()[-1].report()[0]["num_cores"] == 4
    texts = [record.getMessage() for record in records]
    applied = [text for text in texts if "user-hint" in text]
    assert len(applied) == 2 and "work_div={'M': 4}" in applied[0]


def test_names_must_cover_the_storage():
    x = torch.zeros(4, 6).to("spyre")
    with pytest.raises(ValueError, match="left over"):
        torch_spyre.name_tensor_dims(x, ["A1", "B1", "C1"])
    with pytest.raises(ValueError, match="do not multiply"):
        torch_spyre.name_tensor_dims(x, ["A1"])
    torch_spyre.declare_tensor_dim("four", 4)
    with pytest.raises(ValueError, match="do not multiply"):
        torch_spyre.name_tensor_dims(x, ["A1", "four"])
    with pytest.raises(TypeError):
        torch_spyre.name_tensor_dims(torch.zeros(4), ["A1"])
    with pytest.raises(ValueError, match="identifier"):
        torch_spyre.declare_tensor_dim("no name", 4)
    with pytest.raises(ValueError, match="positive"):
        torch_spyre.declare_tensor_dim("N", 0)
