// SPDX-License-Identifier: Apache-2.0
//===- Windows.cpp - What convolutions and pooling look at ----------------===//
//
// Element k of window o of a dimension lies at o x stride + k x dilation. So
// windows are a view, of which few large ones are copied along sticks.
//
//===----------------------------------------------------------------------===//

#include "ATenCall.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace mlir::spyre_graph::aten;

namespace {
/// The windows of the last dimensions of `x`.
struct Windows {
  explicit Windows(const ATenCall &c);

  int64_t count() const { return kernel.size(); }
  /// Where, along one of these dimensions, an element of a window lies.
  AffineExpr place(int64_t dim, AffineExpr window, AffineExpr element) const {
    return window * stride[dim] + element * dilation[dim];
  }

  Value x;
  SmallVector<int64_t> kernel, stride, dilation;
  /// How many windows there are.
  SmallVector<AffineExpr> out;
};
} // namespace

Windows::Windows(const ATenCall &c)
    : x(c.tensor("x")), kernel(c.integers("kernel")),
      stride(c.integers("stride")), dilation(c.integers("dilation")),
      out(c.sizeList("out")) {
  c.require(count() <= rankOf(x), "the tensor has fewer dimensions than "
                                  "'kernel'");
  for (size_t length : {stride.size(), dilation.size(), out.size()})
    c.require(length == kernel.size(),
              "'kernel', 'stride', 'dilation' and 'out' must be of one length");
  for (ArrayRef<int64_t> numbers :
       {ArrayRef(kernel), ArrayRef(stride), ArrayRef(dilation)})
    c.require(llvm::all_of(numbers, [](int64_t n) { return n >= 1; }),
              "'kernel', 'stride' and 'dilation' must be positive");
  // PyTorch may know only of the sizes in the call that windows end in the
  // tensor. The program is for others, too.
  SmallVector<AffineExpr> sizes = getSizes(x);
  for (int64_t dim = 0; dim < count(); ++dim) {
    AffineExpr last =
        place(dim, out[dim] - 1, c.b.getAffineConstantExpr(kernel[dim] - 1));
    AffineExpr size = sizes[rankOf(x) - count() + dim];
    c.require(c.range(size - last - 1).first >= 0,
              "windows may end beyond the tensor");
  }
}

/// `[..., *out, *kernel]`.
static Value lowerWindows(ATenCall &c) {
  Windows windows(c);
  int64_t rank = rankOf(windows.x), lead = rank - windows.count();
  SmallVector<AffineExpr> exprs;
  for (int64_t dim = 0; dim < lead; ++dim)
    exprs.push_back(c.b.getAffineDimExpr(dim));
  for (int64_t dim = 0; dim < windows.count(); ++dim)
    exprs.push_back(windows.place(dim, c.b.getAffineDimExpr(lead + dim),
                                  c.b.getAffineDimExpr(rank + dim)));
  return c.view(
      windows.x,
      AffineMap::get(rank + windows.count(), 0, exprs, c.b.getContext()),
      c.type().getShape());
}

/// A copy `[N, groups, *spatial, *out, C / groups x kernel]` of
/// `[N, C, *spatial]`: `spatial` are the first dimensions, and windows of the
/// others, from `first` on, are merged with the channels.
static Value mergeWindows(const ATenCall &c, const Windows &windows,
                          int64_t groups, int64_t channels, int64_t first) {
  SmallVector<AffineExpr> own = getSizes(windows.x);
  ArrayRef<int64_t> shape = shapeOf(windows.x);
  int64_t rank = shape.size();
  SmallVector<int64_t> parts = {channels};
  llvm::append_range(parts, ArrayRef(windows.kernel).drop_front(first));
  int64_t merged = computeProduct(parts);
  SmallVector<AffineExpr> elements =
      delinearize(c.b.getAffineDimExpr(rank), computeStrides(parts));
  SmallVector<AffineExpr> exprs = {c.b.getAffineDimExpr(0),
                                   c.b.getAffineDimExpr(1) * channels +
                                       elements[0]};
  SmallVector<AffineExpr> sizes = {own[0], c.b.getAffineConstantExpr(groups)};
  SmallVector<int64_t> extents = {shape[0], groups};
  for (int64_t dim = 0; dim < windows.count(); ++dim) {
    AffineExpr index = c.b.getAffineDimExpr(2 + dim);
    bool isSpatial = dim < first;
    exprs.push_back(isSpatial
                        ? index
                        : windows.place(dim, index, elements[1 + dim - first]));
    sizes.push_back(isSpatial ? own[2 + dim] : windows.out[dim]);
    extents.push_back(isSpatial ? shape[2 + dim]
                                : c.type().getShape()[3 + dim]);
  }
  extents.push_back(merged);
  sizes.push_back(c.b.getAffineConstantExpr(merged));
  AffineMap map = simplifyWithRanges(
      AffineMap::get(rank + 1, 0, exprs, c.b.getContext()), extents);
  auto type = RankedTensorType::get(extents, elementOf(windows.x));
  return c.withSizes(c.mapped<IdentityOp>(windows.x, c.empty(type),
                                          {map, c.identityMap(rank + 1)},
                                          extents),
                     sizes);
}

/// `[N, groups, 1, *out, *kernel, C / groups]` of `[N, C, *spatial]`. The last
/// `merged` dimensions of the kernel are not there, but in the last one, after
/// the channels.
static Value lowerGroupedWindows(ATenCall &c) {
  Windows windows(c);
  int64_t rank = rankOf(windows.x), count = windows.count();
  int64_t groups = c.integer("groups"), merged = c.integer("merged");
  c.require(rank == 2 + count, "the tensor must be [N, C, *spatial]");
  c.require(merged >= 0 && merged <= count, "merged must be 0 to " +
                                                Twine(count) + ", but is " +
                                                Twine(merged));
  int64_t channels = shapeOf(windows.x)[1];
  c.require(groups >= 1 && channels % groups == 0,
            "the channels must be a multiple of the groups");
  c.require(!varies(windows.x, 1) || (groups == 1 && merged == 0),
            "a dimension whose size varies is counted with others as one");
  channels /= groups;
  int64_t first = count - merged, resultRank = 4 + count + first;
  AffineExpr group = c.b.getAffineDimExpr(1),
             last = c.b.getAffineDimExpr(resultRank - 1);
  bool isMerged = merged > 0;
  Value source =
      isMerged ? mergeWindows(c, windows, groups, channels, first) : windows.x;
  SmallVector<AffineExpr> exprs = {c.b.getAffineDimExpr(0)};
  if (isMerged)
    exprs.push_back(group);
  else
    exprs.push_back(groups == 1 ? last : group * channels + last);
  for (int64_t dim = 0; dim < count; ++dim) {
    AffineExpr window = c.b.getAffineDimExpr(3 + dim);
    exprs.push_back(
        dim < first
            ? windows.place(dim, window, c.b.getAffineDimExpr(3 + count + dim))
            : window);
  }
  if (isMerged)
    exprs.push_back(last);
  return c.view(source, AffineMap::get(resultRank, 0, exprs, c.b.getContext()),
                c.type().getShape());
}

void aten::addWindowRows(ATenTable &table) {
  ATenTable::ForAnySize rows(table);
  table.add({"spyre.windows.default"}, "x kernel stride dilation out",
            lowerWindows);
  table.add({"spyre.grouped_windows.default"},
            "x kernel stride dilation out groups merged", lowerGroupedWindows);
}
