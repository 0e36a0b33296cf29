# SPDX-License-Identifier: Apache-2.0
"""Random programs on small whole numbers, where every rounding is exact.

Compiled and eager results equal the CPU's to the bit, arguments included. By hand:
``SPYRE_RANDOM_GRAPHS=2000 SPYRE_RANDOM_SEED=1`` runs that many from that seed on.
"""

import os
import random

import pytest
import torch
from numerics import LARGEST_EXACT, assert_exact, compiled

COUNT = int(os.environ.get("SPYRE_RANDOM_GRAPHS", 16))
SEED = int(os.environ.get("SPYRE_RANDOM_SEED", 0))
SIZES = [1, 2, 3, 5, 7, 16, 31, 63, 64, 65, 127, 130]
MOST = 1 << 14


class Program:
    """A straight-line program built while it runs on the CPU."""

    def __init__(self, seed, gradient=False):
        self.random = random.Random(seed)
        self.gradient = gradient
        self.lines = []
        self.names = {}
        self.arguments = []
        self.count = 0

    # --- choices ---

    def shape(self):
        rank = self.random.choice([0, 1, 1, 2, 2, 2, 3, 3, 4])
        while True:
            sizes = [self.random.choice(SIZES) for _ in range(rank)]
            if torch.Size(sizes).numel() <= MOST:
                return sizes

    def tensor(self, shape, dtype):
        torch.manual_seed(self.random.randrange(1 << 30))
        if dtype == torch.bool:
            return torch.randint(0, 2, shape).bool()
        return torch.randint(-3, 4, shape).to(dtype)

    def argument(self, shape=None, dtype=None):
        """A new argument; sometimes a view that is not contiguous."""
        r = self.random
        if self.gradient and dtype is None:
            dtype = torch.float32
        dtype = dtype or r.choice(
            [torch.float16] * 5
            + [torch.float32, torch.bfloat16, torch.int32, torch.int64, torch.bool]
        )
        shape = self.shape() if shape is None else list(shape)
        kind = r.random()
        if shape and kind < 0.15:
            order = list(range(len(shape)))
            r.shuffle(order)
            base = [0] * len(shape)
            for place, dim in enumerate(order):
                base[place] = shape[dim]
            inverse = [order.index(d) for d in range(len(shape))]
            value = self.tensor(base, dtype).permute(inverse)
        elif shape and kind < 0.25:
            dim = r.randrange(len(shape))
            base = list(shape)
            base[dim] += 3
            value = self.tensor(base, dtype).narrow(dim, 2, shape[dim])
        else:
            value = self.tensor(shape, dtype)
        name = f"x{len(self.arguments)}"
        self.arguments.append((name, value))
        self.names[name] = value.clone(memory_format=torch.preserve_format)
        return name

    def pick(self, test=lambda t: True):
        names = [n for n, t in self.names.items() if test(t)]
        if not names:
            return None
        # Later values more often: deep programs.
        return self.random.choice(names[-3:] if self.random.random() < 0.7 else names)

    def partner(self, t):
        """A value that broadcasts with t: an old one, or a new argument."""
        r = self.random
        names = [
            n
            for n, u in self.names.items()
            if u.dtype == t.dtype and self.broadcasts(t, u)
        ]
        if names and r.random() < 0.7:
            return r.choice(names)
        shape = [s if r.random() < 0.7 else 1 for s in t.shape]
        return self.argument(shape[r.randrange(len(shape) + 1) :], t.dtype)

    @staticmethod
    def broadcasts(a, b):
        try:
            shape = torch.broadcast_shapes(a.shape, b.shape)
        except RuntimeError:
            return False
        return shape.numel() <= MOST

    # --- steps: an expression, or None ---

    def pointwise(self):
        r = self.random
        x = self.pick()
        t = self.names[x]
        if t.dtype == torch.bool:
            y = self.partner(t)
            return r.choice([f"{x} & {y}", f"{x} | {y}", f"{x} ^ {y}", f"~{x}"])
        unary = ["-{0}", "{0}.abs()", "{0} + 1", "2 - {0}", "{0} * -2", "{0}.sign()"]
        unary += [
            "{0}.clamp(-2, 3)",
            "{0}.relu()",
            "{0} > 0",
            "{0} == 1",
            "{0}.square()",
        ]
        if t.is_floating_point():
            unary += ["{0}.floor()", "{0} * 0.5 * 2", "{0}.round()", "{0}.trunc()"]
        if r.random() < 0.5:
            return r.choice(unary).format(x)
        y = self.partner(t)
        binary = ["{0} + {1}", "{0} - {1}", "{0} * {1}", "torch.maximum({0}, {1})"]
        binary += ["torch.minimum({0}, {1})", "{0} >= {1}", "{0} != {1}"]
        binary += ["torch.where({0} > {1}, {0}, 1)", "torch.where({1} < 0, {1}, {0})"]
        return r.choice(binary).format(x, y)

    def convert(self):
        x = self.pick()
        dtype = self.random.choice(list(LARGEST_EXACT))
        if (
            dtype != torch.bool
            and self.names[x].double().abs().max() > LARGEST_EXACT[dtype]
        ):
            return None  # PyTorch would round
        return f"{x}.to({dtype})"

    def view(self):
        r = self.random
        x = self.pick(lambda t: t.dim() > 0)
        if x is None:
            return None
        t = self.names[x]
        dim = r.randrange(t.dim())
        size = t.shape[dim]
        kind = r.randrange(9)
        if kind == 0:
            order = list(range(t.dim()))
            r.shuffle(order)
            return f"{x}.permute({order})"
        if kind == 1:
            start = r.randrange(size)
            stop = r.randrange(start + 1, size + 1)
            step = r.choice([1, 1, 2, 3])
            return f"{x}[{':, ' * dim}{start}:{stop}:{step}]"
        if kind == 2:
            return f"{x}.select({dim}, {r.randrange(size)})"
        if kind == 3:
            return f"{x}.unsqueeze({dim})"
        if kind == 4:
            return f"{x}.reshape(-1)"
        if kind == 5:
            for factor in r.sample([2, 3, 5, 7, 8], 5):
                if size % factor == 0:
                    return f"{x}.unflatten({dim}, ({factor}, {size // factor}))"
            return None
        if kind == 6 and dim + 1 < t.dim():
            return f"{x}.flatten({dim}, {dim + 1})"
        if kind == 7 and t.numel() < 2048:
            return f"{x}.unsqueeze({dim}).expand({self.expanded(t, dim)})"
        if kind == 8 and t.dim() > 1:
            other = r.randrange(t.dim())
            return f"{x}.transpose({dim}, {other}).contiguous()"
        return None

    def expanded(self, t, dim):
        sizes = list(t.shape)
        sizes.insert(dim, self.random.choice([2, 3, 5]))
        return sizes

    def movement(self):
        r = self.random
        x = self.pick(lambda t: 0 < t.dim() < 5 and t.numel() < 4096)
        if x is None:
            return None
        t = self.names[x]
        dim = r.randrange(t.dim())
        kind = r.randrange(7)
        if kind == 0:
            shape = list(t.shape)
            shape[dim] = r.choice(SIZES[:8])
            if torch.Size(shape).numel() > MOST:
                return None
            y = self.argument(shape, t.dtype)
            return f"torch.cat([{x}, {y}, {x}], {dim})"
        if kind == 1:
            return f"torch.stack([{x}, {x}], {dim})"
        if kind == 2:
            pads = [r.randrange(4) for _ in range(2 * (t.dim() - dim))]
            return f"torch.nn.functional.pad({x}, {pads}, value=1)"
        if kind == 3:
            return f"{x}.flip({dim})"
        if kind == 4:
            return f"{x}.roll({r.randrange(1, 5)}, {dim})"
        if kind == 5:
            index = self.argument([r.choice(SIZES[:6])], torch.int64)
            self.names[index].remainder_(t.shape[dim])
            self.arguments[-1] = (index, self.names[index].clone())
            return f"{x}.index_select({dim}, {index})"
        repeats = [1] * t.dim()
        repeats[dim] = 2
        return f"{x}.repeat({repeats})"

    def reduction(self):
        r = self.random
        x = self.pick(lambda t: t.dim() > 0)
        if x is None:
            return None
        t = self.names[x]
        dims = r.sample(range(t.dim()), r.randrange(1, t.dim() + 1))
        keep = r.choice([True, False])
        if t.dtype == torch.bool:
            return f"{x}.{r.choice(['any', 'all'])}({dims[0]}, {keep})"
        if r.random() < 0.2:
            name = r.choice(["argmax", "argmin"])
            # Ties: any index may win on the CPU; make the values distinct.
            size = t.shape[dims[0]]
            if size > 60 or t.dtype == torch.bfloat16:
                return None
            steps = f"torch.arange({size}, device={x}.device)"
            steps += f".view({[-1] + [1] * (t.dim() - 1 - dims[0])}).to({x}.dtype)"
            return f"({x}.clamp(-3, 3) * {size} + {steps}).{name}({dims[0]}, {keep})"
        # Equal extremes share the gradient: not whole numbers.
        if r.random() < 0.5 and not self.gradient:
            name = r.choice(["amax", "amin"])
            return f"{x}.{name}({dims}, {keep})"
        return f"{x}.sum({dims}, {keep})"

    def matmul(self):
        r = self.random
        x = self.pick(lambda t: t.dim() in (2, 3, 4) and t.is_floating_point())
        if x is None:
            return None
        t = self.names[x]
        shape = [t.shape[-1], r.choice(SIZES)]
        if t.dim() > 2 and r.random() < 0.5:
            shape = [*t.shape[:-2], *shape]
        if torch.Size([*t.shape[:-1], shape[-1]]).numel() > MOST:
            return None
        if torch.Size(shape).numel() > MOST:
            return None
        y = self.argument(shape, t.dtype)
        return f"{x}.clamp(-2, 2) @ {y}"

    def update(self):
        """Writes in place: an argument, a value or a part of one."""
        r = self.random
        x = self.pick(lambda t: t.dtype != torch.bool and self.dense(t))
        if x is None:
            return None
        t = self.names[x]
        target = x
        if t.dim() and r.random() < 0.6:
            dim = r.randrange(t.dim())
            start = r.randrange(t.shape[dim])
            stop = r.randrange(start + 1, t.shape[dim] + 1)
            target = f"{x}[{':, ' * dim}{start}:{stop}]"
        return f"{target}.{r.choice(['add_(1)', 'mul_(2)', 'fill_(3)', 'neg_()'])}"

    @staticmethod
    def dense(t):
        """No two elements at one place."""
        return all(s > 0 for s, n in zip(t.stride(), t.shape, strict=True) if n > 1)

    # --- the program ---

    def fits(self, value):
        if value.dtype not in LARGEST_EXACT or value.numel() > MOST or value.dim() > 5:
            return False
        return (
            value.numel() > 0
            and value.double().abs().max() <= LARGEST_EXACT[value.dtype]
        )

    def step(self):
        kinds = [self.pointwise] * 4 + [self.view] * 3 + [self.movement] * 2
        kinds += [self.reduction] * 2 + [self.matmul]
        if not self.gradient:
            kinds += [self.convert, self.update]
        before = len(self.arguments), dict(self.names)
        expression = self.random.choice(kinds)()
        if expression is not None:
            saved = {n: t.clone() for n, t in self.names.items()}
            values = {**self.names, "torch": torch}
            value = eval(expression, values)
            everything = [value, *self.names.values()]
            if all(self.fits(v) for v in everything):
                name = f"v{self.count}"
                self.count += 1
                self.lines.append(f"{name} = {expression}")
                self.names[name] = value
                return
            for n, t in self.names.items():
                if not torch.equal(t, saved[n]):
                    t.copy_(saved[n])
        del self.arguments[before[0] :]
        self.names = before[1]

    def build(self, steps):
        self.argument()
        self.argument()
        while len(self.lines) < steps:
            self.step()
        results = [f"v{steps - 1}"]
        results += self.random.sample(
            [f"v{i}" for i in range(steps)], self.random.randrange(1, 4)
        )
        names = ", ".join(name for name, _ in self.arguments)
        body = "\n    ".join([*self.lines, f"return {', '.join(results)},"])
        return f"def program({names}):\n    {body}\n"


def run_program(seed):
    program = Program(seed)
    source = program.build(random.Random(seed).randrange(3, 30))
    scope = {"torch": torch}
    exec(source, scope)
    function = scope["program"]

    def host_arguments():
        return [
            torch.empty_strided(v.shape, v.stride(), dtype=v.dtype).copy_(v)
            for _, v in program.arguments
        ]

    wanted_arguments = host_arguments()
    wanted = function(*wanted_arguments)
    for way, call in ("eager", function), ("compiled", compiled(function)):
        arguments = []
        for _, v in program.arguments:
            # A view on the device, too, where it is one on the host.
            storage = torch.as_strided(
                v, (v.untyped_storage().nbytes() // v.element_size(),), (1,), 0
            )
            on_device = storage.to("spyre")
            arguments.append(
                on_device.as_strided(v.shape, v.stride(), v.storage_offset())
            )
        where = f"seed {seed}, {way}:\n{source}"
        try:
            results = call(*arguments)
        except Exception as error:
            raise AssertionError(f"{where}{error}") from error
        for i, (actual, expected) in enumerate(zip(results, wanted, strict=True)):
            assert_exact(actual.cpu(), expected, f"{where}result {i}")
        for (name, _), actual, expected in zip(
            program.arguments, arguments, wanted_arguments, strict=True
        ):
            assert_exact(actual.cpu(), expected, f"{where}argument {name}")


def run_gradient(seed):
    program = Program(seed, gradient=True)
    source = program.build(random.Random(seed).randrange(3, 16))
    scope = {"torch": torch}
    exec(source, scope)

    def gradients(function, device):
        arguments = [
            v.clone().to(device).requires_grad_(v.is_floating_point())
            for _, v in program.arguments
        ]
        results = [r for r in function(*arguments) if r.requires_grad]
        if not results:
            return None
        # Gradients that are neither equal nor contiguous.
        weights = [
            torch.arange(r.numel(), device=device).remainder(3).to(r.dtype)
            for r in results
        ]
        loss = [
            (r.reshape(-1) * w).sum() for r, w in zip(results, weights, strict=True)
        ]
        sum(loss).backward()
        return [a.grad for a in arguments]

    wanted = gradients(scope["program"], "cpu")
    if wanted is None:
        return
    exact = LARGEST_EXACT[torch.float32]
    if any(g is not None and g.abs().max() > exact for g in wanted):
        return
    for way in "eager", "compiled":
        function = scope["program"]
        where = f"gradient, seed {seed}, {way}:\n{source}"
        try:
            actual = gradients(
                compiled(function) if way == "compiled" else function, "spyre"
            )
        except Exception as error:
            raise AssertionError(f"{where}{error}") from error
        for (name, _), a, e in zip(program.arguments, actual, wanted, strict=True):
            assert (a is None) == (e is None), f"{where}argument {name}"
            if a is not None:
                assert_exact(a.cpu(), e, f"{where}argument {name}")


@pytest.mark.filterwarnings("ignore:.*has no spyre kernel")
@pytest.mark.parametrize("seed", range(SEED, SEED + COUNT))
def test_random_gradient(seed):
    run_gradient(seed)


@pytest.mark.filterwarnings("ignore:.*has no spyre kernel")
@pytest.mark.parametrize("seed", range(SEED, SEED + COUNT))
def test_random_program(seed):
    run_program(seed)
