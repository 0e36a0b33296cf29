// SPDX-License-Identifier: Apache-2.0
#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHOPS_TD
#define SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHOPS_TD

include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphCompositeOps.td"
include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphOpBase.td"
include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphPointwiseOps.td"

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

def SpyreGraph_ViewOp : Op<SpyreGraph_Dialect, "view", [Pure]> {
  let summary = "other coordinates for the same elements";
  let description = [{
    Element `i` of the result is element `map(i)` of the source. A view costs
    nothing: layout propagation folds it into the index maps of its users. Any
    strided PyTorch view is one (transposes, slices, expansions, reshapes of
    dense storage, overlapping windows). `size_map` says how large the result
    is, in the function's symbols (SG-SYMBOL-C2); without it, as its type says.

    Constraints:
    - SG-VIEW-C1: the map has the result's rank as dimensions, no symbols and
      the source's rank as results.
    - SG-VIEW-C2: source and result have the same element type.
    - SG-VIEW-C3: no coordinate leaves the source.
  }];
  let arguments = (ins AnyRankedTensor:$source, AffineMapAttr:$map,
                       OptionalAttr<AffineMapAttr>:$size_map);
  let results = (outs AnyRankedTensor:$result);
  let builders = [
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$source,
                   "::mlir::AffineMapAttr":$map), [{
      build($_builder, $_state, result, source, map, ::mlir::AffineMapAttr());
    }]>,
  ];
  let assemblyFormat =
      "$source `,` $map attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

def SpyreGraph_TileStartOp
    : Op<SpyreGraph_Dialect, "tile_start", [Pure]> {
  let summary = "where a tile starts, if the last one ends with its loop";
  let description = [{
    The smaller of `index`, the induction variable of an `scf.for`, and of the
    loop's upper bound less its step. So a loop up to a size has tiles of one
    extent, its step, at every size: the last one starts earlier than the
    induction variable says, and computes some elements once more.

    Constraints:
    - SG-TILE-START-C1: `index` is the induction variable of an `scf.for` from 0
      by a constant step to a number that is no smaller than the step, and
      largest where the loop runs up to a size (SG-SYMBOL-C4).
  }];
  let arguments = (ins Index:$index);
  let results = (outs Index:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$index), [{
    build($_builder, $_state, index.getType(), index);
  }]>];
  let assemblyFormat = "$index attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Device operations
//===----------------------------------------------------------------------===//

// Data movement and conversion.
def SpyreGraph_IdentityOp : SpyreGraph_Unary<"identity",
    [Published<"identity", kind="Identity",
               meaning="a copy; with an index tensor a gather">,
     Published<"dl16tofp32", kind="Conversion",
               meaning="conversion">,
     Published<"fp32todl16", kind="Conversion",
               meaning="conversion, rounded to nearest, ties away from zero">,
     Published<"fp8todl16", kind="Conversion",
               meaning="conversion of float8_e4m3fn, exact; NaN becomes the "
                       "non-number">,
     Published<"qfp8ch", kind="Quantization",
               meaning="conversion to float8_e4m3fn, rounded to nearest, ties to "
                       "even, at most 448 in magnitude",
               basis="ours">,
     Published<"qfp8wt", kind="Quantization",
               meaning="as qfp8ch; sticks hold two steps of the reduction",
               basis="ours">,
     Extension<"convert", kind="Conversion",
               meaning="conversions that the published names leave out">], "x[0]"> {
  let deviceOpName = "detail::getCopyName(*this)";
  let summary = "copy, converting the element type where they differ";
}
def SpyreGraph_RestickifyOp
    : SpyreGraph_Unary<"restickify",
        [Published<"ReStickifyOpHBM", kind="Restickify">], "x[0]"> {
  // A change of stick gets its name where sticks are known.
  let deviceOpName = "detail::getCopyName(*this)";
  let summary = "copy into a layout with another stick dimension";
  let layoutRule = "LayoutRule::Any";
}
def SpyreGraph_ReshardOp : SpyreGraph_DeviceOp<"reshard"> {
  let summary = "copy between the cores' LX into other slices";
  let description = [{
    Operations that divide one tensor differently can hand it on in LX all the
    same: `source_division` says which core holds which part of the input,
    `division` which core gets which part of the init. Parts travel over the
    ring; device memory is not touched. A loop that no map uses tells apart
    cores that get the same part, or that hold it, as partners in a split
    reduction do: each part then comes from the first of them.

    Constraints:
    - SG-RESHARD-C1: one input, whose type is the init's.
    - SG-RESHARD-C2: both operands have the same map, made of distinct loop
      dimensions, one per coordinate.
    - SG-RESHARD-C3: `source_division` is a division of the loops
      (SG-DIVISION-C1, C2, C4).
  }];
  let opArguments = (ins SpyreGraph_WorkDivisionAttr:$source_division);
  let layoutRule = "LayoutRule::Any";
  let accessDivision =
      "return operand == 0 ? getSourceDivisionAttr() : getDivisionAttr();";
  let check = "return detail::verifyReshard(*this, getSourceDivision());";
}
def SpyreGraph_InsertOp : SpyreGraph_MappedOp<"insert"> {
  let summary = "copy into the init, from a row on that varies";
  let description = [{
    Copies its input to where `offset_map`, of the function's symbols, says along
    the init's dimension `axis`: a part of what is joined along a dimension whose
    size varies. As types say the largest sizes, the init's map says the largest
    offset; in a run, coordinates along `axis` are as much less as the offset is.

    What at the largest sizes is written up to the end of the init's dimension
    says how large this is in a run: as far as the operation writes.

    ```mlir
    #rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

    func.func @main(%x: tensor<512x256xf16, #rows> {
          spyre_graph.size_map = affine_map<()[s] -> (s, 256)>},
        %y: tensor<64x256xf16, #rows>)
        -> (tensor<576x256xf16> {
          spyre_graph.size_map = affine_map<()[s] -> (s + 64, 256)>})
        attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 512>]} {
      %0 = tensor.empty() : tensor<576x256xf16>
      %1 = spyre_graph.identity ins(%x : tensor<512x256xf16, #rows>)
          outs(%0 : tensor<576x256xf16>)
          {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
           extents = array<i64: 512, 256>} -> tensor<576x256xf16>
      %2 = spyre_graph.insert ins(%y : tensor<64x256xf16, #rows>)
          outs(%1 : tensor<576x256xf16>)
          {axis = 0 : i64, offset_map = affine_map<()[s] -> (s)>,
           maps = [affine_map<(i, j) -> (i, j)>,
                   affine_map<(i, j) -> (i + 512, j)>],
           extents = array<i64: 64, 256>} -> tensor<576x256xf16>
      return %2 : tensor<576x256xf16>
    }
    ```

    Constraints:
    - SG-INSERT-C1: `axis` is a dimension of the init, whose element type the
      input has.
    - SG-INSERT-C2: `offset_map` takes the function's symbols to one offset
      (SG-SYMBOL-C2), beside which the largest is the coordinate along `axis` of
      the first iteration in the init's map.
    - SG-INSERT-C3: sticks of the init do not run along `axis`.
  }];
  let opArguments = (ins I64Attr:$axis, AffineMapAttr:$offset_map);
  let deviceOpName = [{"identity"}];
  let layoutRule = "LayoutRule::Any";
  let check = "return detail::verifyInsert(*this, getAxis(), getOffsetMap());";
  let initOffset = "return InitOffset{getAxis(), getOffsetMap().getResult(0)};";
}
def SpyreGraph_FillOp : SpyreGraph_Unary<"fill",
    [Extension<"constant", kind="Other",
               meaning="fill with the constant immediate0">], "x[0]"> {
  let summary = "fill with an immediate";
}
def SpyreGraph_IotaOp : SpyreGraph_Pointwise<"iota",
    [Extension<"iota", [LoopDim<"dim">, Number<"start">, Number<"step">],
               "Other",
               meaning="start + step x the index along dimension number dim">], [{
    return b.add(b.mul(b.fromIndex(loopIndex(getDim()), getInit()),
                       b.constantLike(getInit(), getStep())),
                 b.constantLike(getInit(), getStart()));
  }], (ins I64Attr:$dim, TypedAttrInterface:$start, TypedAttrInterface:$step)> {
  let check = [{
    if (::mlir::failed(detail::verifyPointwise(*this)))
      return ::mlir::failure();
    return detail::verifyLoopDim(*this, getDim());
  }];
  let loopIndexUse = "return static_cast<int64_t>(dim) == getDim();";
  let minOperands = 0; let summary = "start + step x index along a loop dimension";
}
def SpyreGraph_TriOp : SpyreGraph_Pointwise<"tri",
    [Extension<"tri", [Integer<"diagonal">, Flag<"upper">]>], [{
    unsigned rank = getLoopExtents().size();
    ::mlir::Value row = loopIndex(rank - 2), column = loopIndex(rank - 1);
    ::mlir::Value keep = b.triangle(row, column, getDiagonal(), getUpper());
    return b.select(keep, x[0], b.zeroLike(x[0]));
  }], (ins I64Attr:$diagonal, UnitAttr:$upper)> {
  let check = [{
    if (::mlir::failed(detail::verifyPointwise(*this)))
      return ::mlir::failure();
    // The last two loop dimensions are the triangle's rows and columns.
    return detail::verifyLoopDim(*this, 1);
  }];
  let loopIndexUse = "return dim + 2 >= getLoopExtents().size();";
  let summary = "keep one triangle of the last two loop dimensions";
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

def SpyreGraph_SumOp : SpyreGraph_Reduction<"sum",
    [Published<"sum">], "Combiner::Add"> {
  let emptyResult = "0.0";
  let isRescalable = true;
  let isLXEligibleInReference = true;
}
def SpyreGraph_MeanOp : SpyreGraph_Reduction<"mean",
    [Published<"mean", [Float<"scaling_factor", "factor">],
               meaning="scaling_factor (the reciprocal of the count, or another "
                       "number) x the sum">], "Combiner::Add"> {
  let isLXEligibleInReference = true;
  let epilogue = [{
    (void)ins;
    return b.mul(accumulated, detail::buildMeanScale(b, *this, 0.0, count));
  }];
}
/// Sum of squared distances from a mean, times `scale`: var without rounding
/// the squares. With a `correction` the sum is also divided by the number of
/// elements less the correction, or, if that is not positive, times infinity.
/// Inputs: x, mean (broadcast).
def SpyreGraph_SumSquaresOp
    : SpyreGraph_Reduction<"sum_squares",
        [Extension<"sumsquares", [Float<"scale">,
                                  Float<"correction", "correction", true>]>],
        "Combiner::Add", [{
    ::mlir::Value d = ins.size() == 2 ? b.sub(ins[0], ins[1]) : ins[0];
    return b.mul(d, d);
  }], (ins F64Attr:$scale, OptionalAttr<F64Attr>:$correction)> {
  let minOperands = 1; let maxOperands = 2; let summary = "scale x the sum of (x - mean) squared; mean is optional";
  let epilogue = [{
    (void)ins;
    double scale = getScale().convertToDouble();
    if (!getCorrection())
      return b.mul(accumulated, b.constantF32(scale));
    return b.mul(b.scale(accumulated, scale),
                 detail::buildMeanScale(
                     b, *this, getCorrection()->convertToDouble(), count));
  }];
}
/// A contraction without a second output dimension, which the systolic array
/// has no use for.
def SpyreGraph_SumProductsOp
    : SpyreGraph_Reduction<"sum_products",
        [Extension<"sumproducts", [Float<"scale">]>], "Combiner::Add", [{
    return b.product(ins[0], ins[1]);
  }], (ins F64Attr:$scale)> {
  let minOperands = 2; let summary = "scale x the sum of x0 x x1";
  let emptyResult = "0.0";
  let isRescalable = true;
  let epilogue = [{
    (void)ins;
    return b.scale(accumulated, getScale().convertToDouble());
  }];
}
def SpyreGraph_ProdOp : SpyreGraph_Reduction<"prod",
    [Extension<"prod">], "Combiner::Mul"> {
  let emptyResult = "1.0";
}
def SpyreGraph_MaxOp : SpyreGraph_Reduction<"max",
    [Published<"max">], "Combiner::Max"> {
  let isLXEligibleInReference = true;
}
def SpyreGraph_MinOp : SpyreGraph_Reduction<"min",
    [Published<"min">], "Combiner::Min">;
def SpyreGraph_AnyOp
    : SpyreGraph_Reduction<"any",
        [Extension<"any">], "Combiner::Or", "return b.toBool(ins[0]);"> {
  let emptyResult = "0.0";
}
def SpyreGraph_AllOp
    : SpyreGraph_Reduction<"all",
        [Extension<"all">], "Combiner::And", "return b.toBool(ins[0]);"> {
  let emptyResult = "1.0";
}
def SpyreGraph_ArgMaxOp
    : SpyreGraph_Reduction<"argmax",
        [Extension<"argmax">], "Combiner::ArgMax"> {
  let summary = "row-major index over the reduced dimensions of the first maximum";
}
def SpyreGraph_ArgMinOp
    : SpyreGraph_Reduction<"argmin",
        [Extension<"argmin">], "Combiner::ArgMin"> {
  let summary = "row-major index over the reduced dimensions of the first minimum";
}

def SpyreGraph_TopKOp : SpyreGraph_MappedOp<"topk"> {
  let summary = "the k largest elements along a loop, or their indices";
  let description = [{
    The loops that the input's map has and the init's has not are searched; the
    one that only the init's has counts the results, the largest first. Of equal
    elements the first comes first, and NaN before all numbers.
  }];
  let opArguments = (ins UnitAttr:$indices);
  let deviceNames = [Published<"topkvalue", basis="ours">,
                     Published<"topkindex", attributes="{indices}",
                               meaning="where the largest are, as integers",
                               basis="ours">];
  let deviceOpName = [{getIndices() ? "topkindex" : "topkvalue"}];
  let deviceKind = "TopK";
  let combiner = "Combiner::ArgMax";
  let rankedResult =
      "getIndices() ? RankedResult::Index : RankedResult::Value";
  let layoutRule = "LayoutRule::Reduction";
  let kinds = [{
    ::llvm::SmallVector<::mlir::AffineMap> maps = getIndexingMaps();
    ::llvm::SmallVector<::mlir::utils::IteratorType> kinds;
    for (unsigned dim = 0; dim < maps.back().getNumDims(); ++dim)
      kinds.push_back(maps.back().isFunctionOfDim(dim) &&
                              maps.front().isFunctionOfDim(dim)
                          ? ::mlir::utils::IteratorType::parallel
                          : ::mlir::utils::IteratorType::reduction);
    return kinds;
  }];
}

/// Walks the loop dimension `dim` in order.
class SpyreGraph_Walk<string mnemonic, string comb, dag extra = (ins)>
    : SpyreGraph_DeviceOp<mnemonic> {
  let opArguments = !con((ins I64Attr:$dim), extra);
  let combiner = comb;
  let layoutRule = "LayoutRule::Scan";
  let check = [{
    if (::mlir::failed(detail::verifyPointwise(*this)))
      return ::mlir::failure();
    return detail::verifyLoopDim(*this, getDim());
  }];
  let kinds = [{
    ::llvm::SmallVector<::mlir::utils::IteratorType> kinds(
        getLoopExtents().size(), ::mlir::utils::IteratorType::parallel);
    kinds[getDim()] = ::mlir::utils::IteratorType::reduction;
    return kinds;
  }];
}
def SpyreGraph_CumSumOp : SpyreGraph_Walk<"cumsum", "Combiner::ScanAdd"> {
  let deviceNames =
      [Extension<"cumsum", [LoopDim<"dim">], "Other",
                 meaning="inclusive sums along dimension number dim">];
  let summary = "inclusive sums along the loop dimension `dim`";
}
class SpyreGraph_CumExtremum<string mnemonic, string comb, string what>
    : SpyreGraph_Walk<mnemonic, comb, (ins UnitAttr:$indices)> {
  let deviceNames =
      [Extension<mnemonic, [LoopDim<"dim">], "Other",
                 meaning=what # " so far along dimension number dim">,
       Extension<mnemonic # "index", [LoopDim<"dim">], "Other",
                 attributes="{indices}",
                 meaning="where the last " # what # " so far is">];
  let deviceOpName =
      "getIndices() ? \"" # mnemonic # "index\" : \"" # mnemonic # "\"";
  let rankedResult =
      "getIndices() ? RankedResult::Index : RankedResult::Value";
  let summary = "the " # what
      # " so far along the loop dimension `dim`, or its last index; NaN before all numbers";
}
def SpyreGraph_CumMaxOp
    : SpyreGraph_CumExtremum<"cummax", "Combiner::ScanMax", "maximum">;
def SpyreGraph_CumMinOp
    : SpyreGraph_CumExtremum<"cummin", "Combiner::ScanMin", "minimum">;

def SpyreGraph_SortOp : SpyreGraph_Walk<"sort",
    "(getDescending() ? Combiner::SortDescending : Combiner::Sort)",
    (ins UnitAttr:$descending, UnitAttr:$indices,
         DefaultValuedAttr<I64Attr, "1">:$run)> {
  let summary = "the elements along a loop in order, or their indices";
  let description = [{
    Sorts along the loop dimension `dim`. Of equal elements the one with the
    smaller index comes first, in either direction. NaN is larger than all
    numbers, and the zeros are equal. A core sorts what it has of the other
    dimensions, whole along `dim`.

    A second input has integers, not negative and no two of a sort the same,
    that count as the indices. `run` elements that follow each other, from the
    first one on, are in order already: from there on they are merged.

    Constraints:
    - SG-SORT-C1: `run` is a power of two.
    - SG-SORT-C2: indices that come as an input are of 32 or 64 bits.
  }];
  let maxOperands = 2;
  let sortedRun = "getRun()";
  let check = [{
    if (::mlir::failed(detail::verifyPointwise(*this)) ||
        ::mlir::failed(detail::verifyLoopDim(*this, getDim())))
      return ::mlir::failure();
    return detail::verifySort(*this);
  }];
  defvar constants = [LoopDim<"dim">, Flag<"descending">, Length<"run">];
  let deviceNames =
      [Extension<"sort", constants, "Other",
                 meaning="the elements along dimension number dim in order; "
                         "runs are in order already; the second input has "
                         "indices">,
       Extension<"argsort", constants, "Other", attributes="{indices}",
                 meaning="where the elements in order are, as integers">];
  let deviceOpName = [{getIndices() ? "argsort" : "sort"}];
  let rankedResult =
      "getIndices() ? RankedResult::Index : RankedResult::Value";
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

def SpyreGraph_MatmulOp : SpyreGraph_DeviceOp<"matmul"> {
  let summary = "alpha x (x . y) x scales + beta x bias, rounded once";
  let description = [{
    Inputs x [batch..., m, k], y [batch..., k, n], then `num_scales` scales that
    the sum is multiplied with, one after the other, and, where `has_bias`, a
    bias. Scales and bias broadcast to [batch..., m, n]. Loop dimensions in
    default form: batch..., m, n, k.

    Constraints:
    - SG-MATMUL-C1: two inputs, `num_scales` more (0 to 2), and another one with
      `has_bias`.
    - SG-MATMUL-C2: without `maps`, batch, m, n, k agree.
  }];
  let opArguments = (ins DefaultValuedAttr<F64Attr, "1.0">:$alpha,
                         DefaultValuedAttr<F64Attr, "1.0">:$beta,
                         DefaultValuedAttr<I64Attr, "0">:$num_scales,
                         UnitAttr:$has_bias);
  // Factors and inputs but for the first two are extensions.
  defvar constants = [Factor<"alpha">, Factor<"beta">,
                      Count<"numScales", "num_scales">];
  let deviceNames =
      [Published<"batchmatmul", constants,
                 meaning="x . y in fp32, rounded once; alpha, beta and further "
                         "inputs, numScales of which multiply the sum before the "
                         "last is added, are ours">,
       Published<"batchmatmulfp8", constants,
                 meaning="the same of float8_e4m3fn; the result is fp16 or fp32",
                 basis="inferred">,
       Published<"batchmatmulint8", constants,
                 meaning="the same of int8; int32 results are exact",
                 basis="inferred">,
       Published<"conv2d", constants, "Convolution",
                 meaning="the sum over in and the places ki, kj of input at "
                         "[mb, i + ki, j + kj, in] x kernel at [ki, kj, in, out], "
                         "as batchmatmul; i and ki, or j and kj, may be missing",
                 basis="inferred">];
  let deviceOpName = "detail::getMatmulName(*this)";
  let deviceKind = "Matmul";
  let emptyResult = "0.0";
  let isRescalable = true;
  let unit = "Unit::PT";
  let combiner = "Combiner::Add";
  let layoutRule = "LayoutRule::Matmul";
  let body = "return b.product(ins[0], ins[1]);";
  let numEpilogueInputs = "getNumScales() + (getHasBias() ? 1 : 0)";
  let epilogue = [{
    ::mlir::Value r = b.scale(accumulated, getAlpha().convertToDouble());
    for (::mlir::Value scale : ins.take_front(getNumScales()))
      r = b.mul(r, scale);
    if (getHasBias())
      r = b.add(r, b.scale(ins.back(), getBeta().convertToDouble()));
    return r;
  }];
  let defaultLoops = "detail::getMatmulLoops(*this)";
  let minOperands = 2;
  let maxOperands = 5;
  let check = "return detail::verifyMatmul(*this, getNumScales(), getHasBias());";
}

/// What a weight of 4-bit integers becomes before it is multiplied.
def SpyreGraph_UnpackInt4Op : SpyreGraph_MappedOp<"unpack_int4"> {
  let summary = "(number of 4 bits - 8) x scale + zero, of words that hold several";
  let description = [{
    Inputs: words, and optionally a scale and what is added. Loop `dim` counts
    the 4-bit numbers 0 to 15 of a word, those of the lowest bits first.

    Constraints:
    - SG-UNPACK-C1: words are integers that have 4 bits for each iteration of
      loop `dim`, which is a loop dimension.
  }];
  let opArguments = (ins I64Attr:$dim);
  let deviceNames = [Extension<"int4todl16", [LoopDim<"dim">], "Other",
                               meaning="the 4-bit numbers of words, counted by "
                                       "dimension number dim from the lowest "
                                       "bits, less 8, times the second input, "
                                       "plus the third">];
  let maxOperands = 3;
  let check = "return detail::verifyUnpackInt4(*this, getDim());";
  let loopIndexUse = "return static_cast<int64_t>(dim) == getDim();";
  let body = [{
    ::mlir::Value number = b.nibble(ins[0], loopIndex(getDim()));
    ::mlir::Value r = b.asFloat(b.sub(number, b.constantLike(number, 8.0)));
    if (ins.size() > 1)
      r = b.mul(r, ins[1]);
    if (ins.size() > 2)
      r = b.add(r, ins[2]);
    return r;
  }];
}

//===----------------------------------------------------------------------===//
// Indirect access
//===----------------------------------------------------------------------===//

def SpyreGraph_GatherOp : SpyreGraph_DeviceOp<"gather"> {
  let summary = "read one dimension of a table through indices";
  let description = [{
    Inputs table and index. The table's coordinate along `axis` is the index
    element (its map has the constant 0 there). In default form the init has
    the index's dimensions in place of `axis` (embedding, index_select).
    An index outside the table is an error when the program runs.

    Constraints:
    - SG-GATHER-C1: the index has an integer element type.
    - SG-GATHER-C2: `axis` is a dimension of the table and its map's result
      there is the constant 0.
  }];
  let opArguments = (ins I64Attr:$axis);
  let deviceOpName = [{"identity"}];
  let layoutRule = "LayoutRule::Gather";
  let defaultLoops = "detail::getGatherLoops(*this, getAxis())";
  let minOperands = 2;
  let check = "return detail::verifyGather(*this);";
  let indirect = "return IndirectAccess{0, 1, getAxis()};";
}

/// Writes through indices; `expr` is what is written for a source's element.
class SpyreGraph_ScatterBase<string mnemonic, string what, code expr>
    : SpyreGraph_DeviceOp<mnemonic> {
  let opArguments = (ins I64Attr:$axis);
  // An index is no input.
  let deviceNames =
      [Extension<mnemonic, kind="Scatter", minInputs=1, meaning=what>];
  let deviceKind = "Scatter";
  let summary = what;
  let body = "return " # expr # ";";
  let layoutRule = "LayoutRule::Scatter";
  let defaultLoops = "detail::getScatterLoops(*this, getAxis())";
  let minOperands = 2;
  let check = "return detail::verifyScatter(*this);";
  // The init is operand 2.
  let indirect = "return IndirectAccess{2, 1, getAxis()};";
}
def SpyreGraph_ScatterOp : SpyreGraph_ScatterBase<"scatter",
    "write one dimension of the init through indices", "ins[0]"> {
  let description = [{
    Inputs source and index. The init's coordinate along `axis` is the index
    element; the last of several writes to one element wins, in loop order. In
    default form the loops are the source's dimensions and the index has the
    one dimension `axis` (index_copy). An index outside the init is an error
    when the program runs.

    Constraints:
    - SG-SCATTER-C1: the index has an integer element type.
    - SG-SCATTER-C2: `axis` is a dimension of the init and its map's result
      there is the constant 0.
  }];
}
/// A scatter that combines each source element with what is there.
class SpyreGraph_ScatterCombine<string mnemonic, string what, code expr>
    : SpyreGraph_ScatterBase<mnemonic, what # " through indices", expr> {
  let readsInit = true;
  let description = [{
    As `scatter`, but each element of the source is combined with the element of
    the init in its place. Several that meet in one place are combined one after
    the other in loop order, each result rounded to the init's type.
  }];
}
def SpyreGraph_ScatterAddOp : SpyreGraph_ScatterCombine<"scatter_add",
    "add to elements of the init", "b.add(ins[1], ins[0])">;
def SpyreGraph_ScatterMulOp : SpyreGraph_ScatterCombine<"scatter_mul",
    "multiply elements of the init", "b.mul(ins[1], ins[0])">;
def SpyreGraph_ScatterMaxOp : SpyreGraph_ScatterCombine<"scatter_max",
    "raise elements of the init to a maximum", "b.maximum(ins[1], ins[0])">;
def SpyreGraph_ScatterMinOp : SpyreGraph_ScatterCombine<"scatter_min",
    "lower elements of the init to a minimum", "b.minimum(ins[1], ins[0])">;

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHOPS_TD
