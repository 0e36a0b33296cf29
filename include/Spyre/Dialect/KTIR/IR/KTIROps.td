// SPDX-License-Identifier: Apache-2.0

#ifndef SPYRE_DIALECT_KTIR_IR_KTIROPS_TD
#define SPYRE_DIALECT_KTIR_IR_KTIROPS_TD

include "Spyre/Dialect/KTIR/IR/KTIRBase.td"
include "Spyre/Dialect/KTIR/IR/KTIRInterTileOps.td"

def KTDP_AccessTile : Type<CPred<"::llvm::isa<::mlir::ktdp::AccessTileType>($_self)">,
    "access tile", "::mlir::ktdp::AccessTileType">;
def KTDP_RuntimeArg : Type<CPred<"::llvm::isa<::mlir::ktdp::RuntimeArgType>($_self)">,
    "runtime argument", "::mlir::ktdp::RuntimeArgType">;
def KTDP_Base : AnyTypeOf<[AnyRankedOrUnrankedMemRef, AnyTensor]>;

//===----------------------------------------------------------------------===//
// Grid and run-time arguments
//===----------------------------------------------------------------------===//

def KTDP_GetComputeTileIdOp : KTDP_Op<"get_compute_tile_id", [Pure]> {
  let summary = "The executing core's position in the grid";
  let description = [{
    One result per grid dimension, in x, y, z order; x is the fastest. The grid
    is the function's discardable attribute `grid`.

    ```mlir
    %x, %y = ktdp.get_compute_tile_id : index, index
    ```

    Constraints:

    - `KTDP-GET_COMPUTE_TILE_ID-C1`: there is at least one result.
    - `KTDP-GET_COMPUTE_TILE_ID-C2`: every result is an index.
  }];
  let results = (outs Variadic<Index>:$ids);
  let builders = [
    OpBuilder<(ins CArg<"unsigned", "1">:$numDims)>
  ];
  let assemblyFormat = "attr-dict `:` type($ids)";
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
}

def KTDP_RuntimeArgExtractOp : KTDP_Op<"runtime_arg_extract", [Pure]> {
  let summary = "The value or a declared property of a run-time argument";
  let description = [{
    ```mlir
    %n = ktdp.runtime_arg_extract value from %arg
        : !ktdp.runtime_arg<i32, granularity=64> -> i32
    ```

    Constraints:

    - `KTDP-RUNTIME_ARG_EXTRACT-C1`: `value` gives the argument's value type.
    - `KTDP-RUNTIME_ARG_EXTRACT-C2`: `granularity` and `upperbound` are only
      extracted from an argument type that has them.
    - `KTDP-RUNTIME_ARG_EXTRACT-C3`: these give an index.
  }];
  let arguments = (ins KTDP_RuntimeArgExtractKind:$kind,
                       KTDP_RuntimeArg:$source);
  let results = (outs AnyType:$result);
  let assemblyFormat = [{
    $kind `from` $source attr-dict `:`
    custom<RuntimeArgType>(type($source)) `->` type($result)
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Memory views
//===----------------------------------------------------------------------===//

def KTDP_ConstructMemoryViewOp : KTDP_Op<"construct_memory_view",
    [Pure, MemRefsNormalizable, AttrSizedOperandSegments]> {
  let summary = "A view of memory: pointer, sizes, strides, memory space";
  let description = [{
    `offset` is an *element* index into the memory space (byte address divided
    by the element size); for `ct_local` into the core's own scratchpad.
    `coordinate_set` holds the legal coordinates; its symbols bind, left to
    right, to the dynamic sizes.

    ```mlir
    %v = ktdp.construct_memory_view %x, sizes: [64, %n], strides: [256, 1] {
      coordinate_set = affine_set<(r, c)[s] : (r >= 0, -r + 63 >= 0, c >= 0, -c + s - 1 >= 0)>,
      memory_space = #ktdp.memory_space<global>} : memref<64x?xf16>
    ```

    As in the front end, sizes are not compared with the memref's shape, nor
    strides with its layout, nor the memref's memory space with the attribute;
    the set's rank is free.

    Constraints:

    - `KTDP-CONSTRUCT_MEMORY_VIEW-C1`: `sizes` and `strides` have equal length.
    - `KTDP-CONSTRUCT_MEMORY_VIEW-C2`: each `?` of `static_sizes` and
      `static_strides` has its operand.
    - `KTDP-CONSTRUCT_MEMORY_VIEW-C3`: the result's rank is the number of sizes.
  }];
  let arguments = (ins Index:$offset, Variadic<Index>:$sizes,
                       Variadic<Index>:$strides,
                       DenseI64ArrayAttr:$static_sizes,
                       DenseI64ArrayAttr:$static_strides,
                       KTDP_MemorySpaceAttrInterface:$memory_space,
                       KTDP_IntegerSetAttr:$coordinate_set);
  let results = (outs AnyMemRef:$result);
  let builders = [
    // Static sizes (elements, outermost first) and strides; the coordinate set
    // is the whole box, the result an identity-layout memref of `sizes`.
    OpBuilder<(ins "::mlir::Value":$offset, "::llvm::ArrayRef<int64_t>":$sizes,
                   "::llvm::ArrayRef<int64_t>":$strides,
                   "::mlir::Type":$elementType,
                   "::mlir::ktdp::KtdpMemorySpaceAttr":$memorySpace)>,
    // The same, dense row-major.
    OpBuilder<(ins "::mlir::Value":$offset, "::llvm::ArrayRef<int64_t>":$sizes,
                   "::mlir::Type":$elementType,
                   "::mlir::ktdp::KtdpMemorySpaceAttr":$memorySpace)>,
    // Sizes and strides may be values; each size value is a set symbol.
    OpBuilder<(ins "::mlir::Value":$offset,
                   "::llvm::ArrayRef<::mlir::OpFoldResult>":$sizes,
                   "::llvm::ArrayRef<::mlir::OpFoldResult>":$strides,
                   "::mlir::Type":$elementType,
                   "::mlir::ktdp::KtdpMemorySpaceAttr":$memorySpace)>
  ];
  let assemblyFormat = [{
    $offset `,` `sizes` `` `:` custom<DynamicIndexList>($sizes, $static_sizes) `,`
    `strides` `` `:` custom<DynamicIndexList>($strides, $static_strides)
    attr-dict `:` type($result)
  }];
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Sizes and strides in elements, outermost first; values where dynamic.
    ::llvm::SmallVector<::mlir::OpFoldResult> getMixedSizes();
    ::llvm::SmallVector<::mlir::OpFoldResult> getMixedStrides();
  }];
}

def KTDP_ConstructDistributedMemoryViewOp
    : KTDP_Op<"construct_distributed_memory_view", [Pure, MemRefsNormalizable]> {
  let summary = "One view over several partitions";
  let description = [{
    Joins views whose `coordinate_set`s are in global coordinates. Where two
    partitions hold a coordinate, the first one counts. Cover, disjointness and
    shape are not checked here.

    ```mlir
    %v = ktdp.construct_distributed_memory_view
        (%a, %b : memref<96x64xf16>, memref<96x64xf16>) : memref<192x64xf16>
    ```

    Constraints:

    - `KTDP-CONSTRUCT_DISTRIBUTED_MEMORY_VIEW-C1`: every partition has the
      result's element type.
    - `KTDP-CONSTRUCT_DISTRIBUTED_MEMORY_VIEW-C2`: every partition has the
      result's rank.
  }];
  let arguments = (ins Variadic<AnyMemRef>:$partitions);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = [{
    (`(` $partitions^ `:` type($partitions) `)`)? attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Access tiles
//===----------------------------------------------------------------------===//

def KTDP_ConstructAccessTileOp : KTDP_Op<"construct_access_tile",
    [Pure, AttrSizedOperandSegments]> {
  let summary = "Coordinates of a view, relative to a base coordinate";
  let description = [{
    The tile's points are base + p for each p of `access_tile_set`, taken in
    the lexicographic order of `access_tile_order(p)`. The base is
    `base_map(indices)`, which is derived from the subscripts: affine
    expressions of index values.

    ```mlir
    %t = ktdp.construct_access_tile %v[%first * 4, %c] symbols(%n) {
      access_tile_set = affine_set<(r, c)[s] : (r >= 0, -r + s - 1 >= 0, c >= 0, -c + 255 >= 0)>,
      access_tile_order = affine_map<(r, c) -> (r, c)>}
      : memref<64x256xf16> -> !ktdp.access_tile<?x256xindex>
    ```

    As in the front end, the base's rank, the tile's sizes and whether the order
    is a permutation are not checked.

    Constraints:

    - `KTDP-CONSTRUCT_ACCESS_TILE-C1`: the set has as many dimensions as there
      are subscripts.
    - `KTDP-CONSTRUCT_ACCESS_TILE-C2`: `base_map` takes as many inputs as there
      are `indices`.
    - `KTDP-CONSTRUCT_ACCESS_TILE-C3`: the set has as many symbols as there are
      symbol operands.
    - `KTDP-CONSTRUCT_ACCESS_TILE-C4`: the order maps the set's dimensions to as
      many results, without symbols.
    - `KTDP-CONSTRUCT_ACCESS_TILE-C5`: the tile's rank is the set's number of
      dimensions.
  }];
  let arguments = (ins KTDP_Base:$base, Variadic<Index>:$indices,
                       Variadic<Index>:$symbol_operands,
                       AffineMapAttr:$base_map,
                       KTDP_IntegerSetAttr:$access_tile_set,
                       AffineMapAttr:$access_tile_order);
  let results = (outs KTDP_AccessTile:$result);
  let builders = [
    // The box of `extents` at base coordinate `indices` (one value per base
    // dimension), row-major order. Extents that are values become symbols.
    OpBuilder<(ins "::mlir::Value":$base, "::mlir::ValueRange":$indices,
                   "::llvm::ArrayRef<::mlir::OpFoldResult>":$extents)>,
    // The same with an affine map from `indices` to the base coordinate.
    OpBuilder<(ins "::mlir::Value":$base, "::mlir::AffineMap":$baseMap,
                   "::mlir::ValueRange":$indices,
                   "::llvm::ArrayRef<::mlir::OpFoldResult>":$extents)>
  ];
  let hasCustomAssemblyFormat = 1;
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
}

def KTDP_ConstructIndirectAccessTileOp : KTDP_Op<"construct_indirect_access_tile",
    [AttrSizedOperandSegments,
     DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
     DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "Coordinates of a view as functions of tile variables";
  let description = [{
    For each point of `variables_space_set`, in the lexicographic order of
    `variables_space_order`, one coordinate of the base: each base dimension is
    an affine expression of the intermediate variables and of index values
    captured from outside, or one element of an index memref whose subscripts
    are such expressions, `ind(%idx[...])`.

    ```mlir
    %t = ktdp.construct_indirect_access_tile intermediate_variables(%i, %c)
        %x[ind(%idx[%first + %i]), (%c floordiv 64), (%c mod 64)] symbols(%n) {
      variables_space_set = affine_set<(i, c)[s] : (i >= 0, -i + s - 1 >= 0, c >= 0, -c + 127 >= 0)>,
      variables_space_order = affine_map<(i, c) -> (i, c)>}
      : memref<64x2x64xf16>, memref<8xi32> -> !ktdp.access_tile<?x128xindex>
    ```

    The subscripts are kept as `per_dim_subscript_maps`, whose dimensions are
    the captured values, then the variables. The region only gives the
    variables names: one block with an index argument each, ended by
    `ktdp.region_terminator`. The op reads memory if a subscript is indirect.

    Constraints:

    - `KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C1`: the region's block has only
      index arguments and holds nothing but its terminator.
    - `KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C2`: the set has one dimension per
      variable.
    - `KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C3`: the order maps the variables to
      as many results, without symbols.
    - `KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C4`: the tile's rank is the number of
      variables.
    - `KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C5`: the set has as many symbols as
      there are symbol operands.
    - `KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C6`: there is one subscript (kind and
      map) per base dimension.
    - `KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C7`: there is one index memref per
      indirect subscript.
    - `KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C8`: a subscript map's dimensions are
      the captured values and the variables; it has no symbols.
    - `KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C9`: an indirect subscript's map has
      one result per dimension of its index memref.
    - `KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C10`: a direct subscript's map has
      one result.
  }];
  let arguments = (ins AnyTypeOf<[AnyMemRef, AnyRankedTensor]>:$base,
                       Variadic<AnyMemRef>:$index_memrefs,
                       Variadic<Index>:$captured,
                       Variadic<Index>:$symbol_operands,
                       DenseBoolArrayAttr:$per_dim_subscript_kinds,
                       AffineMapArrayAttr:$per_dim_subscript_maps,
                       KTDP_IntegerSetAttr:$variables_space_set,
                       AffineMapAttr:$variables_space_order);
  let results = (outs KTDP_AccessTile:$result);
  let regions = (region SizedRegion<1>:$variables);
  let builders = [
    // One subscript per base dimension. In the expressions, d<i> is variable i
    // and s<j> is captured[j]. The variables range over the box of `extents`
    // in row-major order; extents that are values become symbols. Captured
    // values that no subscript uses are dropped, constants are folded in.
    OpBuilder<(ins "::mlir::Value":$base,
                   "::llvm::ArrayRef<::mlir::ktdp::Subscript>":$subscripts,
                   "::mlir::ValueRange":$captured,
                   "::llvm::ArrayRef<::mlir::OpFoldResult>":$extents)>
  ];
  let skipDefaultBuilders = 1;
  let hasCustomAssemblyFormat = 1;
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    unsigned getNumVariables() {
      return getVariables().front().getNumArguments();
    }
    /// Whether base dimension `dim` is read from an index memref.
    bool isIndirect(unsigned dim) { return getPerDimSubscriptKinds()[dim]; }
    /// Dimensions: captured values, then variables. One result if direct, else
    /// one per dimension of the index memref.
    ::mlir::AffineMap getSubscriptMap(unsigned dim) {
      return ::llvm::cast<::mlir::AffineMapAttr>(
          getPerDimSubscriptMaps()[dim]).getValue();
    }
    /// The index memref of base dimension `dim`, null if direct.
    ::mlir::Value getIndexMemRef(unsigned dim);
  }];
}

def KTDP_RegionTerminatorOp : KTDP_Op<"region_terminator", [Terminator, Pure]> {
  let summary = "Ends the region of construct_indirect_access_tile";
  let description = [{
    Not written in assembly: it ends the hidden region that names the
    intermediate variables.
  }];
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Data tiles
//===----------------------------------------------------------------------===//

def KTDP_LoadOp : KTDP_Op<"load", [MemoryEffects<[MemRead]>]> {
  let summary = "Reads a data tile";
  let description = [{
    Element p of the result is the view's element at the tile's p-th point.

    ```mlir
    %d = ktdp.load %t : !ktdp.access_tile<4x256xindex> -> tensor<4x256xf16>
    ```

    As in the front end, the element type is not compared with the view's.

    Constraints:

    - `KTDP-LOAD-C1`: the result has the tile's shape.
  }];
  let arguments = (ins KTDP_AccessTile:$tile);
  let results = (outs AnyRankedTensor:$result);
  let builders = [
    // The result has the tile's shape and `elementType`.
    OpBuilder<(ins "::mlir::Value":$tile, "::mlir::Type":$elementType)>,
    // The same with the element type of the view that `tile` was made from;
    // `tile` must be a result of construct_[indirect_]access_tile.
    OpBuilder<(ins "::mlir::Value":$tile)>
  ];
  let skipDefaultBuilders = 1;
  let assemblyFormat = [{
    $tile attr-dict `:` custom<TileType>(type($tile)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def KTDP_StoreOp : KTDP_Op<"store", [MemoryEffects<[MemWrite]>]> {
  let summary = "Writes a data tile";
  let description = [{
    ```mlir
    ktdp.store %d, %t : tensor<4x256xf16>, !ktdp.access_tile<4x256xindex>
    ```

    As in the front end, the element type is not compared with the view's.

    Constraints:

    - `KTDP-STORE-C1`: the data tile has the access tile's shape.
  }];
  let arguments = (ins AnyRankedTensor:$data, KTDP_AccessTile:$tile);
  let assemblyFormat = [{
    $data `,` $tile attr-dict `:` type($data) `,` custom<TileType>(type($tile))
  }];
  let hasVerifier = 1;
}

#endif // SPYRE_DIALECT_KTIR_IR_KTIROPS_TD
