// SPDX-License-Identifier: Apache-2.0
//===- HostTypes.cpp - Element types and lines of the host's program ------===//

#include "Spyre/Dialect/SpyreGraph/IR/HostTypes.h"

#include "Spyre/Device/DL16.h"
#include "mlir/IR/BuiltinTypes.h"

#include <limits>

using namespace mlir;
using ::spyre::HostDtype;

double spyre_graph::getLowestNumber(Type element) {
  return element.isF32() ? std::numeric_limits<float>::lowest()
                         : ::spyre::decodeDL16(0xFFFE);
}

/// The type of a name in Spyre/Device/NumberFormats.def.
static Type getTypeNamed(MLIRContext *context, StringRef name) {
  if (name == "f16")
    return Float16Type::get(context);
  if (name == "bf16")
    return BFloat16Type::get(context);
  if (name == "f32")
    return Float32Type::get(context);
  if (name == "f8E4M3FN")
    return Float8E4M3FNType::get(context);
  if (name == "f8E5M2FNUZ")
    return Float8E5M2FNUZType::get(context);
  bool isUnsigned = name.consume_front("u");
  unsigned width = 0;
  bool isInteger = name.consume_front("i") && !name.getAsInteger(10, width);
  assert(isInteger && "the table has no other types");
  (void)isInteger;
  return IntegerType::get(context, width,
                          isUnsigned ? IntegerType::Unsigned
                                     : IntegerType::Signless);
}

Type spyre_graph::getElementType(MLIRContext *context, HostDtype dtype) {
  switch (dtype) {
#define SPYRE_HOST_DTYPE(name, pytorchName, bytes, format, elementType, npy,   \
                         scalarType)                                           \
  case HostDtype::name:                                                        \
    return getTypeNamed(context, elementType);
#include "Spyre/Device/NumberFormats.def"
  }
  llvm_unreachable("unknown host dtype");
}

Type spyre_graph::getElementType(MLIRContext *context,
                                 ::spyre::DataFormat format) {
  StringRef typeName;
  switch (format) {
#define SPYRE_DEVICE_FORMAT(name, number, bits, elementType)                   \
  case ::spyre::DataFormat::name:                                              \
    typeName = elementType;                                                    \
    break;
#include "Spyre/Device/NumberFormats.def"
  }
  return typeName.empty() ? Type() : getTypeNamed(context, typeName);
}

std::optional<HostDtype> spyre_graph::getHostDtype(Type type) {
#define SPYRE_HOST_DTYPE(name, pytorchName, bytes, format, elementType, npy,   \
                         scalarType)                                           \
  if (getTypeNamed(type.getContext(), elementType) == type)                    \
    return HostDtype::name;
#include "Spyre/Device/NumberFormats.def"
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
  if (getNumPacked(layout) > 1)
    return function.emitError()
           << "argument " << number << " has packed sticks, but transfers with "
           << "the host know none: " << argument;
  std::optional<HostDtype> dtype = getHostDtype(type.getElementType());
  if (!dtype)
    return function.emitError()
           << "argument " << number << " has element type "
           << type.getElementType() << ", which no spyre tensor has";
  // Of an argument that operations use, their verifier has asked this.
  if (!type.hasStaticShape())
    return function.emitError()
           << "argument " << number << " must have a static shape, but is "
           << argument;
  if (failed(cast<VerifiableTensorEncoding>(layout).verifyEncoding(
          type.getShape(), type.getElementType(), [&] {
            return function.emitError()
                   << "argument " << number << " has a buffer whose ";
          })))
    return failure();
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
