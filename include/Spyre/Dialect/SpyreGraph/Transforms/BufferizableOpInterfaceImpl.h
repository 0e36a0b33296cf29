//===- BufferizableOpInterfaceImpl.h - Bufferization of device ops -*- C++ -*-//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
#define SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::spyre_graph {

/// Attaches upstream's BufferizableOpInterface to every device operation, and
/// registers the models of the func, tensor and bufferization dialects, which
/// --spyre-bufferize needs as well.
void registerBufferizableOpInterfaceExternalModels(DialectRegistry &registry);

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
