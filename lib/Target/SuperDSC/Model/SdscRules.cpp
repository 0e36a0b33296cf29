// SPDX-License-Identifier: Apache-2.0
//===- SdscRules.cpp - Rules about one operation ----------------*- C++ -*-===//
//
// Numbers and texts of the rules: SDSCBundleRules.td.
//
// Longer than 600 lines: a function per rule, or for a few of them.
//
//===----------------------------------------------------------------------===//

#include "Spyre/Target/SuperDSC/Model/SdscRules.h"
#include "Spyre/Target/SuperDSC/Model/DeviceOps.h"
#include "Spyre/Target/SuperDSC/Model/Geometry.h"

#include <algorithm>
#include <set>

using namespace spyre::superdsc;

SdscPaths::SdscPaths(const Sdsc &sdsc) {
  bool asBuilt = sdsc.flavor == Flavor::AsBuilt;
  top = appendPath("", (asBuilt ? std::to_string(sdsc.index) + "_" : "") +
                           sdsc.opFunc());
  dsc = top + "/dscs_/0/" + sdsc.opFunc();
}

std::string SdscPaths::tensor(size_t number) const {
  return appendPath(dsc + "/labeledDs_", number);
}

std::string SdscPaths::allocation(size_t number) const {
  return appendPath(dsc + "/scheduleTree_", number);
}

/// Bytes of an element, those of several that share one counting as 1.
static int64_t getWordLength(spyre::DataFormat format) {
  return std::max<int64_t>(1,
                           spyre::kStickBytes / spyre::elemsPerStick(format));
}

namespace {

class Rules {
public:
  Rules(const Sdsc &sdsc, const std::string &file, Report &report)
      : sdsc(sdsc), file(file), report(report), paths(sdsc) {
    bool nonstick;
    op = findDeviceOp(sdsc.opFunc(), nonstick);
  }

  void check() {
    checkOperands();
    checkConstants();
    for (unsigned number = 0; number < sdsc.tensors.size(); ++number)
      checkTensor(number);
    if (sdsc.outputs.empty() || sdsc.inputs.size() < numDataInputs())
      return;
    for (unsigned dim = 0; dim < sdsc.dims.size(); ++dim)
      if (sdsc.dims[dim].symbol)
        checkSymbol(dim);
    switch (op->kind) {
    case OpKind::Matmul:
      checkMatmul();
      break;
    case OpKind::Reduction:
      checkReduction();
      break;
    case OpKind::Pointwise:
    case OpKind::Identity:
      checkPointwise();
      break;
    case OpKind::TopK:
      checkTopK();
      break;
    case OpKind::Convolution:
      checkConvolution();
      break;
    case OpKind::Pooling:
      checkPooling();
      break;
    case OpKind::Conversion:
    case OpKind::Quantization:
      checkConversion();
      break;
    case OpKind::Restickify:
      checkRestickify();
      break;
    case OpKind::Scatter:
    case OpKind::Other:
      break;
    }
  }

private:
  void violate(const std::string &path, const char *rule, std::string message) {
    report.add(file, path, rule, std::move(message));
  }

  size_t numImmediates() const {
    return std::count_if(sdsc.constants.begin(), sdsc.constants.end(),
                         [](const Constant &constant) {
                           return getImmediatePosition(constant.name) >= 0;
                         });
  }
  size_t numDataInputs() const {
    return op->minInputs > numImmediates() ? op->minInputs - numImmediates()
                                           : 0;
  }
  const Tensor &output() const { return sdsc.tensors[sdsc.outputs[0]]; }
  const Tensor &input(unsigned number) const {
    return sdsc.tensors[sdsc.inputs[number]];
  }
  const Label &labelOf(const Tensor &tensor) const {
    return sdsc.labels[tensor.label];
  }
  const std::string &nameOf(unsigned dim) const { return sdsc.dims[dim].name; }

  std::optional<unsigned> findDim(const std::string &name) const {
    return spyre::superdsc::findDim(sdsc, name);
  }

  /// Stick dimensions along which a tensor varies.
  std::vector<unsigned> presentSticks(const Tensor &tensor) const {
    std::vector<unsigned> dims;
    for (const StickDim &stick : labelOf(tensor).sticks)
      if (variesAlong(tensor, stick.dim))
        dims.push_back(stick.dim);
    return dims;
  }
  bool hasStickScale(const Tensor &tensor) const {
    return std::count(tensor.scale.begin(), tensor.scale.end(),
                      Scale::AbsentStick) != 0;
  }
  std::string listDims(const std::vector<unsigned> &dims) const {
    std::string text = "[";
    for (size_t i = 0; i < dims.size(); ++i)
      text += (i ? ", " : "") + nameOf(dims[i]);
    return text + "]";
  }

  void checkOperands();
  void checkConstants();
  void checkTensor(unsigned number);
  void checkAddresses(unsigned number, const Geometry &geometry);
  void checkSymbol(unsigned dim);
  bool canBeSized(OpKind kind) const;
  void checkMatmul();
  void checkReduction();
  void checkPointwise();
  void checkTopK();
  void checkConvolution();
  void checkPooling();
  void checkConversion();
  void checkRestickify();
  void checkSticks(unsigned operand,
                   const std::vector<std::pair<int, int64_t>> &expected,
                   const char *rule);

  const Sdsc &sdsc;
  const std::string &file;
  Report &report;
  SdscPaths paths;
  const DeviceOp *op;
};

void Rules::checkOperands() {
  std::string path = paths.dsc + "/computeOp_/0";
  // SDSC-OP-C3
  const char *unit = op->kind == OpKind::Matmul ? "pt" : "sfp";
  if (sdsc.unit != unit)
    violate(path + "/exUnit", "SDSC-OP-C3",
            "'" + sdsc.opFunc() + "' runs on '" + unit + "', found '" +
                sdsc.unit.substr(0, 40) + "'");
  // SDSC-OP-C5
  if (!sdsc.tensors.empty() &&
      std::none_of(sdsc.tensors.begin(), sdsc.tensors.end(),
                   [&](const Tensor &tensor) {
                     return tensor.wordLength == getWordLength(sdsc.format);
                   }))
    violate(path + "/attributes_/dataFormat_", "SDSC-OP-C5",
            "no operand has elements of the size of " +
                std::string(spyre::toString(sdsc.format)));
  // SDSC-OP-C2
  size_t numInputs = sdsc.inputs.size();
  bool listsOutput = op->kind == OpKind::Reduction;
  if (listsOutput && (numInputs == 0 || sdsc.outputs.empty() ||
                      sdsc.inputs.back() != sdsc.outputs[0])) {
    violate(path + "/inputLabeledDs", "SDSC-OP-C2",
            "a reduction lists its output as the last input");
    return;
  }
  size_t given = numInputs - listsOutput + numImmediates();
  if (given < op->minInputs || given > op->maxInputs)
    violate(path + "/inputLabeledDs", "SDSC-OP-C2",
            "'" + sdsc.opFunc() + "' takes " + std::to_string(op->minInputs) +
                (op->maxInputs != op->minInputs
                     ? " to " + std::to_string(op->maxInputs)
                     : "") +
                " inputs, found " + std::to_string(given));
  if (sdsc.outputs.size() != 1)
    violate(path + "/outputLabeledDs", "SDSC-OP-C2",
            "expected one output, found " +
                std::to_string(sdsc.outputs.size()));
  bool isIndirect = op->kind == OpKind::Identity || op->kind == OpKind::Scatter;
  if (sdsc.indices.size() > (isIndirect ? 1 : 0))
    violate(path + "/indirectAccessIndexLabeledDs", "SDSC-OP-C2",
            "expected " +
                std::string(isIndirect ? "at most one index"
                                       : "no "
                                         "index") +
                ", found " + std::to_string(sdsc.indices.size()));
  // SDSC-TENSOR-C3
  std::set<unsigned> used(sdsc.inputs.begin(), sdsc.inputs.end());
  used.insert(sdsc.outputs.begin(), sdsc.outputs.end());
  used.insert(sdsc.indices.begin(), sdsc.indices.end());
  for (unsigned number = 0; number < sdsc.tensors.size(); ++number)
    if (!used.count(number))
      violate(paths.tensor(number), "SDSC-TENSOR-C3",
              "Tensor" + std::to_string(number) + " is not an operand");
}

void Rules::checkConstants() {
  std::string path = paths.dsc + "/constantInfo_";
  bool isMasked = std::any_of(sdsc.dims.begin(), sdsc.dims.end(),
                              [](const Dim &dim) { return dim.masked != 0; });
  std::set<std::string> seen;
  size_t arity = sdsc.inputs.size() + numImmediates();
  for (size_t number = 0; number < sdsc.constants.size(); ++number) {
    const Constant &constant = sdsc.constants[number];
    std::string own = appendPath(path, number);
    // SDSC-OP-C4
    if (!seen.insert(constant.name).second) {
      violate(own, "SDSC-OP-C4", "'" + constant.name + "' occurs twice");
      continue;
    }
    int position = getImmediatePosition(constant.name);
    bool known =
        (constant.name == kMaskConstant && isMasked) ||
        ((op->kind == OpKind::Pointwise || op->kind == OpKind::Other) &&
         position >= 0 && position < static_cast<int>(arity));
    for (const DeviceOpConstant &own : op->getConstants())
      known |= constant.name == own.name;
    if (number > 0) {
      const Constant &low = sdsc.constants[number - 1];
      known |= constant.name == low.name + kHighWord &&
               constant.format == spyre::DataFormat::IEEE_INT32 &&
               low.format == constant.format;
    }
    if (!known)
      violate(own, "SDSC-OP-C4",
              "'" + sdsc.opFunc() + "' has no constant '" +
                  constant.name.substr(0, 80) + "'");
    if (constant.format == spyre::DataFormat::SEN169_FP16 &&
        constant.bits > 0xFFFF)
      violate(own, "SDSC-OP-C4",
              "the word " + std::to_string(constant.bits) +
                  " is more than the 16 bits of its format");
  }
  for (const DeviceOpConstant &own : op->getConstants())
    if (!own.isOptional && !seen.count(std::string(own.name)))
      violate(path, "SDSC-OP-C4",
              "the constant '" + std::string(own.name) + "' of '" +
                  sdsc.opFunc() + "' is missing");
  // SDSC-DIM-C4
  bool hasMask =
      sdsc.maskConstant >= 0 &&
      sdsc.maskConstant < static_cast<int64_t>(sdsc.constants.size()) &&
      sdsc.constants[sdsc.maskConstant].name == kMaskConstant;
  if (isMasked ? !hasMask : sdsc.maskConstant != -1)
    violate(paths.dsc + "/maskingConstId_", "SDSC-DIM-C4",
            isMasked ? "a mask needs the number of the constant '" +
                           std::string(kMaskConstant) + "'"
                     : "expected -1, because nothing is masked");
  else if (isMasked &&
           getNumber(sdsc.constants[sdsc.maskConstant]) != op->maskValue)
    violate(appendPath(path, sdsc.maskConstant), "SDSC-DIM-C4",
            "padding must count as " + std::to_string(op->maskValue) + " in '" +
                sdsc.opFunc() + "', so that results are those of the rest");
}

/// Whether dimensions lie outside of one that indices select along the sticks:
/// their strides would count sticks of it.
static bool selectsInsideAlongSticks(const Geometry &geometry) {
  auto gathered = std::find_if(
      geometry.dims.begin(), geometry.dims.end(),
      [](const TensorDim &dim) { return dim.isGathered && dim.stick != 1; });
  return gathered != geometry.dims.end() &&
         std::any_of(gathered + 1, geometry.dims.end(),
                     [](const TensorDim &dim) {
                       return dim.scale == Scale::Present && dim.extent > 1;
                     });
}

void Rules::checkTensor(unsigned number) {
  const Tensor &tensor = sdsc.tensors[number];
  // SDSC-TENSOR-C2
  int64_t bytes = getWordLength(tensor.format);
  if (tensor.wordLength != bytes)
    violate(paths.tensor(number) + "/wordLength", "SDSC-TENSOR-C2",
            "expected " + std::to_string(bytes) + " bytes for " +
                spyre::toString(tensor.format) + ", found " +
                std::to_string(tensor.wordLength));
  int64_t stick = 1;
  for (const StickDim &own : labelOf(tensor).sticks)
    stick *= own.size;
  if (stick != spyre::elemsPerStick(tensor.format))
    violate(paths.dsc + "/primaryDsInfo_/" + labelOf(tensor).name +
                "/stickSize_",
            "SDSC-TENSOR-C2",
            "a stick of " + std::string(spyre::toString(tensor.format)) +
                " has " + std::to_string(spyre::elemsPerStick(tensor.format)) +
                " elements, found " + std::to_string(stick));
  // SDSC-TENSOR-C5
  bool isIndirect = tensor.indirection != Indirection::None;
  bool isListed = std::count(sdsc.indices.begin(), sdsc.indices.end(), number);
  if ((tensor.indirection == Indirection::Index) != isListed)
    violate(paths.allocation(number) + "/indirectAllocType_", "SDSC-TENSOR-C5",
            "an index tensor is listed in indirectAccessIndexLabeledDs and "
            "nothing else is");
  if (tensor.indirection == Indirection::Value &&
      (!tensor.indexTensor ||
       sdsc.tensors[*tensor.indexTensor].indirection != Indirection::Index))
    violate(paths.allocation(number), "SDSC-TENSOR-C5",
            "a value accessed indirectly names its index tensor in "
            "relatedIndirectAccessAlloc_");
  if (isIndirect && tensor.inLX)
    violate(paths.allocation(number) + "/component_", "SDSC-TENSOR-C5",
            "indirect access is to device memory");
  // SDSC-TENSOR-C4
  std::optional<Geometry> geometry = getGeometry(sdsc, tensor);
  if (!geometry)
    violate(paths.allocation(number), "SDSC-TENSOR-C4",
            "sizes and gaps give no tensor that fits the address space");
  else
    checkAddresses(number, *geometry);
  // SDSC-TENSOR-C5
  if (geometry && selectsInsideAlongSticks(*geometry))
    violate(paths.allocation(number) + "/maxDimSizes_", "SDSC-TENSOR-C5",
            "what indices select along the sticks is inside of no other "
            "dimension");
}

void Rules::checkAddresses(unsigned number, const Geometry &geometry) {
  const Tensor &tensor = sdsc.tensors[number];
  std::string path = paths.allocation(number) + "/startAddressCoreCorelet_";
  bool isIndex = tensor.indirection == Indirection::Index;
  for (const TensorDim &dim : geometry.dims) {
    if (dim.stick == 1 || dim.scale != Scale::Present)
      continue;
    // SDSC-ADDRESS-C3, SDSC-ADDRESS-C5
    if (dim.perCore % dim.stick != 0 && !(isIndex && dim.perCore < dim.stick)) {
      violate(paths.dsc + "/dataStageParam_/0/ss_/" + nameOf(dim.dim) + "_",
              isIndex ? "SDSC-ADDRESS-C5" : "SDSC-ADDRESS-C3",
              std::to_string(dim.perCore) + " elements of '" + nameOf(dim.dim) +
                  "' per core are not whole sticks of " +
                  std::to_string(dim.stick) + " of Tensor" +
                  std::to_string(number));
      return;
    }
  }
  // SDSC-ADDRESS-C4
  int64_t span = geometry.span() * spyre::kStickBytes;
  if (span > kMaxSpanBytes)
    violate(path, "SDSC-ADDRESS-C4",
            "a core's part spans " + std::to_string(span) + " bytes, at most " +
                std::to_string(kMaxSpanBytes) + " can be reached");
  std::string key = sdsc.flavor == Flavor::AsBuilt ? ", 0, 0]" : ", 0]";
  for (size_t core = 0; core < tensor.addresses.size(); ++core) {
    int64_t address = tensor.addresses[core];
    std::string own =
        appendPath(path + "/data_", "[" + std::to_string(core) + key);
    // SDSC-ADDRESS-C1
    if (tensor.symbolic) {
      if (address >= 0 || tensor.inLX)
        violate(own, "SDSC-ADDRESS-C1",
                "expected the negative id of a symbol for device memory");
      continue;
    }
    bool fits = address >= 0 && address % spyre::kStickBytes == 0;
    if (tensor.inLX)
      fits &= address <= kLXBytes - geometry.sticks * spyre::kStickBytes;
    else
      fits &= address < kNumSegments * kSegmentBytes &&
              address / kSegmentBytes == (address + span - 1) / kSegmentBytes;
    if (!fits) {
      violate(own, "SDSC-ADDRESS-C1",
              "the address " + std::to_string(address) +
                  " is not a multiple of 128 from which the core's part fits " +
                  (tensor.inLX ? "LX" : "one of the segments"));
      continue;
    }
    // SDSC-ADDRESS-C2
    int64_t expected = tensor.addresses[0];
    if (!tensor.inLX)
      expected += (geometry.offsetOf(sdsc, core) - geometry.offsetOf(sdsc, 0)) *
                  spyre::kStickBytes;
    if (address != expected)
      violate(own, "SDSC-ADDRESS-C2",
              "expected " + std::to_string(expected) +
                  " from the address of core 0 and the slices, found " +
                  std::to_string(address));
  }
}

/// Operations that do the same for every step of a dimension, whatever its
/// size.
bool Rules::canBeSized(OpKind kind) const {
  switch (kind) {
  case OpKind::Pointwise:
  case OpKind::Identity:
  case OpKind::Reduction:
  case OpKind::Matmul:
  case OpKind::Conversion:
  case OpKind::Restickify:
    return sdsc.indices.empty();
  case OpKind::Convolution:
  case OpKind::Pooling:
  case OpKind::TopK:
  case OpKind::Quantization:
  case OpKind::Scatter:
  case OpKind::Other:
    return false;
  }
  return false;
}

void Rules::checkSymbol(unsigned number) {
  const Dim &dim = sdsc.dims[number];
  const DimSymbol &symbol = *dim.symbol;
  std::string path = paths.dsc + "/dimToSymbolMapping_/" + dim.name;
  auto refuse = [&](const char *rule, const std::string &message) {
    violate(path, rule,
            "the size '" + symbol.name + "' of '" + dim.name +
                "', a multiple of " + std::to_string(symbol.granularity) +
                " up to " + std::to_string(dim.size) + ", " + message);
  };
  // SDSC-SYMBOL-C1
  for (const Dim &other : sdsc.dims)
    if (other.symbol &&
        (other.symbol->id == symbol.id) != (other.symbol->name == symbol.name))
      return refuse("SDSC-SYMBOL-C1", "needs a symbol of its own, which '" +
                                          other.name +
                                          "' has under another name");
  // SDSC-SYMBOL-C2
  if (dim.size % symbol.granularity != 0 ||
      symbol.granularity % dim.slices != 0)
    refuse("SDSC-SYMBOL-C2",
           "must have a step that divides the largest and that its " +
               std::to_string(dim.slices) + " slices divide");
  // SDSC-SYMBOL-C3
  for (const Label &label : sdsc.labels)
    for (const StickDim &stick : label.sticks)
      if (stick.dim == number)
        return refuse("SDSC-SYMBOL-C3", "is along the sticks of " + label.name +
                                            ", which have one length");
  for (const Tensor &tensor : sdsc.tensors)
    for (size_t position = 0; position < tensor.order.size(); ++position)
      if (tensor.order[position] == number &&
          (tensor.gap[position] != 0 || tensor.maxSize[position] != -1))
        return refuse("SDSC-SYMBOL-C3",
                      "is that of a part of a tensor, or a page of one");
  // SDSC-SYMBOL-C4
  bool isReduced = !variesAlong(output(), number);
  if (!canBeSized(op->kind))
    refuse("SDSC-SYMBOL-C4",
           "is one of '" + sdsc.opFunc() + "', which is for one size");
  else if (isReduced && (dim.slices > 1 || !sdsc.constants.empty()))
    refuse("SDSC-SYMBOL-C4",
           dim.slices > 1 ? std::string("is reduced, and split over cores")
                          : "is reduced by '" + sdsc.opFunc() +
                                "', which has constants that may depend on it");
  // SDSC-SYMBOL-C5
  for (const Tensor &tensor : sdsc.tensors)
    if (!tensor.inLX && (!tensor.symbolic ||
                         std::count(tensor.addresses.begin(),
                                    tensor.addresses.end(), symbol.id) != 0))
      return refuse("SDSC-SYMBOL-C5", "needs addresses in device memory that "
                                      "are symbols, and other ones");
}

void Rules::checkSticks(unsigned operand,
                        const std::vector<std::pair<int, int64_t>> &expected,
                        const char *rule) {
  const Tensor &tensor = operand < 2 ? input(operand) : output();
  const Label &label = labelOf(tensor);
  bool matches = label.sticks.size() == expected.size();
  for (size_t i = 0; matches && i < expected.size(); ++i)
    matches = static_cast<int>(label.sticks[i].dim) == expected[i].first &&
              label.sticks[i].size == expected[i].second;
  if (matches)
    return;
  std::string text;
  for (auto [dim, size] : expected)
    text += (text.empty() ? "" : " x ") + std::to_string(size) + " of '" +
            nameOf(dim) + "'";
  violate(paths.dsc + "/primaryDsInfo_/" + label.name, rule,
          "the sticks of " +
              std::string(operand == 2
                              ? "the output"
                              : "input " + std::to_string(operand + 1)) +
              " must be " + text);
}

void Rules::checkMatmul() {
  const Tensor &x = input(0), &y = input(1), &out = output();
  std::vector<unsigned> reduced, generated, preserved, everywhere, others;
  for (unsigned dim = 0; dim < sdsc.dims.size(); ++dim) {
    bool inX = variesAlong(x, dim), inY = variesAlong(y, dim),
         inOut = variesAlong(out, dim);
    if (inX && inY)
      (inOut ? everywhere : reduced).push_back(dim);
    else if (inY && inOut)
      generated.push_back(dim);
    else if (inX && inOut)
      preserved.push_back(dim);
    else
      others.push_back(dim);
  }
  // SDSC-MATMUL-C4
  if (reduced.size() != 1 || generated.size() != 1 || preserved.size() > 2 ||
      everywhere.size() > 2 || !others.empty()) {
    violate(paths.dsc + "/labeledDs_", "SDSC-MATMUL-C4",
            "expected one reduced and one generated dimension, at most two "
            "preserved, two in all tensors and no other, found " +
                listDims(reduced) + ", " + listDims(generated) + ", " +
                listDims(preserved) + ", " + listDims(everywhere) + " and " +
                listDims(others));
    return;
  }
  int k = reduced[0], n = generated[0];
  if (op->name == "batchmatmul") {
    // SDSC-MATMUL-C1
    checkSticks(0, {{k, spyre::elemsPerStick(x.format)}}, "SDSC-MATMUL-C1");
    checkSticks(1, {{n, spyre::elemsPerStick(y.format)}}, "SDSC-MATMUL-C1");
    checkSticks(2, {{n, spyre::elemsPerStick(out.format)}}, "SDSC-MATMUL-C1");
  } else if (op->name == "batchmatmulint4") {
    // SDSC-MATMUL-C3
    checkSticks(1, {{k, 4}, {n, 64}}, "SDSC-MATMUL-C3");
  } else {
    // SDSC-MATMUL-C2
    checkSticks(0, {{k, 128}}, "SDSC-MATMUL-C2");
    checkSticks(1, {{k, 2}, {n, 64}}, "SDSC-MATMUL-C2");
  }
}

void Rules::checkReduction() {
  std::string path = paths.tensor(sdsc.outputs[0]) + "/scale_";
  // SDSC-REDUCE-C1
  if (!sdsc.nonstick && !hasStickScale(output()))
    violate(path, "SDSC-REDUCE-C1",
            "'" + sdsc.opFunc() +
                "' reduces the stick dimension, so that the output's scale "
                "there is -2");
  // SDSC-REDUCE-C2
  if (sdsc.nonstick && hasStickScale(output()))
    violate(path, "SDSC-REDUCE-C2",
            "'" + sdsc.opFunc() + "' does not reduce the stick dimension");
}

void Rules::checkPointwise() {
  std::vector<unsigned> sticks;
  const Tensor *first = nullptr;
  for (unsigned number = 0; number < sdsc.tensors.size(); ++number) {
    const Tensor &tensor = sdsc.tensors[number];
    if (tensor.indirection == Indirection::Index)
      continue;
    std::vector<unsigned> own = presentSticks(tensor);
    // SDSC-POINTWISE-C2
    if (hasStickScale(tensor) && !own.empty())
      violate(paths.tensor(number) + "/scale_", "SDSC-POINTWISE-C2",
              "Tensor" + std::to_string(number) +
                  " is broadcast along a part of its stick only");
    if (own.empty())
      continue;
    // SDSC-POINTWISE-C1
    if (first && own != sticks)
      violate(paths.tensor(number), "SDSC-POINTWISE-C1",
              "the sticks of Tensor" + std::to_string(number) + " lie along " +
                  listDims(own) + ", others along " + listDims(sticks));
    if (!first) {
      first = &tensor;
      sticks = own;
    }
  }
}

void Rules::checkTopK() {
  // SDSC-TOPK-C1
  for (unsigned dim : presentSticks(input(0)))
    if (!variesAlong(output(), dim))
      violate(paths.tensor(sdsc.inputs[0]), "SDSC-TOPK-C1",
              "the searched dimension '" + nameOf(dim) + "' is in a stick");
  for (unsigned dim : presentSticks(output()))
    if (!variesAlong(input(0), dim))
      violate(paths.tensor(sdsc.outputs[0]), "SDSC-TOPK-C1",
              "the dimension '" + nameOf(dim) +
                  "' of the k results is in a stick");
}

void Rules::checkConvolution() {
  checkPooling();
  if (op->name != "conv2d")
    return;
  // SDSC-CONV-C1
  static const std::vector<std::string> kOfFilter = {"out", "ki", "kj", "in"},
                                        kOthers = {"mb", "i", "j"};
  const Tensor &image = input(0), &filter = input(1), &out = output();
  auto next = kOfFilter.begin();
  bool hasIn = false, hasOut = false;
  for (unsigned dim = 0; dim < sdsc.dims.size(); ++dim) {
    const std::string &name = nameOf(dim);
    bool isOther =
        std::find(kOthers.begin(), kOthers.end(), name) != kOthers.end();
    next = isOther ? next : std::find(next, kOfFilter.end(), name);
    hasIn |= name == "in";
    hasOut |= name == "out";
    if (next == kOfFilter.end() || (isOther && hasOut) ||
        variesAlong(image, dim) != (isOther || name == "in") ||
        variesAlong(filter, dim) == isOther ||
        variesAlong(out, dim) != (isOther || name == "out")) {
      violate(paths.dsc + "/labeledDs_", "SDSC-CONV-C1",
              "expected mb, i, j of input and output, then out of kernel and "
              "output, ki, kj of the kernel, in of both inputs, which '" +
                  name + "' is not");
      return;
    }
    std::optional<unsigned> output =
        name[0] == 'k' ? findDim(name.substr(1)) : std::optional<unsigned>(dim);
    if (!output) {
      violate(paths.dsc + "/N_", "SDSC-CONV-C1",
              "there are places '" + name + "' in a window, but no outputs '" +
                  name.substr(1) + "'");
      return;
    }
  }
  if (!hasIn || !hasOut) {
    violate(paths.dsc + "/N_", "SDSC-CONV-C1",
            std::string("the dimension '") + (hasIn ? "out" : "in") +
                "' is missing");
    return;
  }
  // SDSC-CONV-C2
  int in = *findDim("in"), columns = *findDim("out");
  checkSticks(0, {{in, spyre::elemsPerStick(image.format)}}, "SDSC-CONV-C2");
  checkSticks(1, {{columns, spyre::elemsPerStick(filter.format)}},
              "SDSC-CONV-C2");
  checkSticks(2, {{columns, spyre::elemsPerStick(out.format)}}, "SDSC-CONV-C2");
  // SDSC-CONV-C3
  std::optional<Geometry> geometry = getGeometry(sdsc, image);
  if (!geometry)
    return;
  for (const TensorDim &own : geometry->dims) {
    if (!own.place)
      continue;
    int64_t outputs = image.inLX ? own.perCore : sdsc.dims[own.dim].size,
            needed = outputs + own.numPlaces - 1;
    if (own.extent < needed)
      violate(paths.allocation(sdsc.inputs[0]) + "/backGapCore_",
              "SDSC-CONV-C3",
              "windows of " + std::to_string(own.numPlaces) + " along '" +
                  nameOf(own.dim) + "' reach over " + std::to_string(needed) +
                  " elements, found " + std::to_string(own.extent));
  }
}

void Rules::checkPooling() {
  // SDSC-POOL-C1
  for (const Label &label : sdsc.labels)
    for (const StickDim &stick : label.sticks)
      if (nameOf(stick.dim) == "ki" || nameOf(stick.dim) == "kj")
        violate(paths.dsc + "/primaryDsInfo_/" + label.name + "/stickDimOrder_",
                "SDSC-POOL-C1",
                "the window dimension '" + nameOf(stick.dim) +
                    "' is in a stick");
}

void Rules::checkConversion() {
  const Tensor &in = input(0), &out = output();
  // SDSC-CAST-C1
  if (out.wordLength < in.wordLength && labelOf(in).sticks.size() != 1)
    violate(paths.tensor(sdsc.inputs[0]), "SDSC-CAST-C1",
            "a conversion to fewer bits needs one stick dimension in its "
            "input");
  if (op->kind == OpKind::Conversion && presentSticks(in) != presentSticks(out))
    violate(paths.tensor(sdsc.outputs[0]), "SDSC-CAST-C1",
            "a conversion keeps the stick dimension");
}

void Rules::checkRestickify() {
  // SDSC-RESTICKIFY-C1
  for (const Tensor *tensor : {&input(0), &output()})
    if (labelOf(*tensor).sticks.size() != 1)
      violate(paths.dsc + "/primaryDsInfo_/" + labelOf(*tensor).name +
                  "/stickDimOrder_",
              "SDSC-RESTICKIFY-C1", "expected one stick dimension");
}

} // namespace

void spyre::superdsc::validateSdsc(const Sdsc &sdsc, const std::string &file,
                                   Report &report) {
  Rules(sdsc, file, report).check();
}
