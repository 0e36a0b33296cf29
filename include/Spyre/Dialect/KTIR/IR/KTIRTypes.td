// SPDX-License-Identifier: Apache-2.0

#ifndef SPYRE_DIALECT_KTIR_IR_KTIRTYPES_TD
#define SPYRE_DIALECT_KTIR_IR_KTIRTYPES_TD

include "Spyre/Dialect/KTIR/IR/KTIRDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"

def KTDP_AccessTileType : TypeDef<KTDP_Dialect, "AccessTile",
    [ShapedTypeInterface]> {
  let mnemonic = "access_tile";
  let summary = "A set of coordinates in a memory view";
  let description = [{
    `!ktdp.access_tile<4x?xindex>`: the shape of the data tile that a load
    through it makes. Rank 0 and size 0 are legal, `?` is a size known when the
    kernel runs.

    Constraints:

    - `KTDP-ACCESS_TILE-C1`: the element type is `index`.
    - `KTDP-ACCESS_TILE-C2`: every size is `?` or not negative.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape,
                        "::mlir::Type":$elementType);
  let builders = [
    TypeBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape), [{
      return $_get($_ctxt, shape, ::mlir::IndexType::get($_ctxt));
    }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool hasRank() const { return true; }
    ::mlir::ShapedType
    cloneWith(::std::optional<::llvm::ArrayRef<int64_t>> shape,
              ::mlir::Type elementType) const;
  }];
}

def KTDP_RuntimeArgType : TypeDef<KTDP_Dialect, "RuntimeArg"> {
  let mnemonic = "runtime_arg";
  let summary = "A scalar that is known when the kernel is launched";
  let description = [{
    `!ktdp.runtime_arg<index, granularity=64, upperbound=4096>`: a value that
    is a multiple of the granularity and at most the upper bound.

    Constraints:

    - `KTDP-RUNTIME_ARG-C1`: the type is index, an integer or a float.
    - `KTDP-RUNTIME_ARG-C2`: the granularity is positive.
    - `KTDP-RUNTIME_ARG-C3`: the upper bound is positive.
  }];
  let parameters = (ins "::mlir::Type":$valueType,
                        OptionalParameter<"::std::optional<int64_t>">:$granularity,
                        OptionalParameter<"::std::optional<int64_t>">:$upperbound);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def KTDP_TileFutureType : TypeDef<KTDP_Dialect, "TileFuture"> {
  let mnemonic = "tile_future";
  let summary = "Tiles that a group of cores produces for others";
  let description = [{
    One tile per producing core of each group. `groups` is the set of group
    ids. Both spellings are read; the first is printed. Operations print it
    without `!ktdp.tile_future`.

    ```mlir
    !ktdp.tile_future<(tensor<1x128xf16>), groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>>
    !ktdp.tile_future<tensor<1x128xf16>, groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>>
    ```

    Constraints:

    - `KTDP-TILE_FUTURE-C1`: the tile is a ranked tensor.
    - `KTDP-TILE_FUTURE-C2`: `groups` has one dimension and no symbol.
  }];
  let parameters = (ins "::mlir::Type":$tileType,
                        "::mlir::IntegerSetAttr":$groups);
  let builders = [
    TypeBuilderWithInferredContext<(ins "::mlir::Type":$tileType,
                                        "::mlir::IntegerSetAttr":$groups), [{
      return $_get(tileType.getContext(), tileType, groups);
    }]>
  ];
  let skipDefaultBuilders = 1;
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // SPYRE_DIALECT_KTIR_IR_KTIRTYPES_TD
