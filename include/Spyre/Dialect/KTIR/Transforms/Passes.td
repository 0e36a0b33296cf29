// SPDX-License-Identifier: Apache-2.0

#ifndef SPYRE_DIALECT_KTIR_TRANSFORMS_PASSES_TD
#define SPYRE_DIALECT_KTIR_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def KTDPStrict : Pass<"ktdp-strict", "::mlir::func::FuncOp"> {
  let summary = "check KTIR more strictly than the verifiers";
  let description = [{
    The verifiers accept whatever the reference front end accepts, and that
    leaves much open: a tile may have another shape than its set, a load another
    element type than its view, and a group of cores may wait for a core of
    another group. This pass checks all of that and changes nothing. It reports
    every violation of a function, not just the first one.

    Views and tiles:
    - `KTDP-STRICT-C1`: a static size of a view is the memref's size.
    - `KTDP-STRICT-C2`: a view's `coordinate_set` has one dimension per size and
      no more symbols than there are dynamic sizes.
    - `KTDP-STRICT-C3`: if the memref has a memory space, it is the view's.
    - `KTDP-STRICT-C4`: static strides are those of the memref's layout (row-major
      without one), apart from dimensions of one element.
    - `KTDP-STRICT-C5`: an access tile has one subscript per base dimension.
    - `KTDP-STRICT-C6`: where a tile's set is a box of constants, the tile's sizes
      are the box's, in the order that `access_tile_order` gives.
    - `KTDP-STRICT-C7`: an order permutes its dimensions.
    - `KTDP-STRICT-C8`: loads and stores have the view's element type.
    - `KTDP-STRICT-C9`: index memrefs hold integers of 8 bits or more, or index.
    - `KTDP-STRICT-C10`: a distributed view has partitions.
    - `KTDP-STRICT-C11`: a static size of a distributed view is the largest upper
      bound of its partitions in that dimension.
    - `KTDP-STRICT-C12`: partitions that are boxes of constants are disjoint.
    - `KTDP-STRICT-C13`: partitions together hold every coordinate of the view.

    Communication between cores. The numbers are those of the rules R1 to R14 of
    the published design; how far each one reaches is this project's reading. A
    core is one of the function's grid, a group one of the future's `groups`.
    - `KTDP-INTER_TILE-C1`: no core produces for two groups, or consumes for two.
    - `KTDP-INTER_TILE-C2`: a future has exactly one use.
    - `KTDP-INTER_TILE-C3`: the cores that a consumer depends on produce for its
      group.
    - `KTDP-INTER_TILE-C4`: every producer is one that some consumer of its group
      depends on.
    - `KTDP-INTER_TILE-C5`: a reduction that declares dependencies uses each
      producer's tile once: they are disjoint within a group.
    - `KTDP-INTER_TILE-C6`: all groups have the same number of producers.
    - `KTDP-INTER_TILE-C7`: all groups have the same number of consumers.
    - `KTDP-INTER_TILE-C8`: a consumer of `inter_tile_consume` and of
      `inter_tile_scatter` depends on exactly one producer.
    - `KTDP-INTER_TILE-C9`: a split dimension is a multiple of the number of
      consumers, and the result has that part of it.
    - `KTDP-INTER_TILE-C10`: a combiner has no side effect.
    - `KTDP-INTER_TILE-C11`: the identity has the partial type (checked by the
      operations' verifiers).
    - `KTDP-INTER_TILE-C12`: the size of a concatenated dimension is the tile's,
      or its part's, times the number of producers.
    - `KTDP-INTER_TILE-C13`: the consumers of a reduction are among its producers.
    - `KTDP-INTER_TILE-C14`: the consumers of a group are its producers.
      `inter_tile_reduce` and `inter_tile_gather` may have exactly one consumer
      instead.
  }];
}

def KTDPInlineHelpers : Pass<"ktdp-inline-helpers", "::mlir::ModuleOp"> {
  let summary = "put helper functions in place of their calls";
  let description = [{
    A function without a grid is a sequence of kernels, or a helper that stands
    for its body. A call is one of a helper if it has results, hands over tiles
    or views, or is made by a kernel or by a helper of one. Such calls become the
    helper's operations, at their own locations, and helpers that nothing else
    calls go away. The loader does the same to what it loads.

    - `KTDP-INLINE-C1`: no function calls itself, directly or through others.
    - `KTDP-INLINE-C2`: functions that are called have a body.
    - `KTDP-INLINE-C3`: the body of a helper is one block.
    - `KTDP-INLINE-C4`: all helpers in place of their calls are at most 2^20
      operations.
  }];
}

#endif // SPYRE_DIALECT_KTIR_TRANSFORMS_PASSES_TD
