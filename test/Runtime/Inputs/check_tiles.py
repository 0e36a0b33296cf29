# SPDX-License-Identifier: Apache-2.0
"""Programs that gather and scatter rows."""

from __future__ import annotations

import kernels as k
from programs import function, load, store


def gather_program(rows: int, count: int) -> str:
    return function(
        "x i y",
        f"""%v_x = ktdp.construct_memory_view %x, sizes: [{rows}, 128], strides: [128, 1] {{
      coordinate_set = {k.box("r c", [rows, 128])}, memory_space = #ktdp.memory_space<global>}} : memref<{rows}x128xf32>
    %v_i = ktdp.construct_memory_view %i, sizes: [{count}], strides: [1] {{
      coordinate_set = {k.box("r", [count])}, memory_space = #ktdp.memory_space<global>}} : memref<{count}xi32>
    %x_t = ktdp.construct_indirect_access_tile intermediate_variables(%a, %b) %v_x[ind(%v_i[%a]), (%b)] {{
      variables_space_set = {k.box("a b", [count, 128])}, variables_space_order = affine_map<(a, b) -> (a, b)>}}
      : memref<{rows}x128xf32>, memref<{count}xi32> -> !ktdp.access_tile<{count}x128xindex>
    %d = ktdp.load %x_t : !ktdp.access_tile<{count}x128xindex> -> tensor<{count}x128xf32>
    {store("y", (count, 128), "f32", "d")}""",
    )


def scatter_program(rows: int, count: int) -> str:
    """Program for y[i[a], b] = x[a, b]."""
    return function(
        "x i y",
        f"""%v_y = ktdp.construct_memory_view %y, sizes: [{rows}, 128], strides: [128, 1] {{
      coordinate_set = {k.box("r c", [rows, 128])}, memory_space = #ktdp.memory_space<global>}} : memref<{rows}x128xf32>
    %v_i = ktdp.construct_memory_view %i, sizes: [{count}], strides: [1] {{
      coordinate_set = {k.box("r", [count])}, memory_space = #ktdp.memory_space<global>}} : memref<{count}xi32>
    %y_t = ktdp.construct_indirect_access_tile intermediate_variables(%a, %b) %v_y[ind(%v_i[%a]), (%b)] {{
      variables_space_set = {k.box("a b", [count, 128])}, variables_space_order = affine_map<(a, b) -> (a, b)>}}
      : memref<{rows}x128xf32>, memref<{count}xi32> -> !ktdp.access_tile<{count}x128xindex>
    {load("x", (count, 128), "f32")}
    ktdp.store %x_d, %y_t : tensor<{count}x128xf32>, !ktdp.access_tile<{count}x128xindex>""",
    )
