// SPDX-License-Identifier: Apache-2.0

#include "Spyre/Dialect/KTIR/IR/KTIR.h"
#include "mlir/Bytecode/BytecodeImplementation.h"

using namespace mlir;
using namespace mlir::ktdp;

#include "Spyre/Dialect/KTIR/IR/KTIRDialect.cpp.inc"

namespace {
/// Everything but tile futures goes into bytecode as its assembly; a future's
/// cannot be read back there (see parseTileFuture in KTIROps.cpp).
struct KTDPBytecodeInterface : public BytecodeDialectInterface {
  KTDPBytecodeInterface(Dialect *dialect) : BytecodeDialectInterface(dialect) {}

  static constexpr uint64_t kTileFuture = 0;

  LogicalResult writeType(Type type,
                          DialectBytecodeWriter &writer) const override {
    auto future = dyn_cast<TileFutureType>(type);
    if (!future)
      return failure();
    writer.writeVarInt(kTileFuture);
    writer.writeType(future.getTileType());
    writer.writeAttribute(future.getGroups());
    return success();
  }

  Type readType(DialectBytecodeReader &reader) const override {
    uint64_t code;
    if (failed(reader.readVarInt(code)))
      return {};
    if (code != kTileFuture) {
      reader.emitError("unknown ktdp type code: ") << code;
      return {};
    }
    Type tileType;
    IntegerSetAttr groups;
    if (failed(reader.readType(tileType)) ||
        failed(reader.readAttribute(groups)))
      return {};
    return TileFutureType::getChecked([&]() { return reader.emitError(); },
                                      tileType, groups);
  }
};
} // namespace

void KTDPDialect::initialize() {
  addInterfaces<KTDPBytecodeInterface>();
  registerAttributes();
  registerTypes();
  registerOps();
}

/// KTDP-ARG-C7 and KTDP-ARG-C8: what says how large arguments are.
static LogicalResult
verifySizeAttribute(FunctionOpInterface function, unsigned argIndex,
                    NamedAttribute attr,
                    function_ref<InFlightDiagnostic()> emitError) {
  bool isUsedMap = attr.getName() == KTDPDialect::kUsedMapAttr;
  if (isUsedMap || attr.getName() == KTDPDialect::kSizeMapAttr) {
    auto map = dyn_cast<AffineMapAttr>(attr.getValue());
    auto layout = function ? function.getArgAttrOfType<LayoutAttr>(
                                 argIndex, KTDPDialect::kLayoutAttr)
                           : LayoutAttr();
    // KTDP-ARG-C7
    if (!map || !layout || map.getValue().getNumDims() != 0 ||
        map.getValue().getNumSymbols() !=
            llvm::count_if(function.getArgumentTypes(),
                           llvm::IsaPred<RuntimeArgType>) ||
        map.getValue().getNumResults() != layout.getShape().size())
      return emitError() << "'" << attr.getName().getValue()
                         << "' must be an affine map from the function's "
                            "run-time arguments to the sizes of '"
                         << KTDPDialect::kLayoutAttr << "', but got "
                         << attr.getValue();
    if (isUsedMap && function.getArgAttr(argIndex, KTDPDialect::kSizeMapAttr))
      return emitError() << "'" << KTDPDialect::kUsedMapAttr
                         << "' must not stand beside '"
                         << KTDPDialect::kSizeMapAttr << "'";
    return success();
  }
  auto least = dyn_cast<IntegerAttr>(attr.getValue());
  auto type =
      function && argIndex < function.getNumArguments()
          ? dyn_cast<RuntimeArgType>(function.getArgumentTypes()[argIndex])
          : RuntimeArgType();
  // KTDP-ARG-C8
  if (!least || !least.getType().isSignlessInteger(64) || !type ||
      !type.getValueType().isIntOrIndex() ||
      (type.getUpperbound() && least.getInt() > *type.getUpperbound()))
    return emitError() << "'" << KTDPDialect::kLeastAttr
                       << "' must be an i64 on a run-time argument of an "
                          "integer type, not above its upper bound, but got "
                       << attr.getValue();
  return success();
}

LogicalResult KTDPDialect::verifyRegionArgAttribute(Operation *op,
                                                    unsigned regionIndex,
                                                    unsigned argIndex,
                                                    NamedAttribute attr) {
  auto emitError = [&]() {
    return op->emitError("argument ") << argIndex << ": ";
  };
  StringRef name = attr.getName().strref();

  if (name == kNameAttr) {
    // KTDP-ARG-C1
    auto string = dyn_cast<StringAttr>(attr.getValue());
    if (!string || string.getValue().empty())
      return emitError() << "'" << kNameAttr
                         << "' must be a non-empty string, but got "
                         << attr.getValue();
    return success();
  }

  auto function = dyn_cast<FunctionOpInterface>(op);
  if (name == kReachAttr) {
    // KTDP-ARG-C6
    auto reach = dyn_cast<DenseI64ArrayAttr>(attr.getValue());
    auto layout =
        function ? function.getArgAttrOfType<LayoutAttr>(argIndex, kLayoutAttr)
                 : LayoutAttr();
    if (!reach || !layout ||
        reach.asArrayRef().size() != layout.getShape().size() ||
        llvm::any_of(llvm::zip(reach.asArrayRef(), layout.getShape()),
                     [](auto dim) {
                       auto [last, extent] = dim;
                       return last < 0 || last > extent;
                     }))
      return emitError() << "'" << kReachAttr
                         << "' must be an array of i64 that the shape of '"
                         << kLayoutAttr << "' bounds, but got "
                         << attr.getValue();
    return success();
  }

  if (name == kSizeMapAttr || name == kUsedMapAttr || name == kLeastAttr)
    return verifySizeAttribute(function, argIndex, attr, emitError);

  StringRef other;
  if (name == kLayoutAttr) {
    // KTDP-ARG-C2
    if (!isa<LayoutAttr>(attr.getValue()))
      return emitError() << "'" << kLayoutAttr
                         << "' must be a #ktdp.layout, but got "
                         << attr.getValue();
    other = kPoolSizeAttr;
  } else if (name == kPoolSizeAttr) {
    // KTDP-ARG-C3
    auto integer = dyn_cast<IntegerAttr>(attr.getValue());
    if (!integer || !integer.getType().isSignlessInteger(64) ||
        integer.getInt() < 0)
      return emitError() << "'" << kPoolSizeAttr
                         << "' must be a non-negative i64, but got "
                         << attr.getValue();
    other = kLayoutAttr;
  } else {
    // KTDP-ARG-C5
    return emitError() << "unknown argument attribute '" << name
                       << "', expected '" << kNameAttr << "', '" << kLayoutAttr
                       << "', '" << kPoolSizeAttr << "', '" << kReachAttr
                       << "', '" << kSizeMapAttr << "', '" << kUsedMapAttr
                       << "' or '" << kLeastAttr << "'";
  }

  // KTDP-ARG-C4
  if (!function)
    return success();
  if (function.getArgAttr(argIndex, other))
    return emitError() << "'" << name << "' and '" << other
                       << "' cannot be used together";
  ArrayRef<Type> types = function.getArgumentTypes();
  if (regionIndex == 0 && argIndex < types.size() && !types[argIndex].isIndex())
    return emitError() << "'" << name
                       << "' needs an argument of type 'index', but got "
                       << types[argIndex];
  return success();
}
