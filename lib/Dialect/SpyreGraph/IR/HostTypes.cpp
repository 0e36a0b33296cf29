// SPDX-License-Identifier: Apache-2.0
//===- HostTypes.cpp - Element types and lines of the host's program ------===//

#include "Spyre/Dialect/SpyreGraph/IR/HostTypes.h"

#include "Spyre/Device/DL16.h"
#include "mlir/IR/Builders.h"

#include <limits>

using namespace mlir;
using ::spyre::HostDtype;

double spyre_graph::getLowestNumber(Type element) {
  return element.isF32() ? std::numeric_limits<float>::lowest()
                         : ::spyre::decodeDL16(0xFFFE);
}

Type spyre_graph::getElementType(MLIRContext *context, HostDtype dtype) {
  Builder b(context);
  switch (dtype) {
  case HostDtype::Float16:
    return b.getF16Type();
  case HostDtype::BFloat16:
    return b.getBF16Type();
  case HostDtype::Float32:
    return b.getF32Type();
  case HostDtype::Bool:
    return b.getI1Type();
  case HostDtype::UInt8:
    return b.getIntegerType(8, /*isSigned=*/false);
  case HostDtype::Int8:
    return b.getIntegerType(8);
  case HostDtype::Int16:
    return b.getIntegerType(16);
  case HostDtype::Int32:
    return b.getIntegerType(32);
  case HostDtype::Int64:
    return b.getIntegerType(64);
  }
  llvm_unreachable("unknown host dtype");
}

std::optional<HostDtype> spyre_graph::getHostDtype(Type type) {
  for (HostDtype dtype :
       {HostDtype::Float16, HostDtype::BFloat16, HostDtype::Float32,
        HostDtype::Bool, HostDtype::UInt8, HostDtype::Int8, HostDtype::Int16,
        HostDtype::Int32, HostDtype::Int64})
    if (getElementType(type.getContext(), dtype) == type)
      return dtype;
  return std::nullopt;
}

FailureOr<spyre_graph::HostArgument>
spyre_graph::getHostArgument(FunctionOpInterface function, unsigned number) {
  Type argument = function.getArgument(number).getType();
  auto type = dyn_cast<MemRefType>(argument);
  LayoutAttrInterface layout = getLayout(argument);
  if (!type || !layout)
    return function.emitError()
           << "argument " << number
           << " must be a memref whose memory space is a layout, but is "
           << argument;
  std::optional<HostDtype> dtype = getHostDtype(type.getElementType());
  if (!dtype)
    return function.emitError()
           << "argument " << number << " has element type "
           << type.getElementType() << ", which no spyre tensor has";
  auto name = function.getArgAttrOfType<StringAttr>(
      number, SpyreGraphDialect::getNameAttrName());
  HostArgument result{type,
                      layout,
                      *dtype,
                      name ? name.str() : "arg" + std::to_string(number),
                      {}};
  if (auto strides = function.getArgAttrOfType<DenseI64ArrayAttr>(
          number, SpyreGraphDialect::getHostStridesAttrName())) {
    result.strides = llvm::to_vector(strides.asArrayRef());
    return result;
  }
  result.strides.assign(type.getRank(), 1);
  for (int64_t dim = type.getRank() - 1; dim > 0; --dim)
    result.strides[dim - 1] =
        result.strides[dim] * std::max<int64_t>(type.getDimSize(dim), 1);
  return result;
}

std::string spyre_graph::getSourceLine(Location loc) {
  std::string text;
  loc->walk([&](Location inner) {
    auto line = dyn_cast<FileLineColLoc>(inner);
    if (!line)
      return WalkResult::advance();
    text = (line.getFilename().getValue() + ":" + Twine(line.getLine())).str();
    return WalkResult::interrupt();
  });
  return text;
}
