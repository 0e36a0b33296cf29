// SPDX-License-Identifier: Apache-2.0
//===- BundleParser.cpp - bundle.mlir as the model --------------*- C++ -*-===//

#include "Spyre/Target/SuperDSC/Reader/BundleParser.h"
#include "BundleText.h"
#include "Spyre/Dialect/SDSCBundle/IR/SDSCBundle.h"
#include "Spyre/Target/SuperDSC/Model/BundleProgram.h"
#include "Spyre/Target/SuperDSC/Model/Geometry.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace spyre::superdsc;

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

namespace {

/// The largest number of an argument.
constexpr int64_t kMaxArgument = 1000000;

class Interpreter {
public:
  Interpreter(StringRef text, const std::string &file, Report &report)
      : text(text), file(file), report(report) {}

  std::optional<Bundle> run(ModuleOp module) {
    func::FuncOp function;
    for (Operation &op : *module.getBody()) {
      if (auto own = dyn_cast<func::FuncOp>(op); own && !function)
        function = own;
      else
        violate(&op, "expected one function, found another '" +
                         op.getName().getStringRef().str() + "'");
    }
    if (!function || function.isExternal() ||
        !function.getBody().hasOneBlock() || function.getNumResults() != 0) {
      violate(module, "expected one function with one block and no results");
      return std::nullopt;
    }
    readParameters(function);
    readSegments(function);
    if (!failed)
      readBlock(function.front(), bundle.steps, 0);
    if (failed)
      return std::nullopt;
    return std::move(bundle);
  }

private:
  void violate(Operation *op, std::string message,
               const char *rule = "SDSC-BUNDLE-C1") {
    violate(op->getLoc(), std::move(message), rule);
  }

  void violate(Location location, std::string message,
               const char *rule = "SDSC-BUNDLE-C1") {
    failed = true;
    size_t line = 0, column = 0;
    if (auto loc = dyn_cast<FileLineColLoc>(location)) {
      line = loc.getLine();
      column = loc.getColumn();
    }
    report.add(file, "", rule, std::move(message), line, column);
  }

  void readSegments(func::FuncOp function) {
    Attribute attribute = function->getAttr(kSegmentsAttribute);
    if (!attribute)
      return;
    // SDSC-BUNDLE-C6
    auto numbers = dyn_cast<DenseI64ArrayAttr>(attribute);
    std::vector<int64_t> segments;
    bool isValid = numbers && numbers.size() <= kNumSegments;
    for (unsigned at = 0; isValid && at < numbers.size(); ++at) {
      isValid = numbers[at] >= (at == 0 ? kPoolSegment : 0) &&
                numbers[at] <= kMaxArgument &&
                !llvm::is_contained(segments, numbers[at]);
      segments.push_back(numbers[at]);
    }
    if (!isValid)
      violate(function,
              std::string(kSegmentsAttribute) +
                  " is an array<i64> of at most " +
                  std::to_string(kNumSegments) +
                  " distinct arguments' numbers, before them -1 for a pool",
              "SDSC-BUNDLE-C6");
    bundle.segments = std::move(segments);
  }

  void readParameters(func::FuncOp function) {
    SmallVector<StringRef> names = getArgumentNames(function.front(), text);
    for (BlockArgument argument : function.getArguments()) {
      unsigned number = argument.getArgNumber();
      auto type = dyn_cast<sdscbundle::InputArgType>(argument.getType());
      if (!type) {
        violate(function, "parameter " + std::to_string(number) +
                              " must be an !sdscbundle.input_arg<index>");
        return;
      }
      Address address;
      int64_t value = 0;
      StringRef name = names[number];
      if (type.getGranularity()) {
        if (!readSize(function, type, name, number))
          return;
        values[argument].sizes.push_back({bundle.sizes.size() - 1, 1, 1});
        continue;
      }
      if (!bundle.sizes.empty()) {
        violate(function, "parameter " + std::to_string(number) +
                              " is an address, but comes after a size");
        return;
      }
      if (name == "pool_base_addr") {
        if (number != 0) {
          violate(function, "the pool is the first parameter");
          return;
        }
        address.base = Address::Pool;
        bundle.hasPoolParameter = true;
      } else {
        // The name alone says which argument it is.
        StringRef digits = name;
        if (!digits.consume_front("arg_") ||
            !digits.consume_back("_base_addr") ||
            digits.getAsInteger(10, value) || digits != std::to_string(value)) {
          violate(
              argument.getLoc(),
              "parameter " + std::to_string(number) +
                  ", an address, must be named %arg_<number>_base_addr or "
                  "%pool_base_addr, found " +
                  (name.empty() ? "no name" : "%" + name.substr(0, 80).str()) +
                  "; the name says which argument it is");
          return;
        }
        if (value < 0 || value > kMaxArgument ||
            llvm::is_contained(bundle.arguments, value)) {
          violate(argument.getLoc(),
                  "parameter " + std::to_string(number) +
                      " has an argument's number twice or out of range");
          return;
        }
        address.base = Address::Argument;
        address.argument = value;
        bundle.arguments.push_back(value);
      }
      values[argument] = address;
    }
  }

  /// Adds a parameter that is a size; false after a violation.
  bool readSize(func::FuncOp function, sdscbundle::InputArgType type,
                StringRef name, unsigned number) {
    constexpr int64_t kMaxSize = int64_t(1) << 40;
    SizeParameter size;
    bool isNamed = name.consume_front("dim_") && name.consume_back("_base") &&
                   isSizeName(name.str());
    size.name = name.str();
    size.granularity = *type.getGranularity();
    size.maximum = *type.getMaxValue();
    bool isNew = llvm::none_of(bundle.sizes, [&](const SizeParameter &other) {
      return other.name == size.name;
    });
    if (!isNamed || !isNew || size.maximum > kMaxSize) {
      violate(function, "parameter " + std::to_string(number) +
                            ", a size, must be named %dim_<symbol>_base, "
                            "differently from others, and be at most 2^40");
      return false;
    }
    bundle.sizes.push_back(std::move(size));
    return true;
  }

  /// factor x source added to target, or false on overflow or two bases.
  static bool accumulate(Address &target, const Address &source,
                         int64_t factor) {
    if (source.base != Address::None) {
      if (factor != 1 || target.base != Address::None)
        return false;
      target.base = source.base;
      target.argument = source.argument;
    }
    auto addTo = [&](int64_t &sum, int64_t value) {
      int64_t product;
      return !llvm::MulOverflow(value, factor, product) &&
             !llvm::AddOverflow(sum, product, sum);
    };
    if (!addTo(target.offset, source.offset))
      return false;
    if (target.strides.size() < source.strides.size())
      target.strides.resize(source.strides.size());
    for (size_t i = 0; i < source.strides.size(); ++i)
      if (!addTo(target.strides[i], source.strides[i]))
        return false;
    for (SizeTerm term : source.sizes)
      if (llvm::MulOverflow(term.factor, factor, term.factor) ||
          !target.add(term))
        return false;
    return true;
  }

  /// A multiple of a size divided by a number, if all sizes can be.
  std::optional<Address> divide(const Address &address, int64_t divisor) const {
    bool isSize =
        address.base == Address::None && address.offset == 0 &&
        address.sizes.size() == 1 &&
        llvm::all_of(address.strides, [](int64_t s) { return s == 0; });
    if (!isSize || divisor < 1)
      return std::nullopt;
    SizeTerm term = address.sizes[0];
    int64_t step, whole;
    if (llvm::MulOverflow(term.factor, bundle.sizes[term.size].granularity,
                          step) ||
        llvm::MulOverflow(term.divisor, divisor, whole) || step % whole != 0)
      return std::nullopt;
    Address result;
    result.add({term.size, term.factor, whole});
    return result;
  }

  static bool isConstant(const Address &address) {
    return address.base == Address::None && address.sizes.empty() &&
           llvm::all_of(address.strides, [](int64_t s) { return s == 0; });
  }

  std::optional<Address> evaluate(AffineExpr expr, ArrayRef<Address> dims,
                                  ArrayRef<Address> symbols) {
    if (auto number = dyn_cast<AffineConstantExpr>(expr)) {
      Address result;
      result.offset = number.getValue();
      return result;
    }
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      return dims[dim.getPosition()];
    if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
      return symbols[symbol.getPosition()];
    auto binary = cast<AffineBinaryOpExpr>(expr);
    std::optional<Address> left = evaluate(binary.getLHS(), dims, symbols);
    std::optional<Address> right = evaluate(binary.getRHS(), dims, symbols);
    if (!left || !right)
      return std::nullopt;
    Address result;
    if (binary.getKind() == AffineExprKind::Add) {
      if (accumulate(result, *left, 1) && accumulate(result, *right, 1))
        return result;
      return std::nullopt;
    }
    if (binary.getKind() == AffineExprKind::FloorDiv && isConstant(*right))
      return divide(*left, right->offset);
    if (binary.getKind() != AffineExprKind::Mul)
      return std::nullopt;
    if (isConstant(*left))
      std::swap(*left, *right);
    if (isConstant(*right) && accumulate(result, *left, right->offset))
      return result;
    return std::nullopt;
  }

  std::optional<int64_t> constantOf(Value value) {
    auto found = values.find(value);
    if (found == values.end() || !isConstant(found->second))
      return std::nullopt;
    return found->second.offset;
  }

  /// The operand's address, or nothing after a violation.
  std::optional<Address> addressOf(Operation *op, Value value) {
    auto found = values.find(value);
    if (found != values.end())
      return found->second;
    violate(op, "an operand is not a constant, argument or loop counter");
    return std::nullopt;
  }

  /// "'s0', a multiple of 64 up to 512 (%dim_s0_base)".
  std::string describe(size_t number) const {
    const SizeParameter &size = bundle.sizes[number];
    return "'" + size.name + "', a multiple of " +
           std::to_string(size.granularity) + " up to " +
           std::to_string(size.maximum) + " (%dim_" + size.name + "_base)";
  }

  /// The first size that a value depends on, if it does on any.
  std::optional<size_t> dependsOn(Value value) const {
    auto found = values.find(value);
    if (found == values.end() || found->second.sizes.empty())
      return std::nullopt;
    return found->second.sizes[0].size;
  }

  /// Reads a loop with a bound or a step that depends on `size`. Its counter is
  /// in elements, so that a size that is no multiple of the step would have a
  /// part that no iteration covers.
  bool readSizeLoop(scf::ForOp loop, size_t size, Step &own) {
    // SDSC-BUNDLE-C9
    auto refuse = [&](const std::string &what) {
      violate(loop, "a loop up to " + describe(size) + ", " + what,
              "SDSC-BUNDLE-C9");
      return false;
    };
    auto bound = values.find(loop.getUpperBound());
    if (bound == values.end() || bound->second.getSize() != size)
      return refuse(
          "must end at that size itself: not at a quotient, a sum or a "
          "multiple, and no other bound of it may depend on a size");
    if (constantOf(loop.getLowerBound()) != 0)
      return refuse("must begin at the constant 0");
    std::optional<int64_t> step = constantOf(loop.getStep());
    const SizeParameter &parameter = bundle.sizes[size];
    if (!step)
      return refuse("must have a constant step");
    if (*step < 1 || parameter.granularity % *step != 0)
      return refuse(
          "must have a step that divides the granularity, but has " +
          std::to_string(*step) +
          ", with which iterations would leave out the end of some sizes");
    if (!loop.getInitArgs().empty())
      return refuse("must not carry values (iter_args)");
    own.size = size;
    own.tile = *step;
    own.count = parameter.maximum / *step;
    return true;
  }

  void readLoop(scf::ForOp loop, std::vector<Step> &steps, unsigned depth) {
    // Steps count iterations of signed bounds.
    if (loop.getUnsignedCmp()) {
      violate(loop, "a loop of a bundle compares signed numbers, but this one "
                    "is unsigned");
      return;
    }
    std::optional<int64_t> low = constantOf(loop.getLowerBound()),
                           high = constantOf(loop.getUpperBound()),
                           step = constantOf(loop.getStep());
    constexpr int64_t kMax = int64_t(1) << 31;
    Step own;
    own.line = lineOf(loop);
    std::optional<size_t> size;
    for (Value value :
         {loop.getStep(), loop.getLowerBound(), loop.getUpperBound()})
      if (std::optional<size_t> used = dependsOn(value))
        size = used;
    if (size) {
      if (!readSizeLoop(loop, *size, own))
        return;
    } else if (!low || !high || !step || *step < 1 || *low < -kMax ||
               *high > kMax || *low > kMax || *high < -kMax ||
               !loop.getInitArgs().empty()) {
      violate(loop, "a loop needs constant bounds, a positive step and no "
                    "iter_args");
      return;
    } else {
      own.count =
          *high <= *low ? 0 : llvm::divideCeilSigned(*high - *low, *step);
    }
    Address counter;
    counter.offset = *low;
    counter.strides.assign(depth + 1, 0);
    counter.strides[depth] = *step;
    values[loop.getInductionVar()] = counter;
    if (size)
      loopSizes.push_back(*size);
    readBlock(*loop.getBody(), own.body, depth + 1);
    if (size)
      loopSizes.pop_back();
    steps.push_back(std::move(own));
  }

  static unsigned lineOf(Operation *op) {
    auto loc = dyn_cast<FileLineColLoc>(op->getLoc());
    return loc ? loc.getLine() : 0;
  }

  void readExtract(sdscbundle::InputArgExtractOp extract) {
    sdscbundle::InputArgType type = extract.getArgument().getType();
    Address bound;
    switch (extract.getKind()) {
    case sdscbundle::InputArgExtractKind::value:
      if (auto address = addressOf(extract, extract.getArgument()))
        values[extract.getValue()] = *address;
      return;
    case sdscbundle::InputArgExtractKind::granularity:
      bound.offset = *type.getGranularity();
      break;
    case sdscbundle::InputArgExtractKind::max_value:
      bound.offset = *type.getMaxValue();
      break;
    }
    values[extract.getValue()] = bound;
  }

  void readExecute(sdscbundle::SdscExecuteOp op, std::vector<Step> &steps,
                   unsigned depth) {
    Step step;
    step.file = op.getSdscFilename().str();
    step.line = lineOf(op);
    if (op.getSymbolIds())
      for (Attribute id : op.getSymbolIdsAttr())
        step.symbols.push_back(cast<IntegerAttr>(id).getInt());
    for (Value operand : op.getAddresses()) {
      std::optional<Address> address = addressOf(op, operand);
      if (!address)
        return;
      // SDSC-BUNDLE-C9
      if (!loopSizes.empty() && !address->sizes.empty()) {
        violate(op,
                "an operand depends on " + describe(address->sizes[0].size) +
                    ", but files in a loop up to " +
                    describe(loopSizes.back()) + ", are for one size",
                "SDSC-BUNDLE-C9");
        return;
      }
      address->strides.resize(depth);
      step.operands.push_back(std::move(*address));
    }
    steps.push_back(std::move(step));
  }

  void readBlock(Block &block, std::vector<Step> &steps, unsigned depth) {
    for (Operation &op : block) {
      if (report.isFull())
        return;
      if (auto loop = dyn_cast<scf::ForOp>(op)) {
        readLoop(loop, steps, depth);
      } else if (auto execute = dyn_cast<sdscbundle::SdscExecuteOp>(op)) {
        readExecute(execute, steps, depth);
      } else if (auto extract = dyn_cast<sdscbundle::InputArgExtractOp>(op)) {
        readExtract(extract);
      } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
        auto number = dyn_cast<IntegerAttr>(constant.getValue());
        if (!number || !number.getType().isIndex()) {
          violate(&op, "constants of a bundle have type index");
          continue;
        }
        Address address;
        address.offset = number.getInt();
        values[constant.getResult()] = address;
      } else if (auto add = dyn_cast<arith::AddIOp>(op)) {
        auto left = addressOf(&op, add.getLhs()),
             right = addressOf(&op, add.getRhs());
        Address sum;
        if (!left || !right)
          continue;
        if (!accumulate(sum, *left, 1) || !accumulate(sum, *right, 1))
          violate(&op, "the sum of two arguments, or one that overflows, is "
                       "not an address");
        values[add.getResult()] = sum;
      } else if (auto apply = dyn_cast<affine::AffineApplyOp>(op)) {
        SmallVector<Address> dims, symbols;
        AffineMap map = apply.getAffineMap();
        for (auto [number, operand] : llvm::enumerate(apply.getMapOperands())) {
          auto address = addressOf(&op, operand);
          if (!address)
            return;
          (number < map.getNumDims() ? dims : symbols).push_back(*address);
        }
        auto result = evaluate(map.getResult(0), dims, symbols);
        if (!result)
          violate(&op, "the map must be a sum of one base and multiples of "
                       "loop counters and sizes that does not overflow");
        values[apply.getResult()] = result.value_or(Address());
      } else if (!isa<func::ReturnOp, scf::YieldOp>(op)) {
        violate(&op, "'" + op.getName().getStringRef().str() +
                         "' is not part of a bundle");
      }
    }
  }

  StringRef text;
  const std::string &file;
  Report &report;
  Bundle bundle;
  bool failed = false;
  /// The sizes of the loops around what is being read.
  SmallVector<size_t> loopSizes;
  llvm::DenseMap<Value, Address> values;
};

} // namespace

std::optional<Bundle> spyre::superdsc::parseBundle(const std::string &given,
                                                   const std::string &file,
                                                   Report &report,
                                                   bool lenient) {
  if (!checkText(given, file, report))
    return std::nullopt;
  std::string text = lenient ? dropRepeatedParameters(given) : given;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<affine::AffineDialect, arith::ArithDialect,
                      func::FuncDialect, scf::SCFDialect,
                      sdscbundle::SDSCBundleDialect>();
  context.printOpOnDiagnostic(false);
  bool complained = false;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return success();
    complained = true;
    size_t line = 0, column = 0;
    if (auto loc = dyn_cast<FileLineColLoc>(diagnostic.getLocation())) {
      line = loc.getLine();
      column = loc.getColumn();
    }
    // SDSC-BUNDLE-C1
    report.add(file, "", "SDSC-BUNDLE-C1", diagnostic.str().substr(0, 500),
               line, column);
    return success();
  });
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(text, ParserConfig(&context), file);
  if (!module) {
    if (!complained)
      report.add(file, "", "SDSC-BUNDLE-C1", "cannot be parsed", 1, 1);
    return std::nullopt;
  }
  return Interpreter(text, file, report).run(*module);
}
