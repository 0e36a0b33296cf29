// SPDX-License-Identifier: Apache-2.0
//
// Communication between cores. Produce, reduce and consume: spec/ktir.md, 2.3,
// and spec/ktir-ecosystem.md, 2.1. The other four have no published assembly;
// theirs is ours, in the same style.

#ifndef SPYRE_DIALECT_KTIR_IR_KTIRINTERTILEOPS_TD
#define SPYRE_DIALECT_KTIR_IR_KTIRINTERTILEOPS_TD

include "Spyre/Dialect/KTIR/IR/KTIRBase.td"

def KTDP_TileFuture : Type<CPred<"::llvm::isa<::mlir::ktdp::TileFutureType>($_self)">,
    "tile future", "::mlir::ktdp::TileFutureType">;

def KTDP_InterTileProduceOp : KTDP_Op<"inter_tile_produce", [SingleBlock]> {
  let summary = "Offers one tile per producing core of each group";
  let description = [{
    `producer_tiles_per_group` is the set of the cores (dimension) that produce
    for a group (symbol). Each of them runs the region, whose argument is its
    group, and offers what the region yields. A core is in at most one group.

    ```mlir
    %future = ktdp.inter_tile_produce
        producer_tiles_per_group = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
        -> <(tensor<1x128xf16>), groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>> {
      ^bb0(%group: index):
        ktdp.yield_partial %mine : tensor<1x128xf16>
    }
    ```

    The older spelling, `: tensor<1x128xf16> ->` and the future, is read, too.

    Constraints:

    - `KTDP-INTER_TILE_PRODUCE-C1`: the producer set has one dimension and one
      symbol.
    - `KTDP-INTER_TILE_PRODUCE-C2`: the region has one argument, an index.
    - `KTDP-INTER_TILE_PRODUCE-C3`: the region ends in `ktdp.yield_partial`.
    - `KTDP-INTER_TILE_PRODUCE-C4`: the partial type, if one is written before
      the arrow, is the future's tile type.
  }];
  let arguments = (ins KTDP_IntegerSetAttr:$producer_tiles_per_group);
  let results = (outs KTDP_TileFuture:$future);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `producer_tiles_per_group` `=` $producer_tiles_per_group
    custom<ProduceAttrDict>(attr-dict) custom<ProducedFuture>(type($future)) $body
  }];
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def KTDP_YieldPartialOp : KTDP_Op<"yield_partial",
    [Terminator, Pure, HasParent<"::mlir::ktdp::InterTileProduceOp">]> {
  let summary = "The tile that a core offers";
  let description = [{
    Constraints:

    - `KTDP-YIELD_PARTIAL-C1`: the parent is `ktdp.inter_tile_produce`.
    - `KTDP-YIELD_PARTIAL-C2`: the value has the future's tile type.
  }];
  let arguments = (ins AnyRankedTensor:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def KTDP_InterTileReduceOp : KTDP_Op<"inter_tile_reduce", [SingleBlock]> {
  let summary = "Combines the tiles of a group";
  let description = [{
    Every consuming core of a group receives the tiles of the group's producers,
    combined by the region in ascending core order, from `identity` on. Other
    cores get no defined value. `producer_dependency_per_consumer` says which
    producers (dimension) a consumer (last symbol; the group is an optional
    first one) waits for.

    ```mlir
    %sum = ktdp.inter_tile_reduce(%future)
        consumer_tiles_per_group = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>,
        identity(%zero : tensor<1x128xf16>)
        : <(tensor<1x128xf16>), groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>>
        -> tensor<1x128xf16> {
      ^bb0(%lhs: tensor<1x128xf16>, %rhs: tensor<1x128xf16>):
        %sum = arith.addf %lhs, %rhs : tensor<1x128xf16>
        ktdp.yield_reduced %sum : tensor<1x128xf16>
    }
    ```

    Constraints:

    - `KTDP-INTER_TILE_REDUCE-C1`: the consumer set has one dimension and one
      symbol.
    - `KTDP-INTER_TILE_REDUCE-C2`: the dependency set has one dimension and one
      or two symbols.
    - `KTDP-INTER_TILE_REDUCE-C3`: the identity has the future's tile type.
    - `KTDP-INTER_TILE_REDUCE-C4`: the result has the tile's element type and
      number of elements (a reshape is allowed).
    - `KTDP-INTER_TILE_REDUCE-C5`: the region has two arguments of the tile type.
    - `KTDP-INTER_TILE_REDUCE-C6`: the region ends in `ktdp.yield_reduced`.
  }];
  let arguments = (ins KTDP_TileFuture:$future,
                       KTDP_IntegerSetAttr:$consumer_tiles_per_group,
                       OptionalAttr<KTDP_IntegerSetAttr>:$producer_dependency_per_consumer,
                       AnyRankedTensor:$identity);
  let results = (outs AnyRankedTensor:$result);
  let regions = (region SizedRegion<1>:$combiner);
  let assemblyFormat = [{
    `(` $future `)` `consumer_tiles_per_group` `=` $consumer_tiles_per_group ``
    custom<DependencyThenComma>($producer_dependency_per_consumer)
    `identity` `(` $identity `:` type($identity) `)` attr-dict-with-keyword
    `:` custom<TileFuture>(type($future)) `->` type($result) $combiner
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def KTDP_InterTileReduceScatterOp : KTDP_Op<"inter_tile_reduce_scatter", [SingleBlock]> {
  let summary = "Combines the tiles of a group, each consumer keeps a part";
  let description = [{
    As `ktdp.inter_tile_reduce`; then the combined tile is cut into equal parts
    along `scatter_dimension` and the i-th consumer of the group, in ascending
    core order, receives the i-th part.

    ```mlir
    %part = ktdp.inter_tile_reduce_scatter(%future)
        consumer_tiles_per_group = #pair, scatter_dimension = 1,
        identity(%zero : tensor<1x128xf16>)
        : <(tensor<1x128xf16>), groups = #groups> -> tensor<1x64xf16> {
      ^bb0(%lhs: tensor<1x128xf16>, %rhs: tensor<1x128xf16>):
        %sum = arith.addf %lhs, %rhs : tensor<1x128xf16>
        ktdp.yield_reduced %sum : tensor<1x128xf16>
    }
    ```

    Constraints:

    - `KTDP-INTER_TILE_REDUCE_SCATTER-C1`: the consumer set has one dimension and
      one symbol.
    - `KTDP-INTER_TILE_REDUCE_SCATTER-C2`: `scatter_dimension` is a dimension of
      the tile.
    - `KTDP-INTER_TILE_REDUCE_SCATTER-C3`: the identity has the future's tile
      type.
    - `KTDP-INTER_TILE_REDUCE_SCATTER-C4`: the result is the tile with an equal
      part of `scatter_dimension`.
    - `KTDP-INTER_TILE_REDUCE_SCATTER-C5`: the region has two arguments of the
      tile type.
    - `KTDP-INTER_TILE_REDUCE_SCATTER-C6`: the region ends in
      `ktdp.yield_reduced`.
  }];
  let arguments = (ins KTDP_TileFuture:$future,
                       KTDP_IntegerSetAttr:$consumer_tiles_per_group,
                       I64Attr:$scatter_dimension, AnyRankedTensor:$identity);
  let results = (outs AnyRankedTensor:$result);
  let regions = (region SizedRegion<1>:$combiner);
  let assemblyFormat = [{
    `(` $future `)` `consumer_tiles_per_group` `=` $consumer_tiles_per_group
    `,` `scatter_dimension` `=` $scatter_dimension
    `,` `identity` `(` $identity `:` type($identity) `)` attr-dict-with-keyword
    `:` custom<TileFuture>(type($future)) `->` type($result) $combiner
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def KTDP_YieldReducedOp : KTDP_Op<"yield_reduced",
    [Terminator, Pure, ParentOneOf<["::mlir::ktdp::InterTileReduceOp",
                                    "::mlir::ktdp::InterTileReduceScatterOp"]>]> {
  let summary = "The combination of two tiles";
  let description = [{
    Constraints:

    - `KTDP-YIELD_REDUCED-C1`: the parent is `ktdp.inter_tile_reduce` or
      `ktdp.inter_tile_reduce_scatter`.
    - `KTDP-YIELD_REDUCED-C2`: the value has the future's tile type.
  }];
  let arguments = (ins AnyRankedTensor:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def KTDP_InterTileConsumeOp : KTDP_Op<"inter_tile_consume"> {
  let summary = "Receives one producer's tile";
  let description = [{
    Broadcast or routing: each consuming core receives the tile of the one
    producer (dimension) that `producer_dependency_per_consumer` names for it
    (last symbol: the consumer; the group is an optional first one). Without
    it the group has exactly one producer.

    ```mlir
    %tile = ktdp.inter_tile_consume(%future) consumer_tiles_per_group = #pair,
        producer_dependency_per_consumer = affine_set<(p)[c] : (p - c + 1 == 0)>
        : <(tensor<1x128xf16>), groups = #groups> -> tensor<1x128xf16>
    ```

    Constraints:

    - `KTDP-INTER_TILE_CONSUME-C1`: the consumer set has one dimension and one
      symbol.
    - `KTDP-INTER_TILE_CONSUME-C2`: the dependency set has one dimension and one
      or two symbols.
    - `KTDP-INTER_TILE_CONSUME-C3`: the result has the future's tile type.
  }];
  let arguments = (ins KTDP_TileFuture:$future,
                       KTDP_IntegerSetAttr:$consumer_tiles_per_group,
                       OptionalAttr<KTDP_IntegerSetAttr>:$producer_dependency_per_consumer);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    `(` $future `)` `consumer_tiles_per_group` `=` $consumer_tiles_per_group
    (`,` `producer_dependency_per_consumer` `=` $producer_dependency_per_consumer^)?
    attr-dict-with-keyword
    `:` custom<TileFuture>(type($future)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def KTDP_InterTileGatherOp : KTDP_Op<"inter_tile_gather"> {
  let summary = "Receives the concatenation of a group's tiles";
  let description = [{
    Each consuming core receives the tiles of the group's producers, in
    ascending core order, concatenated along `gather_dimension`.

    ```mlir
    %both = ktdp.inter_tile_gather(%future) consumer_tiles_per_group = #pair,
        gather_dimension = 0
        : <(tensor<1x128xf16>), groups = #groups> -> tensor<2x128xf16>
    ```

    Constraints:

    - `KTDP-INTER_TILE_GATHER-C1`: the consumer set has one dimension and one
      symbol.
    - `KTDP-INTER_TILE_GATHER-C2`: `gather_dimension` is a dimension of the tile.
    - `KTDP-INTER_TILE_GATHER-C3`: the result is the tile with a multiple of
      `gather_dimension`.
  }];
  let arguments = (ins KTDP_TileFuture:$future,
                       KTDP_IntegerSetAttr:$consumer_tiles_per_group,
                       I64Attr:$gather_dimension);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    `(` $future `)` `consumer_tiles_per_group` `=` $consumer_tiles_per_group
    `,` `gather_dimension` `=` $gather_dimension attr-dict-with-keyword
    `:` custom<TileFuture>(type($future)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def KTDP_InterTileScatterOp : KTDP_Op<"inter_tile_scatter"> {
  let summary = "Receives a part of the producer's tile";
  let description = [{
    The group has exactly one producer. Its tile is cut into equal parts along
    `scatter_dimension`; the i-th consumer of the group, in ascending core
    order, receives the i-th part.

    ```mlir
    %part = ktdp.inter_tile_scatter(%future) consumer_tiles_per_group = #pair,
        scatter_dimension = 1
        : <(tensor<1x128xf16>), groups = #groups> -> tensor<1x64xf16>
    ```

    Constraints:

    - `KTDP-INTER_TILE_SCATTER-C1`: the consumer set has one dimension and one
      symbol.
    - `KTDP-INTER_TILE_SCATTER-C2`: `scatter_dimension` is a dimension of the
      tile.
    - `KTDP-INTER_TILE_SCATTER-C3`: the result is the tile with an equal part of
      `scatter_dimension`.
  }];
  let arguments = (ins KTDP_TileFuture:$future,
                       KTDP_IntegerSetAttr:$consumer_tiles_per_group,
                       I64Attr:$scatter_dimension);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    `(` $future `)` `consumer_tiles_per_group` `=` $consumer_tiles_per_group
    `,` `scatter_dimension` `=` $scatter_dimension attr-dict-with-keyword
    `:` custom<TileFuture>(type($future)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def KTDP_InterTileAllToAllOp : KTDP_Op<"inter_tile_all_to_all"> {
  let summary = "Receives a part of every producer's tile";
  let description = [{
    The group's consumers are its producers. Each producer's tile is cut into
    equal parts along `split_dimension`; the i-th core of the group, in
    ascending order, receives the i-th parts, concatenated along
    `concat_dimension` in ascending order of their producers.

    ```mlir
    %tile = ktdp.inter_tile_all_to_all(%future) consumer_tiles_per_group = #pair,
        split_dimension = 1, concat_dimension = 0
        : <(tensor<1x128xf16>), groups = #groups> -> tensor<2x64xf16>
    ```

    Constraints:

    - `KTDP-INTER_TILE_ALL_TO_ALL-C1`: the consumer set has one dimension and one
      symbol.
    - `KTDP-INTER_TILE_ALL_TO_ALL-C2`: `split_dimension` and `concat_dimension`
      are dimensions of the tile.
    - `KTDP-INTER_TILE_ALL_TO_ALL-C3`: the result is the tile with an equal part
      of `split_dimension` and as often `concat_dimension`.
  }];
  let arguments = (ins KTDP_TileFuture:$future,
                       KTDP_IntegerSetAttr:$consumer_tiles_per_group,
                       I64Attr:$split_dimension, I64Attr:$concat_dimension);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    `(` $future `)` `consumer_tiles_per_group` `=` $consumer_tiles_per_group
    `,` `split_dimension` `=` $split_dimension
    `,` `concat_dimension` `=` $concat_dimension attr-dict-with-keyword
    `:` custom<TileFuture>(type($future)) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // SPYRE_DIALECT_KTIR_IR_KTIRINTERTILEOPS_TD
