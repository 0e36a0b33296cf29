# SPDX-License-Identifier: Apache-2.0
"""Every operation of linalg, tensor and scf in KTIR's list, memref.subview and
affine's, on every element type, against numpy. Values are small: each result is exact in
each type.
"""

import numpy as np
import pytest
from commands import needs_tools
from ktir_runs import results
from ktir_text import function, load, store
from runtime_operations import CASES, FLOAT_TYPES, INT_TYPES, Element, M, N, cases

pytestmark = needs_tools


def fp8_values(exponent_bits: int, fraction_bits: int) -> np.ndarray:
    """The value of each of the 256 codes; not finite where the format says so."""
    code = np.arange(256)
    fraction = code & ((1 << fraction_bits) - 1)
    exponent = (code >> fraction_bits) & ((1 << exponent_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    scale = np.ldexp(1.0, np.maximum(exponent, 1) - bias - fraction_bits)
    value = scale * (fraction + np.where(exponent > 0, 1 << fraction_bits, 0))
    if exponent_bits == 5:
        value[exponent == 31] = np.inf
    else:
        value[(exponent == 15) & (fraction == 7)] = np.nan
    return np.where(code & 128, -value, value).astype(np.float32)


CODES = {"f8E4M3FN": fp8_values(4, 3), "f8E5M2": fp8_values(5, 2)}


def encode(x: np.ndarray, element: str) -> np.ndarray:
    """The file that holds small whole numbers."""
    if element in INT_TYPES:
        return x.astype(INT_TYPES[element])
    x = x.astype(np.float32)
    if element == "bf16":
        return (x.view(np.uint32) >> 16).astype(np.uint16)
    if element in CODES:
        codes = CODES[element]
        order = np.argsort(np.where(np.isfinite(codes), codes, np.inf), kind="stable")
        found = order[np.searchsorted(codes[order], x)]
        assert (codes[found] == x).all()
        return found.astype(np.uint8)
    return x.astype({"f16": np.float16, "f32": np.float32}[element])


def decode(x: np.ndarray, element: str) -> np.ndarray:
    if element == "bf16":
        return (x.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return CODES[element][x] if element in CODES else x


def draw(e: Element) -> list[np.ndarray]:
    rng = np.random.default_rng(75)
    low = 0 if e.is_bool else -1
    x, y = rng.integers(low, 2, (2, M, N))
    v = rng.integers(low, 2, (N, N))
    # Sums stay below 8, which every type holds.
    x[:, 5:], y[:, 4:] = 0, 0
    return [a.astype(bool) if e.is_bool else a for a in (x, y, v)]


def program(e: Element, body: str) -> str:
    lines = [
        *(load(name, (M, N), e.name) for name in "xy"),
        load("v", (N, N), e.name),
        "%c1 = arith.constant 1 : index",
        "%c3 = arith.constant 3 : index",
        e.spell(body),
        store("z", (M, N), e.name, "r"),
    ]
    head = """#three_four = affine_set<(a, b) : (a >= 0, -a + 2 >= 0, b >= 0, -b + 3 >= 0)>
#o2 = affine_map<(a, b) -> (a, b)>
"""
    return head + function("x y v n z", "\n    ".join(lines))


@pytest.mark.parametrize(
    ("element", "numerics", "case"),
    [
        pytest.param(element, numerics, case, id=f"{element}-{numerics}-{case}")
        for element in [*FLOAT_TYPES, *INT_TYPES]
        for numerics in (["dl16", "ieee"] if element == "f16" else ["dl16"])
        for case in cases(Element(element))
    ],
)
def test_operation(element, numerics, case, tmp_path):
    e = Element(element)
    body, reference = CASES[case]
    arrays = draw(e)
    files = [encode(a, element) for a in arrays]
    z = np.ones((M, N), files[0].dtype)
    flags = ["--numerics", numerics]
    found = results(program(e, body), [*files, 2, z], tmp_path, *flags)["z"]
    expected = np.asarray(reference(e, *arrays))
    assert expected.shape == found.shape
    assert (decode(found, element) == expected).all()
