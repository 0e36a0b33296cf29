// SPDX-License-Identifier: Apache-2.0
//===- Convolution.h - Products that read windows ---------------*- C++ -*-===//

#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_CONVOLUTION_H
#define SPYRE_DIALECT_SPYREGRAPH_IR_CONVOLUTION_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

namespace mlir::spyre_graph {

/// Two loops whose sum is a coordinate of a product's first factor: outputs,
/// and the places in the window that each of them reads.
struct Window {
  unsigned output, place;
};

/// The windows of a product that is a convolution: of images [n, i, j,
/// channels] and filters [k_i, k_j, channels, m], in any order of their
/// dimensions, to outputs [n, i, j, m]. Windows are one apart, and so are their
/// places: that is all that SuperDSC's conv2d can say, whose files state
/// neither stride nor dilation. In the order of the output loops, which is that
/// of the loops over places. The loops are n, i, j in any order, then m, k_i,
/// k_j, channels; n, j and k_j may be missing. None for any other operation.
SmallVector<Window, 2> getConvolutionWindows(SpyreOpInterface op);

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_CONVOLUTION_H
