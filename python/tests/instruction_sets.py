# SPDX-License-Identifier: Apache-2.0
"""Prints digests of what random programs compute, one line per result.

Called with ``whole`` or ``fractions``, the first seed and the number of programs.
``SPYRE_CPU_CAPABILITY`` chooses the tile kernels, which ``test_instruction_sets.py``
compares. Operations of ``LAST`` are done on fractions only.
"""

import hashlib
import sys
import warnings
from dataclasses import replace

import torch
from random_operators import OPERATORS
from random_programs import Program, draw_program

#: What follows a program, so that values are rounded, reduced and approximated.
LAST = {
    "exp": torch.exp,
    "tanh": torch.tanh,
    "gelu": torch.nn.functional.gelu,
    "reciprocal": torch.reciprocal,
    "rsqrt": lambda x: torch.rsqrt(x.abs() + 0.1),
    "sum": lambda x: x.sum(-1),
    "sum of columns": lambda x: x.sum(0),
    "mean": torch.mean,
    "amax": lambda x: x.amax(-1),
    "amin": lambda x: x.amin(-1),
    "share": lambda x: x / (x.abs().sum(-1, keepdim=True) + 0.1),
    "quotient": lambda x: (x - 1.0) / (x.abs() + 0.3) * x,
    "softmax": lambda x: x.softmax(-1),
    "layer norm": lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]),
    "product": lambda x: x.reshape(-1, x.shape[-1]) @ x.reshape(-1, x.shape[-1]).T,
}


def with_fractions(program: Program) -> Program:
    """The program on floats that the formats do not hold exactly."""
    windows = []
    for window in program.windows:
        buffer = window.buffer
        if buffer.dtype.is_floating_point:
            buffer = replace(buffer, formula=f"({buffer.formula}) * 0.3717")
        windows.append(replace(window, buffer=buffer))
    return replace(program, windows=tuple(windows))


def digest(value: torch.Tensor) -> str:
    """Of the shape and bits; numbers that are none are all the same."""
    value = value.cpu().clone(memory_format=torch.contiguous_format)
    if value.is_floating_point():
        value = torch.where(value.isnan(), torch.full_like(value, torch.nan), value)
    data = value.view(-1).view(torch.uint8).numpy().tobytes()
    return f"{tuple(value.shape)} {hashlib.sha256(data).hexdigest()[:16]}"


def main() -> None:
    warnings.simplefilter("ignore")
    has_fractions = {"whole": False, "fractions": True}[sys.argv[1]]
    first, count = map(int, sys.argv[2:])
    for seed in range(first, first + count):
        program = draw_program(seed, OPERATORS)
        if has_fractions:
            program = with_fractions(program)
        function, arguments = program.functions()
        results = function(*arguments("spyre"))
        for number, result in enumerate(results):
            if not isinstance(result, torch.Tensor):
                continue
            print(f"seed {seed}, result {number}: {digest(result)}")
            floats = result.dtype in (torch.float16, torch.float32)
            if not (has_fractions and floats and result.dim() and result.numel()):
                continue
            for name, function_of in LAST.items():
                last = digest(function_of(result))
                print(f"seed {seed}, {name} of result {number}: {last}")


if __name__ == "__main__":
    main()
