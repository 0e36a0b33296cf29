// SPDX-License-Identifier: Apache-2.0
//===- HostTypes.cpp - Element types and lines of the host's program ------===//

#include "Spyre/Dialect/SpyreGraph/IR/HostTypes.h"

#include "Spyre/Device/DL16.h"
#include "Spyre/Device/TransferDescriptors.h"
#include "Spyre/Support/Error.h"
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

LogicalResult
spyre_graph::verifyHome(ShapedType type, LayoutAttrInterface layout,
                        ArrayRef<int64_t> strides,
                        function_ref<InFlightDiagnostic()> emitError) {
  ArrayRef<int64_t> shape = type.getShape();
  if (failed(cast<VerifiableTensorEncoding>(layout).verifyEncoding(
          shape, type.getElementType(), emitError)))
    return failure();
  if (auto given = dyn_cast<ExplicitLayoutAttr>(layout))
    for (auto [size, expected, found] :
         llvm::zip_equal(shape, given.getHostStrides(), strides))
      if (size > 1 && expected != found)
        return emitError() << "layout is for host strides ["
                           << given.getHostStrides() << "], but they are ["
                           << strides << "]";
  try {
    ::spyre::TensorLayout transferred(
        ArrayRef<int64_t>(layout.getDeviceSize(shape)).vec(),
        ArrayRef<int64_t>(layout.getStrideMap(shape, strides)).vec(),
        layout.getDataFormat());
    ::spyre::makeTransferDescriptors(transferred, shape.vec(), strides.vec(),
                                     ::spyre::TransferDirection::HostToDevice);
  } catch (const ::spyre::Error &error) {
    return emitError() << error.what();
  }
  return success();
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
  } else {
    result.strides.assign(type.getRank(), 1);
    for (int64_t dim = type.getRank() - 1; dim > 0; --dim)
      result.strides[dim - 1] =
          result.strides[dim] * std::max<int64_t>(type.getDimSize(dim), 1);
  }
  if (failed(verifyHome(type, layout, result.strides, [&] {
        return function.emitError() << "argument " << number << ": ";
      })))
    return failure();
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
