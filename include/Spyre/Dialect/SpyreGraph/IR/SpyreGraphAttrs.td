// SPDX-License-Identifier: Apache-2.0
#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHATTRS_TD
#define SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/TensorEncoding.td"
include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphDialect.td"
include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphInterfaces.td"

class SpyreGraph_Attr<string name, string mn, list<Trait> traits = []>
    : AttrDef<SpyreGraph_Dialect, name, traits> {
  let mnemonic = mn;
}

def SpyreGraph_LayoutAttr : SpyreGraph_Attr<"Layout", "layout", [
    DeclareAttrInterfaceMethods<SpyreGraph_LayoutAttrInterface>,
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "shape-relative tiled device layout";
  let description = [{
    The generic-stick layout of spec/layouts.md: `order` is a permutation of
    the tensor's dimensions, the last of which is the stick dimension; `sparse`
    keeps one element per stick. Device size and stride map follow from it and
    the shape, so that tiling a tensor keeps its encoding valid.

    The second factor of a product of 8-bit numbers is `packed` on the device
    (spec/superdsc.md, "Validity"): a stick holds `packed` steps of the first
    dimension in `order`, and as many fewer of the stick dimension. They
    alternate: element (i, j) of a stick is in lane `packed` x j + i.

    Constraints:
    - SG-LAYOUT-C1: `order` is a permutation of 0..rank-1.
    - SG-LAYOUT-C2: `format` is the device format of the element type.
    - SG-LAYOUT-C3: `packed` divides the elements of a stick, and is 1 with
      `sparse` and for fewer than two dimensions.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$order,
                        "bool":$sparse,
                        "::spyre::DataFormat":$format,
                        "int64_t":$packed);
  let builders = [AttrBuilder<(ins "::llvm::ArrayRef<int64_t>":$order,
                                   "::mlir::Type":$elementType,
                                   CArg<"bool", "false">:$sparse)>,
                  AttrBuilder<(ins "::llvm::ArrayRef<int64_t>":$order,
                                   "bool":$sparse,
                                   "::spyre::DataFormat":$format), [{
    return $_get($_ctxt, order, sparse, format, /*packed=*/1);
  }]>];
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// The default layout (identity order) of a tensor.
    static LayoutAttr getDefault(ShapedType type);
  }];
}

def SpyreGraph_ExplicitLayoutAttr
    : SpyreGraph_Attr<"ExplicitLayout", "explicit_layout", [
    DeclareAttrInterfaceMethods<SpyreGraph_LayoutAttrInterface>,
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "device layout given by device size and stride map";
  let description = [{
    The layout of a storage whose user chose a device size and stride map that
    no `order` gives. Only function arguments and imported files carry it.
    `host_strides` are the strides (elements) of the home that `stride_map`
    refers to.

    Constraints:
    - SG-EXPLICIT-LAYOUT-C1: each device dimension can be read as a floor
      division and modulus of one host dimension.
    - SG-EXPLICIT-LAYOUT-C2: `format` is the device format of the element type.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$device_size,
                        ArrayRefParameter<"int64_t">:$stride_map,
                        ArrayRefParameter<"int64_t">:$host_strides,
                        "::spyre::DataFormat":$format);
  let hasCustomAssemblyFormat = 1;
}

def SpyreGraph_SizeSymbolAttr : SpyreGraph_Attr<"SizeSymbol", "symbol"> {
  let summary = "a size that is known when a program runs";
  let description = [{
    One entry of a function's `spyre_graph.symbols`: its name for messages, and
    the sizes that it may have: the multiples of `step` from `least` to `most`.
    Maps that say how large something is (`spyre_graph.size_map` of arguments,
    `size_map` of views, `extent_map` of operations, `chunk_map` of divisions)
    take the function's symbols in order. What they say beside a shape, extents
    or chunks is the number itself, and the plain number is the largest that it
    can be: shapes of types are capacities.

    ```mlir
    #rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

    func.func @main(%x: tensor<512x256xf16, #rows> {
        spyre_graph.size_map = affine_map<()[s] -> (s, 256)>})
        attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 512>]} {
      return
    }
    ```

    Constraints:
    - SG-SYMBOL-C1: `spyre_graph.symbols` is an array of symbols of different
      names on a function; 1 <= least <= most, and `step` is positive and
      divides both.
    - SG-SYMBOL-C2: a map of sizes has no dimensions, the function's symbols and
      one result per number; the largest value of each is the number that it
      stands beside, and the least is at least 1. A result that is that number
      itself says that it does not vary.
    - SG-SYMBOL-C3: an argument with a `spyre_graph.used_map` is as large in every
      run, and used below the results of the map (SG-SYMBOL-C2); it has no
      `spyre_graph.size_map`.
    - SG-SYMBOL-C4: an `scf.for` with a `spyre_graph.bound_map` runs from 0 by a
      constant step to the map's result, beside which its upper bound is the
      largest (SG-SYMBOL-C2): a symbol, or one divided by a number. The product
      of this and the step divides the step between the symbol's sizes, so that
      iterations leave nothing out. Or the bound is a symbol that is never
      smaller than the step: then the last tiles start at a
      `spyre_graph.tile_start`.
    - SG-SYMBOL-C5: a function's `spyre_graph.sizes_apart` is the number of one of
      its symbols and a size in the range of that, but the largest: what is up to
      this size is better off with another plan than what is beyond.
  }];
  let parameters = (ins StringRefParameter<"name">:$name, "int64_t":$least,
                        "int64_t":$most,
                        DefaultValuedParameter<"int64_t", "1">:$step);
  let assemblyFormat = "`<` $name `,` $least `to` $most (`by` $step^)? `>`";
  let genVerifyDecl = 1;
}

def SpyreGraph_WorkDivisionAttr : SpyreGraph_Attr<"WorkDivision", "division"> {
  let summary = "how the loop dimensions of an op are divided over cores";
  let description = [{
    Loop dimension d is cut into `splits[d]` slices of `chunks[d]` iterations,
    the last of which may be shorter. Core c works on slice
    `(c floordiv prod(splits of dims before d in core order)) mod splits[d]`.
    `order` lists the loop dimensions in core order, the first fastest; without
    it they are in ascending order. Cores from prod(splits) on are idle.

    The cores that differ only in their slice of a reduction dimension are
    partners: they compute the same elements from different operands. Each
    accumulates its part from the identity (floating-point parts in fp32), the
    parts are combined over the ring in ascending core order and the result is
    rounded once. All partners hold a result in LX, the first one alone writes
    one to device memory.

    Where the extents of the loops are functions of the function's symbols, so
    are the chunks: `chunk_map` says how many iterations a slice has at each
    size, and `chunks` how many it can have at most. At small sizes the last
    slices may then be empty.

    Constraints:
    - SG-DIVISION-C1: `splits` and `chunks` have one positive entry per loop
      dimension (a chunk may be 0 for an empty dimension).
    - SG-DIVISION-C2: no slice is empty unless the dimension is:
      (splits - 1) x chunks < extent <= splits x chunks. Of extents that vary
      this holds for the largest.
    - SG-DIVISION-C3: besides parallel dimensions at most one is split, and
      only of a reduction whose parts an associative operation combines (sums,
      products, maxima, minima, and, or; not argmax, argmin, scans or sorts).
    - SG-DIVISION-C4: `order` is a permutation of the loop dimensions, in which
      a split reduction dimension comes before all other split ones: partners
      are neighbours on the ring.
    - SG-DIVISION-C5: an operation with an `extent_map` has a division with a
      `chunk_map` (SG-SYMBOL-C2), and no other has.
    - SG-DIVISION-C6: the product of all splits, and splits x chunks of each
      dimension, fit 63 bits.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$splits,
                        ArrayRefParameter<"int64_t">:$chunks,
                        ArrayRefParameter<"int64_t">:$order,
                        "::mlir::AffineMap":$chunkMap);
  let builders = [
    AttrBuilder<(ins "::llvm::ArrayRef<int64_t>":$splits,
                     "::llvm::ArrayRef<int64_t>":$chunks), [{
      return $_get($_ctxt, splits, chunks, ::llvm::ArrayRef<int64_t>(),
                   ::mlir::AffineMap());
    }]>,
    AttrBuilder<(ins "::llvm::ArrayRef<int64_t>":$splits,
                     "::llvm::ArrayRef<int64_t>":$chunks,
                     "::llvm::ArrayRef<int64_t>":$order), [{
      return $_get($_ctxt, splits, chunks, order, ::mlir::AffineMap());
    }]>];
  // Written by hand because the lists of an op without loops are empty.
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether the slices of loop dimension `dim` cover its iterations, and none
    /// is empty unless there are none (SG-DIVISION-C2).
    bool covers(unsigned dim, int64_t extent) const;
    /// The number of cores that have work.
    int64_t getNumCores() const;
    /// How many cores before which one step of each loop dimension's slice
    /// index happens: the product of the splits before it in core order.
    ::llvm::SmallVector<int64_t> getCoreStrides() const;
    /// The same division with the chunks as functions of symbols (or null).
    WorkDivisionAttr withChunkMap(::mlir::AffineMap map) const;
    /// A division whose `order` starts with loop dimension `first`.
    static WorkDivisionAttr getWithFirst(::mlir::MLIRContext *context,
                                         ::llvm::ArrayRef<int64_t> splits,
                                         ::llvm::ArrayRef<int64_t> chunks,
                                         int64_t first);
  }];
}

def SpyreGraph_MemorySpace : I32EnumAttr<"MemorySpace", "memory of a buffer", [
    I32EnumAttrCase<"pool", 0>, I32EnumAttrCase<"lx", 1>]> {
  let cppNamespace = "::mlir::spyre_graph";
}

def SpyreGraph_PlacementAttr : SpyreGraph_Attr<"Placement", "placement"> {
  let summary = "where a buffer lives";
  let description = [{
    `pool`: byte `offset` from the start of the graph's pool in device memory.
    `lx`: byte `offset` in every core's LX; each core holds the slice of at most
    `local` elements per dimension that its ops work on, in the buffer's layout
    applied to the shape `local`.

    Constraints:
    - SG-PLACEMENT-C1: `offset` is a multiple of 128 bytes, a stick, and not
      negative.
    - SG-PLACEMENT-C2: `local` is not negative in any dimension, and `pool` has
      none.
    - SG-PLACEMENT-C3: `spyre_graph.placement` is a placement, on an allocation;
      in `lx` it has as many `local` elements as that has dimensions.
  }];
  let parameters = (ins "::mlir::spyre_graph::MemorySpace":$space,
                        "int64_t":$offset,
                        OptionalArrayRefParameter<"int64_t">:$local);
  let assemblyFormat = [{
    `<` $space `,` `offset` `=` $offset (`,` `local` `=` `[` $local^ `]`)? `>`
  }];
  let genVerifyDecl = 1;
}

def SpyreGraph_TargetAttr : SpyreGraph_Attr<"Target", "target"> {
  let summary = "what a module is planned for";
  let description = [{
    The value of a module's `spyre_graph.target`: the keyword of a target that
    is registered (Spyre/Target/Interface/Target.h). Passes ask that target what
    a plan may contain. A module without the attribute may contain anything.

    ```mlir
    module attributes {spyre_graph.target = #spyre_graph.target<ktir>} {
    }
    ```

    Constraints:
    - SG-TARGET-C1: `spyre_graph.target` is a target, on a module.
    - SG-TARGET-C2: what plans the module has a target of this name.
  }];
  let parameters = (ins StringRefParameter<"keyword">:$name);
  let hasCustomAssemblyFormat = 1;
}

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHATTRS_TD
