// SPDX-License-Identifier: Apache-2.0
// Plans that are right at the largest size and wrong at a smaller one, and some that
// are right at all. More faults are in python/tests/test_size_verifier.py.
// RUN: spyre-opt %s --split-input-file --verify-diagnostics --spyre-verify-plan

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 64)>

// 57 sizes: proven.
func.func @left_out(%x: memref<256x64xf16, #l> {spyre_graph.size_map = #rows},
                    %y: memref<256x64xf16, #l> {spyre_graph.size_map = #rows})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 200 to 256>]} {
  // SG-PLAN-C13
  // expected-error @+1 {{where s is 225, 32 slices do not cover loop dimension 0}}
  spyre_graph.neg ins(%x : memref<256x64xf16, #l>) outs(%y : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 64>, extent_map = #rows, division = #spyre_graph.division<splits = [32, 1], chunks = [8, 64], chunk_map = affine_map<()[s] -> ((s + 30) floordiv 32, 64)>>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 64)>

// 8 sizes: one by one.
// expected-note @+1 {{where s is 160}}
func.func @beyond(%x: memref<256x64xf16, #l> {spyre_graph.size_map = affine_map<()[s] -> ((s floordiv 64) * 64, 64)>},
                  %y: memref<256x64xf16, #l> {spyre_graph.size_map = #rows})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 128 to 256 by 32>]} {
  // SG-PLAN-C13
  // expected-error @+1 {{accesses coordinates 0 to 159 of dimension 0 of operand 0}}
  spyre_graph.neg ins(%x : memref<256x64xf16, #l>) outs(%y : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 64>, extent_map = #rows, division = #spyre_graph.division<splits = [32, 1], chunks = [8, 64], chunk_map = affine_map<()[s] -> (s ceildiv 32, 64)>>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s, t] -> (s, 64)>
#some = affine_map<()[s, t] -> (t, 64)>

// Of two symbols, which the proof does not take for one another.
func.func @other(%x: memref<256x64xf16, #l> {spyre_graph.size_map = #rows},
                 %y: memref<256x64xf16, #l> {spyre_graph.size_map = #some})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 256>, #spyre_graph.symbol<"t", 1 to 256>]} {
  // SG-PLAN-C13
  // expected-error @+1 {{where s is 255 and t is 256, accesses coordinates of dimension 0 of operand 0 beyond its 255 elements}}
  spyre_graph.neg ins(%x : memref<256x64xf16, #l>) outs(%y : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 64>, extent_map = #some, division = #spyre_graph.division<splits = [1, 1], chunks = [256, 64], chunk_map = #some>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s, t] -> (s, 64)>
#some = affine_map<()[s, t] -> (t, 64)>

// More is written than what was there at first.
func.func @twice(%x: memref<256x64xf16, #l> {spyre_graph.size_map = #rows},
                 %y: memref<256x64xf16, #l> {spyre_graph.size_map = #some})
    attributes {spyre_graph.pool_size = 32768 : i64,
                spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 256>, #spyre_graph.symbol<"t", 1 to 256>]} {
  %b = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<256x64xf16, #l>
  spyre_graph.neg ins(%x : memref<256x64xf16, #l>) outs(%b : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 64>, extent_map = #rows, division = #spyre_graph.division<splits = [1, 1], chunks = [256, 64], chunk_map = #rows>}
  // SG-PLAN-C13
  // expected-error @+1 {{where s is 255 and t is 256, accesses coordinates of dimension 0 of operand 1 beyond its 255 elements}}
  spyre_graph.neg ins(%y : memref<256x64xf16, #l>) outs(%b : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 64>, extent_map = #some, division = #spyre_graph.division<splits = [1, 1], chunks = [256, 64], chunk_map = #some>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 64)>

// Rows that vary are in what was filled before them, not in what is filled after.
func.func @filled(%x: memref<192x64xf16, #l> {spyre_graph.size_map = #rows},
                  %y: memref<256x64xf16, #l>)
    attributes {spyre_graph.pool_size = 65536 : i64,
                spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 192>]} {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<256x64xf16, #l>
  %b = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 32768>} : memref<256x64xf16, #l>
  spyre_graph.fill outs(%a : memref<256x64xf16, #l>) {immediates = [0.0 : f32], maps = [#id], extents = array<i64: 256, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [256, 64]>}
  spyre_graph.neg ins(%x : memref<192x64xf16, #l>) outs(%a : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 192, 64>, extent_map = #rows, division = #spyre_graph.division<splits = [1, 1], chunks = [192, 64], chunk_map = #rows>}
  spyre_graph.abs ins(%a : memref<256x64xf16, #l>) outs(%y : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [256, 64]>}
  // SG-PLAN-C13
  // expected-error @+1 {{accesses operand 1, which is written in several sizes, or in parts that vary}}
  spyre_graph.neg ins(%x : memref<192x64xf16, #l>) outs(%b : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 192, 64>, extent_map = #rows, division = #spyre_graph.division<splits = [1, 1], chunks = [192, 64], chunk_map = #rows>}
  spyre_graph.fill outs(%b : memref<256x64xf16, #l>) {immediates = [0.0 : f32], maps = [#id], extents = array<i64: 256, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [256, 64]>}
  spyre_graph.abs ins(%b : memref<256x64xf16, #l>) outs(%y : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [256, 64]>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[q, r] -> (q * 64 + r - 64, 64)>
#blocks = affine_map<()[q, r] -> (q * 64, 64)>

// Blocks are filled, and hold rows then: at the largest sizes, all of them do.
func.func @blocks(%x: memref<512x64xf16, #l> {spyre_graph.size_map = #rows},
                  %y: memref<512x64xf16, #l> {spyre_graph.size_map = #blocks})
    attributes {spyre_graph.pool_size = 65536 : i64,
                spyre_graph.symbols = [#spyre_graph.symbol<"q", 1 to 8>, #spyre_graph.symbol<"r", 1 to 64>]} {
  %b = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<512x64xf16, #l>
  spyre_graph.fill outs(%b : memref<512x64xf16, #l>) {immediates = [0.0 : f32], maps = [#id], extents = array<i64: 512, 64>, extent_map = #blocks, division = #spyre_graph.division<splits = [1, 1], chunks = [512, 64], chunk_map = #blocks>}
  spyre_graph.neg ins(%x : memref<512x64xf16, #l>) outs(%b : memref<512x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 512, 64>, extent_map = #rows, division = #spyre_graph.division<splits = [1, 1], chunks = [512, 64], chunk_map = #rows>}
  spyre_graph.abs ins(%b : memref<512x64xf16, #l>) outs(%y : memref<512x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 512, 64>, extent_map = #blocks, division = #spyre_graph.division<splits = [1, 1], chunks = [512, 64], chunk_map = #blocks>}
  // SG-PLAN-C13
  // expected-error @+1 {{where q is 8 and r is 63, accesses coordinates of dimension 0 of operand 0 beyond its 511 elements}}
  spyre_graph.abs ins(%x : memref<512x64xf16, #l>) outs(%y : memref<512x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 512, 64>, extent_map = #blocks, division = #spyre_graph.division<splits = [1, 1], chunks = [512, 64], chunk_map = #blocks>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 64)>

// Rows that vary, then the last 64: between them is nothing.
func.func @part(%x: memref<192x64xf16, #l> {spyre_graph.size_map = #rows}, %t: memref<64x64xf16, #l>,
                %y: memref<256x64xf16, #l>)
    attributes {spyre_graph.pool_size = 32768 : i64,
                spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 192>]} {
  %b = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<256x64xf16, #l>
  // SG-PLAN-C13
  // expected-error @+1 {{accesses operand 1, which is written in several sizes, or in parts that vary}}
  spyre_graph.neg ins(%x : memref<192x64xf16, #l>) outs(%b : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 192, 64>, extent_map = #rows, division = #spyre_graph.division<splits = [1, 1], chunks = [192, 64], chunk_map = #rows>}
  spyre_graph.neg ins(%t : memref<64x64xf16, #l>) outs(%b : memref<256x64xf16, #l>) {maps = [#id, affine_map<(i, j) -> (i + 192, j)>], extents = array<i64: 64, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [64, 64]>}
  spyre_graph.abs ins(%b : memref<256x64xf16, #l>) outs(%y : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [256, 64]>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 128)>
#by_row = #spyre_graph.division<splits = [32, 1], chunks = [8, 128], chunk_map = affine_map<()[s] -> (s ceildiv 32, 128)>>
#by_column = #spyre_graph.division<splits = [1, 2], chunks = [255, 64], chunk_map = affine_map<()[s] -> (s, 64)>>

// What moves between cores are other rows than those that they have written.
func.func @moved(%x: memref<255x128xf16, #l> {spyre_graph.size_map = #rows},
                 %y: memref<255x128xf16, #l> {spyre_graph.size_map = #rows})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 200 to 255>]} {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [8, 128]>} : memref<255x128xf16, #l>
  %b = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 4096, local = [255, 64]>} : memref<255x128xf16, #l>
  // SG-PLAN-C13
  // expected-error @+1 {{where s is 224, a core accesses a slice of operand 1 that it does not hold in LX}}
  spyre_graph.exp ins(%x : memref<255x128xf16, #l>) outs(%a : memref<255x128xf16, #l>) {maps = [#id, #id], extents = array<i64: 255, 128>, extent_map = #rows, division = #by_row}
  spyre_graph.reshard ins(%a : memref<255x128xf16, #l>) outs(%b : memref<255x128xf16, #l>) {source_division = #spyre_graph.division<splits = [32, 1], chunks = [8, 128], chunk_map = affine_map<()[s] -> ((s + 32) floordiv 32, 128)>>, maps = [#id, #id], extents = array<i64: 255, 128>, extent_map = #rows, division = #by_column}
  spyre_graph.neg ins(%b : memref<255x128xf16, #l>) outs(%y : memref<255x128xf16, #l>) {maps = [#id, #id], extents = array<i64: 255, 128>, extent_map = #rows, division = #by_column}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 64)>

// The first s rows of each half are no box, but one core has all rows.
func.func @halves(%x: memref<512x64xf16, #l>, %y: memref<256x64xf16, #l> {spyre_graph.size_map = #rows})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 256>]} {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [512, 64]>} : memref<512x64xf16, #l>
  spyre_graph.exp ins(%x : memref<512x64xf16, #l>) outs(%a : memref<512x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 512, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [512, 64]>}
  spyre_graph.sum ins(%a : memref<512x64xf16, #l>) outs(%y : memref<256x64xf16, #l>) {dims = array<i64: 0>, maps = [affine_map<(k, i, j) -> (k * 256 + i, j)>, affine_map<(k, i, j) -> (i, j)>], extents = array<i64: 2, 256, 64>, extent_map = affine_map<()[s] -> (2, s, 64)>, division = #spyre_graph.division<splits = [1, 1, 1], chunks = [2, 256, 64], chunk_map = affine_map<()[s] -> (2, s, 64)>>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#l3 = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#first = affine_map<()[s] -> (2, s, 64)>

// The same where each core has a half.
func.func @divided_halves(%x: memref<512x64xf16, #l>, %y: memref<2x256x64xf16, #l3> {spyre_graph.size_map = #first})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 256>]} {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [256, 64]>} : memref<512x64xf16, #l>
  spyre_graph.exp ins(%x : memref<512x64xf16, #l>) outs(%a : memref<512x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 512, 64>, division = #spyre_graph.division<splits = [2, 1], chunks = [256, 64]>}
  // SG-PLAN-C13
  // expected-error @+1 {{accesses dimension 0 of operand 0, which is in LX and varies, otherwise than by a loop that varies and others that count within its iterations}}
  spyre_graph.neg ins(%a : memref<512x64xf16, #l>) outs(%y : memref<2x256x64xf16, #l3>) {maps = [affine_map<(k, i, j) -> (k * 256 + i, j)>, affine_map<(k, i, j) -> (k, i, j)>], extents = array<i64: 2, 256, 64>, extent_map = #first, division = #spyre_graph.division<splits = [2, 1, 1], chunks = [1, 256, 64], chunk_map = affine_map<()[s] -> (1, s, 64)>>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s * 64, 64)>
#windows = affine_map<(w, i, j) -> (w * 64 + (i floordiv 32) * 32 + ((i floordiv 4) mod 2) * 16 + ((i floordiv 8) mod 4) * 4 + i mod 4, j)>

// All 64 rows of an iteration, in another order; 39 sizes.
func.func @rows_of_windows(%x: memref<2560x64xf16, #l> {spyre_graph.size_map = #rows},
                           %y: memref<2560x64xf16, #l> {spyre_graph.size_map = #rows})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 40>]} {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [1280, 64]>} : memref<2560x64xf16, #l>
  spyre_graph.exp ins(%x : memref<2560x64xf16, #l>) outs(%a : memref<2560x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 2560, 64>, extent_map = #rows, division = #spyre_graph.division<splits = [2, 1], chunks = [1280, 64], chunk_map = affine_map<()[s] -> ((s ceildiv 2) * 64, 64)>>}
  spyre_graph.neg ins(%a : memref<2560x64xf16, #l>) outs(%y : memref<2560x64xf16, #l>) {maps = [#windows, affine_map<(w, i, j) -> (w * 64 + i, j)>], extents = array<i64: 40, 64, 64>, extent_map = affine_map<()[s] -> (s, 64, 64)>, division = #spyre_graph.division<splits = [2, 1, 1], chunks = [20, 64, 64], chunk_map = affine_map<()[s] -> (s ceildiv 2, 64, 64)>>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 64)>


// A loop over all tiles, whatever the size: 4 sizes.
// expected-note @+1 {{where s is 64}}
func.func @all_tiles(%x: memref<256x64xf16, #l> {spyre_graph.used_map = #rows},
                    %y: memref<256x64xf16, #l> {spyre_graph.used_map = #rows})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 64 to 256 by 64>]} {
  %c0 = arith.constant 0 : index
  %step = arith.constant 64 : index
  %end = arith.constant 256 : index
  scf.for %i = %c0 to %end step %step {
    // SG-PLAN-C13
    // expected-error @+1 {{takes coordinates 0 to 255 of dimension 0, whose extent is 64}}
    %a = memref.subview %x[%i, 0] [64, 64] [1, 1] : memref<256x64xf16, #l> to memref<64x64xf16, strided<[64, 1], offset: ?>, #l>
    %b = memref.subview %y[%i, 0] [64, 64] [1, 1] : memref<256x64xf16, #l> to memref<64x64xf16, strided<[64, 1], offset: ?>, #l>
    spyre_graph.neg ins(%a : memref<64x64xf16, strided<[64, 1], offset: ?>, #l>) outs(%b : memref<64x64xf16, strided<[64, 1], offset: ?>, #l>) {maps = [#id, #id], extents = array<i64: 64, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [64, 64]>}
  }
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 64)>


// 64 sizes.
func.func @all_of_many_tiles(%x: memref<256x64xf16, #l> {spyre_graph.used_map = #rows},
                    %y: memref<256x64xf16, #l> {spyre_graph.used_map = #rows})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 4 to 256 by 4>]} {
  %c0 = arith.constant 0 : index
  %step = arith.constant 4 : index
  %end = arith.constant 256 : index
  scf.for %i = %c0 to %end step %step {
    // SG-PLAN-C13
    // expected-error @+1 {{where s is 4, takes coordinates of dimension 0 beyond its 4 elements}}
    %a = memref.subview %x[%i, 0] [4, 64] [1, 1] : memref<256x64xf16, #l> to memref<4x64xf16, strided<[64, 1], offset: ?>, #l>
    %b = memref.subview %y[%i, 0] [4, 64] [1, 1] : memref<256x64xf16, #l> to memref<4x64xf16, strided<[64, 1], offset: ?>, #l>
    spyre_graph.neg ins(%a : memref<4x64xf16, strided<[64, 1], offset: ?>, #l>) outs(%b : memref<4x64xf16, strided<[64, 1], offset: ?>, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [4, 64]>}
  }
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 64)>

// 64 sizes: what a loop up to one has not written is read.
func.func @half_written(%x: memref<256x64xf16, #l> {spyre_graph.used_map = #rows},
                        %y: memref<256x64xf16, #l>)
    attributes {spyre_graph.pool_size = 32768 : i64, spyre_graph.symbols = [#spyre_graph.symbol<"s", 4 to 256 by 4>]} {
  %c0 = arith.constant 0 : index
  %step = arith.constant 4 : index
  %end = arith.constant 256 : index
  %p = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<256x64xf16, #l>
  scf.for %i = %c0 to %end step %step {
    %a = memref.subview %x[%i, 0] [4, 64] [1, 1] : memref<256x64xf16, #l> to memref<4x64xf16, strided<[64, 1], offset: ?>, #l>
    %b = memref.subview %p[%i, 0] [4, 64] [1, 1] : memref<256x64xf16, #l> to memref<4x64xf16, strided<[64, 1], offset: ?>, #l>
    spyre_graph.neg ins(%a : memref<4x64xf16, strided<[64, 1], offset: ?>, #l>) outs(%b : memref<4x64xf16, strided<[64, 1], offset: ?>, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [4, 64]>}
  } {spyre_graph.bound_map = affine_map<()[s] -> (s)>}
  // SG-PLAN-C13
  // expected-error @+1 {{where s is 4, accesses coordinates of dimension 0 of operand 0 beyond its 4 elements}}
  spyre_graph.neg ins(%p : memref<256x64xf16, #l>) outs(%y : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [256, 64]>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 64)>
#whole = affine_map<()[s] -> (s + 64, 64)>
#after = affine_map<(i, j) -> (i + 192, j)>

// The last 64 rows begin where the others end, but at odd sizes one further on.
func.func @gap(%x: memref<192x64xf16, #l> {spyre_graph.size_map = #rows}, %t: memref<64x64xf16, #l>,
               %y: memref<256x64xf16, #l> {spyre_graph.size_map = #whole})
    attributes {spyre_graph.pool_size = 32768 : i64,
                spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 192>]} {
  %b = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<256x64xf16, #l>
  spyre_graph.neg ins(%x : memref<192x64xf16, #l>) outs(%b : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 192, 64>, extent_map = #rows, division = #spyre_graph.division<splits = [1, 1], chunks = [192, 64], chunk_map = #rows>}
  // SG-PLAN-C13
  // expected-error @+1 {{where s is 3, leaves out dimension 0 from 3 on}}
  spyre_graph.insert ins(%t : memref<64x64xf16, #l>) outs(%b : memref<256x64xf16, #l>) {axis = 0 : i64, offset_map = affine_map<()[s] -> ((s ceildiv 2) * 2)>, maps = [#id, #after], extents = array<i64: 64, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [64, 64]>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 64)>
#whole = affine_map<()[s] -> (s + 64, 64)>
#after = affine_map<(i, j) -> (i + 192, j)>

// 8 sizes, one by one.
// expected-note @+1 {{where s is 3}}
func.func @gap_at_few_sizes(%x: memref<192x64xf16, #l> {spyre_graph.size_map = affine_map<()[s] -> (s * 24, 64)>}, %t: memref<64x64xf16, #l>,
               %y: memref<256x64xf16, #l> {spyre_graph.size_map = affine_map<()[s] -> (s * 24 + 64, 64)>})
    attributes {spyre_graph.pool_size = 32768 : i64,
                spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 8>]} {
  // expected-note @+1 {{the buffer is allocated here}}
  %b = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<256x64xf16, #l>
  spyre_graph.neg ins(%x : memref<192x64xf16, #l>) outs(%b : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 192, 64>, extent_map = affine_map<()[s] -> (s * 24, 64)>, division = #spyre_graph.division<splits = [1, 1], chunks = [192, 64], chunk_map = affine_map<()[s] -> (s * 24, 64)>>}
  spyre_graph.insert ins(%t : memref<64x64xf16, #l>) outs(%b : memref<256x64xf16, #l>) {axis = 0 : i64, offset_map = affine_map<()[s] -> ((s ceildiv 2) * 48)>, maps = [#id, #after], extents = array<i64: 64, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [64, 64]>}
  // SG-PLAN-C13
  // expected-error @+1 {{reads parts of operand 0 that have not been written}}
  spyre_graph.abs ins(%b : memref<256x64xf16, #l>) outs(%y : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 64>, extent_map = affine_map<()[s] -> (s * 24 + 64, 64)>, division = #spyre_graph.division<splits = [1, 1], chunks = [256, 64], chunk_map = affine_map<()[s] -> (s * 24 + 64, 64)>>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 64)>
#after = affine_map<(i, j) -> (i + 192, j)>

// At the largest size, what is read has been written; at others the end has not.
func.func @early(%x: memref<192x64xf16, #l> {spyre_graph.size_map = #rows}, %t: memref<64x64xf16, #l>,
                 %y: memref<128x64xf16, #l>)
    attributes {spyre_graph.pool_size = 32768 : i64,
                spyre_graph.symbols = [#spyre_graph.symbol<"s", 64 to 192>]} {
  %b = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<256x64xf16, #l>
  spyre_graph.neg ins(%x : memref<192x64xf16, #l>) outs(%b : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 192, 64>, extent_map = #rows, division = #spyre_graph.division<splits = [1, 1], chunks = [192, 64], chunk_map = #rows>}
  // SG-PLAN-C13
  // expected-error @+1 {{accesses a buffer before all of its parts are joined}}
  spyre_graph.abs ins(%b : memref<256x64xf16, #l>) outs(%y : memref<128x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 128, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [128, 64]>}
  spyre_graph.insert ins(%t : memref<64x64xf16, #l>) outs(%b : memref<256x64xf16, #l>) {axis = 0 : i64, offset_map = affine_map<()[s] -> (s)>, maps = [#id, #after], extents = array<i64: 64, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [64, 64]>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 64)>
#all = affine_map<()[s] -> (s + 64, 64)>
#after = affine_map<(i, j) -> (i + 192, j)>

// No error: what writes after all parts are joined changes them, and who reads before
// reads what was there.
func.func @changed_after(%x: memref<192x64xf16, #l> {spyre_graph.size_map = #rows}, %t: memref<64x64xf16, #l>,
                         %y: memref<256x64xf16, #l> {spyre_graph.size_map = #all},
                         %z: memref<256x64xf16, #l> {spyre_graph.size_map = #all})
    attributes {spyre_graph.pool_size = 32768 : i64,
                spyre_graph.symbols = [#spyre_graph.symbol<"s", 64 to 192>]} {
  %b = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<256x64xf16, #l>
  spyre_graph.neg ins(%x : memref<192x64xf16, #l>) outs(%b : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 192, 64>, extent_map = #rows, division = #spyre_graph.division<splits = [1, 1], chunks = [192, 64], chunk_map = #rows>}
  spyre_graph.insert ins(%t : memref<64x64xf16, #l>) outs(%b : memref<256x64xf16, #l>) {axis = 0 : i64, offset_map = affine_map<()[s] -> (s)>, maps = [#id, #after], extents = array<i64: 64, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [64, 64]>}
  spyre_graph.abs ins(%b : memref<256x64xf16, #l>) outs(%y : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 64>, extent_map = #all, division = #spyre_graph.division<splits = [1, 1], chunks = [256, 64], chunk_map = #all>}
  spyre_graph.neg ins(%t : memref<64x64xf16, #l>) outs(%b : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 32, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [32, 64]>}
  spyre_graph.abs ins(%b : memref<256x64xf16, #l>) outs(%z : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 64>, extent_map = #all, division = #spyre_graph.division<splits = [1, 1], chunks = [256, 64], chunk_map = #all>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#i = #spyre_graph.layout<order = [0], IEEE_INT32>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 64)>
#all = affine_map<()[s] -> (s + 64, 64)>
#after = affine_map<(i, j) -> (i + 192, j)>

// An index says where the scatter writes: it joins nothing, at the first row neither.
func.func @by_index(%x: memref<192x64xf16, #l> {spyre_graph.size_map = #rows}, %t: memref<64x64xf16, #l>,
                    %p: memref<1xi64, #i>, %y: memref<256x64xf16, #l> {spyre_graph.size_map = #all})
    attributes {spyre_graph.pool_size = 32768 : i64,
                spyre_graph.symbols = [#spyre_graph.symbol<"s", 64 to 192>]} {
  %b = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<256x64xf16, #l>
  spyre_graph.neg ins(%x : memref<192x64xf16, #l>) outs(%b : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 192, 64>, extent_map = #rows, division = #spyre_graph.division<splits = [1, 1], chunks = [192, 64], chunk_map = #rows>}
  // SG-PLAN-C13
  // expected-error @+1 {{accesses a buffer before all of its parts are joined}}
  spyre_graph.scatter ins(%t, %p : memref<64x64xf16, #l>, memref<1xi64, #i>) outs(%b : memref<256x64xf16, #l>) {axis = 0 : i64, maps = [#id, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (0, j)>], extents = array<i64: 1, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [1, 64]>}
  spyre_graph.insert ins(%t : memref<64x64xf16, #l>) outs(%b : memref<256x64xf16, #l>) {axis = 0 : i64, offset_map = affine_map<()[s] -> (s)>, maps = [#id, #after], extents = array<i64: 64, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [64, 64]>}
  spyre_graph.abs ins(%b : memref<256x64xf16, #l>) outs(%y : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 64>, extent_map = #all, division = #spyre_graph.division<splits = [1, 1], chunks = [256, 64], chunk_map = #all>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 64)>
#after = affine_map<(i, j) -> (i + 192, j)>

func.func @beyond_the_end(%t: memref<64x64xf16, #l>, %y: memref<256x64xf16, #l> {spyre_graph.size_map = affine_map<()[s] -> (s + 64, 64)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 64 to 192>]} {
  // SG-PLAN-C13
  // expected-error @+1 {{where s is 65, accesses coordinates of dimension 0 of operand 1 beyond its 129 elements}}
  spyre_graph.insert ins(%t : memref<64x64xf16, #l>) outs(%y : memref<256x64xf16, #l>) {axis = 0 : i64, offset_map = affine_map<()[s] -> ((s ceildiv 2) * 2)>, maps = [#id, #after], extents = array<i64: 64, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [64, 64]>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#after = affine_map<(i, j) -> (i + 192, j)>

// Rows that are read may be among those that are written.
func.func @of_itself(%y: memref<256x64xf16, #l> {spyre_graph.size_map = affine_map<()[s] -> (s + 64, 64)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 32 to 192>]} {
  // SG-PLAN-C14
  // expected-error @+1 {{reads elements of operand 0 that it may have overwritten}}
  spyre_graph.insert ins(%y : memref<256x64xf16, #l>) outs(%y : memref<256x64xf16, #l>) {axis = 0 : i64, offset_map = affine_map<()[s] -> (s)>, maps = [#id, #after], extents = array<i64: 64, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [64, 64]>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#first = affine_map<()[s] -> (4, s)>

// Columns that vary and are not divided, in a buffer that another user divides.
func.func @some_divide(%x: memref<4x128xf16, #l> {spyre_graph.size_map = #first})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 128>]} {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [4, 128]>} : memref<4x256xf16, #l>
  // SG-PLAN-C13
  // expected-error @+1 {{accesses dimension 1 of operand 0, which is in LX and varies, in other slices than others do}}
  spyre_graph.fill outs(%a : memref<4x256xf16, #l>) {immediates = [0.0 : f32], maps = [#id], extents = array<i64: 4, 256>, division = #spyre_graph.division<splits = [1, 2], chunks = [4, 128]>}
  spyre_graph.exp ins(%x : memref<4x128xf16, #l>) outs(%a : memref<4x256xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 128>, extent_map = #first, division = #spyre_graph.division<splits = [1, 1], chunks = [4, 128], chunk_map = #first>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 64)>
#all = affine_map<()[s] -> (s + 64, 64)>
#after = affine_map<(i, j) -> (i + 192, j)>

// What is joined begins elsewhere at each size.
func.func @joined(%x: memref<192x64xf16, #l> {spyre_graph.size_map = #rows}, %t: memref<64x64xf16, #l>,
                  %y: memref<256x64xf16, #l> {spyre_graph.size_map = #all})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 64 to 192>]} {
  %b = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [256, 64]>} : memref<256x64xf16, #l>
  spyre_graph.neg ins(%x : memref<192x64xf16, #l>) outs(%b : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 192, 64>, extent_map = #rows, division = #spyre_graph.division<splits = [1, 1], chunks = [192, 64], chunk_map = #rows>}
  // SG-PLAN-C13
  // expected-error @+1 {{accesses dimension 0 of operand 1, which is in LX and varies, in other slices than others do}}
  spyre_graph.insert ins(%t : memref<64x64xf16, #l>) outs(%b : memref<256x64xf16, #l>) {axis = 0 : i64, offset_map = affine_map<()[s] -> (s)>, maps = [#id, #after], extents = array<i64: 64, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [64, 64]>}
  spyre_graph.abs ins(%b : memref<256x64xf16, #l>) outs(%y : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 64>, extent_map = #all, division = #spyre_graph.division<splits = [1, 1], chunks = [256, 64], chunk_map = #all>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#behind = affine_map<(i, j) -> (i, j + 128)>
#columns = affine_map<()[s] -> (4, s)>
#all = affine_map<()[s] -> (4, s + 128)>

// Behind whole sticks, slices that are none: at the largest size they are.
func.func @behind(%x: memref<4x256xf16, #l> {spyre_graph.size_map = #columns},
                  %y: memref<4x384xf16, #l> {spyre_graph.size_map = #all})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 256>]} {
  // SG-PLAN-C13
  // expected-error @+1 {{where s is 125, slices of loop dimension 1 write parts of the same stick of 64 elements}}
  spyre_graph.neg ins(%x : memref<4x256xf16, #l>) outs(%y : memref<4x384xf16, #l>) {maps = [#id, #behind], extents = array<i64: 4, 256>, extent_map = #columns, division = #spyre_graph.division<splits = [1, 2], chunks = [4, 128], chunk_map = affine_map<()[s] -> (4, s ceildiv 2)>>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#behind = affine_map<(i, j) -> (i, j + 160)>
#columns = affine_map<()[s] -> (4, s)>
#all = affine_map<()[s] -> (4, s + 160)>

// Slices of whole sticks that begin inside of one.
func.func @inside(%x: memref<4x256xf16, #l> {spyre_graph.size_map = #columns},
                  %y: memref<4x416xf16, #l> {spyre_graph.size_map = #all})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 256>]} {
  // SG-PLAN-C13
  // expected-error @+1 {{slices of 128 iterations of loop dimension 1 write parts of the same stick of 64 elements}}
  spyre_graph.neg ins(%x : memref<4x256xf16, #l>) outs(%y : memref<4x416xf16, #l>) {maps = [#id, #behind], extents = array<i64: 4, 256>, extent_map = #columns, division = #spyre_graph.division<splits = [1, 2], chunks = [4, 128], chunk_map = affine_map<()[s] -> (4, (s ceildiv 128) * 64)>>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#line = #spyre_graph.layout<order = [0], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 96)>

// Rows of one and a half sticks in a line.
func.func @in_a_line(%x: memref<512x96xf16, #l> {spyre_graph.size_map = #rows},
                     %y: memref<49152xf16, #line> {spyre_graph.size_map = affine_map<()[s] -> (s * 96)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 512>]} {
  // SG-PLAN-C13
  // expected-error @+1 {{loop dimension 0 varies and is split, but counts along sticks with others, or from inside of one}}
  spyre_graph.neg ins(%x : memref<512x96xf16, #l>) outs(%y : memref<49152xf16, #line>) {maps = [#id, affine_map<(i, j) -> (i * 96 + j)>], extents = array<i64: 512, 96>, extent_map = #rows, division = #spyre_graph.division<splits = [4, 1], chunks = [128, 96], chunk_map = affine_map<()[s] -> (s ceildiv 4, 96)>>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#two = affine_map<(i, j) -> (0, i * 256 + j)>
#columns = affine_map<()[s] -> (2, s)>

// Two loops count along the sticks: nothing says where cuts of the one lie.
func.func @with_others(%x: memref<2x256xf16, #l> {spyre_graph.size_map = #columns},
                       %y: memref<1x512xf16, #l>)
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 256>]} {
  // SG-PLAN-C13
  // expected-error @+1 {{loop dimension 1 varies and is split, but counts along sticks with others, or from inside of one}}
  spyre_graph.neg ins(%x : memref<2x256xf16, #l>) outs(%y : memref<1x512xf16, #l>) {maps = [#id, #two], extents = array<i64: 2, 256>, extent_map = #columns, division = #spyre_graph.division<splits = [1, 2], chunks = [2, 128], chunk_map = affine_map<()[s] -> (2, (s ceildiv 128) * 64)>>}
  return
}
