# SPDX-License-Identifier: Apache-2.0
"""One program for many sizes of inputs that are views of what was made."""

import pytest
import torch
from inputs import values
from numerics import assert_exact, compiled, poisoned
from test_sizes import num_sizes, parts_since
from torch_spyre.compile_backend import compiled_parts

#: How the input lies on what was made: sizes of that, where None is what varies.
VIEWS = {
    "transposed": ((None, 70), lambda x: x.t()),
    "heads": ((2, None, 4, 16), lambda x: x.transpose(1, 2)),
    "heads of rows": ((1, None, 64), lambda x: x.view(1, -1, 4, 16).transpose(1, 2)),
    "columns": ((None, 130), lambda x: x[:, :70]),
    "columns of batches": ((3, None, 130), lambda x: x[..., 60:]),
    "one more dimension": ((None, 70), lambda x: x[None]),
    "one dimension fewer": ((1, None, 70), lambda x: x[0]),
    "repeated": ((None, 1), lambda x: x.expand(-1, 7)),
    "permuted": ((None, 5, 66), lambda x: x.permute(2, 0, 1)),
    "two sizes": ((None, None), lambda x: x.t()),
    "halves of rows": ((None, 8), lambda x: x.view(-1, 4)),
    "halves of rows in columns": ((None, 130), lambda x: x.view(-1, 65).t()),
    "rows of batches": ((3, None, 70), lambda x: x.flatten(0, 1)),
    "rows of any number of batches": ((None, 5, 70), lambda x: x.flatten(0, 1)),
    "all elements": ((None, 70), lambda x: x.view(-1)),
}
#: How many classes of sizes a dimension has that counts several of what was made: as
#: many programs, and one for the first size.
COUNTED = {"rows of batches": 2, "rows of any number of batches": 2, "all elements": 4}
#: They grow, and shrink: no program may be for the first of them only.
SIZES = (5, 17, 64, 65, 3, 130, 200, 7)


@pytest.mark.parametrize("name", VIEWS)
def test_views_share_a_program(name):
    shape, view = VIEWS[name]
    f = compiled(lambda x: x * 2 + 1, dynamic=True)
    before = len(compiled_parts())
    for seed, size in enumerate(SIZES):
        sizes = [size if s is None else s for s in shape]
        made = values(sizes, torch.float16, seed).round()
        placed = view(poisoned(made.to("spyre")))
        assert_exact(f(placed).cpu(), view(made) * 2 + 1, f"s = {size}")
    programs = parts_since(before)
    assert len(programs) <= 1 + COUNTED.get(name, 1)
    assert num_sizes(programs[-1]) >= 1


def test_rows_of_a_buffer_that_stays():
    """Its size is a number, though the first call takes all of it."""
    f = compiled(lambda x: x * 2 + 1, dynamic=True)
    made = values((130, 70), torch.float16, 0).round()
    buffer = poisoned(made.to("spyre"))
    for size in (130, 5, 64, 129, 130, 3):
        assert_exact(f(buffer[:size]).cpu(), made[:size] * 2 + 1, f"s = {size}")
