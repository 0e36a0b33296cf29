//===- KTIRTarget.cpp - Planning for KTIR -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Target/KTIR/KTIRTarget.h"
#include "Spyre/Target/Interface/Target.h"

using namespace mlir;
using namespace mlir::spyre_graph;

void spyre_graph::registerKTIRTarget(DialectRegistry &registry) {
  // Kernels are made of loops and of accesses with any affine coordinates, so
  // the answers are those of Target.
  registry.addExtension(+[](MLIRContext *, SpyreGraphDialect *dialect) {
    addTarget(*dialect, std::make_unique<Target>("ktir", "KTIR"));
  });
}
