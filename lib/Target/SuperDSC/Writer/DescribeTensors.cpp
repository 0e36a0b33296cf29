// SPDX-License-Identifier: Apache-2.0
//===- DescribeTensors.cpp - Operands as SuperDSC's tensors -----*- C++ -*-===//
//
// Accesses become orders, gaps, scales and labels.
//
//===----------------------------------------------------------------------===//

#include "../Mapping/OpNames.h"
#include "Describer.h"

#include "Spyre/Target/SuperDSC/Model/DeviceOps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace spyre::superdsc;
using spyre::DataFormat;

/// Sticks between neighbours along the dimension of a buffer in LX that a loop
/// runs along.
static int64_t getLocalStride(const Operand &operand, unsigned loop) {
  SmallVector<::spyre::DeviceDim> device =
      operand.layout.getDeviceDims(operand.shape);
  int64_t stride = 1;
  for (const ::spyre::DeviceDim &dim :
       llvm::reverse(ArrayRef(device).drop_back())) {
    if (dim.hostDim >= 0 &&
        operand.wholeMap.getResult(dim.hostDim).isFunctionOfDim(loop))
      return stride;
    stride *= std::max<int64_t>(dim.extent, 1);
  }
  return stride;
}

/// The device dimension that a loop runs along, from the innermost.
static unsigned getDevicePosition(const Operand &operand, unsigned loop,
                                  bool isLane) {
  SmallVector<::spyre::DeviceDim> device =
      operand.layout.getDeviceDims(operand.shape);
  unsigned position = 0;
  for (const ::spyre::DeviceDim &dim :
       llvm::reverse(ArrayRef(device).drop_back())) {
    if (dim.hostDim >= 0 && (dim.step > 1) == isLane &&
        operand.wholeMap.getResult(dim.hostDim).isFunctionOfDim(loop))
      break;
    ++position;
  }
  return position;
}

/// A step whose place in the order no stride says.
static constexpr int64_t kNoStride = std::numeric_limits<int64_t>::max();

FailureOr<SmallVector<TensorStep>>
Describer::collectSteps(const Operand &operand) {
  const StickAccess &access = operand.access;
  SmallVector<TensorStep> steps;
  // Places in windows are steps along outputs.
  llvm::SmallBitVector isPlace(extents.size());
  if (&operand == &operands[0])
    for (const Window &window : windows)
      isPlace.set(window.place);
  for (unsigned loop = 0; loop < extents.size(); ++loop) {
    if (isPlace.test(loop))
      continue;
    int dim = dimOfLoop[loop];
    bool isLane = access.laneDim == static_cast<int64_t>(loop);
    bool isInStick = isLane || access.packedDim == static_cast<int64_t>(loop);
    int64_t elements = access.getStepsPerStick(loop);
    int64_t stride = access.strides[loop];
    // A core's slice of one iteration leaves no trace in its part in LX.
    bool isSingle = operand.inLX && !isInStick && stride == 0 && dim >= 0 &&
                    extents[loop] > 1 && operand.wholeMap.isFunctionOfDim(loop);
    // A matmul's second factor has the reduction even if it is of one.
    if (isMatmul && &operand == &operands[1] && loop + 1 == extents.size() &&
        extents[loop] == 1) {
      steps.push_back({kNoStride, 1, static_cast<unsigned>(dim), elements});
      continue;
    }
    if (dim < 0 || (!isInStick && stride == 0 && !isSingle))
      continue;
    if (isSingle)
      stride = getLocalStride(operand, loop);
    if (stride < 0)
      return refuse() << "a tensor that is read backwards";
    int64_t valid =
        operand.inLX ? op.getWorkDivision().getChunks()[loop] : extents[loop];
    int64_t count = llvm::divideCeilSigned(valid, elements);
    if (isLane && stride == 0)
      stride = access.tileStride;
    if (isInStick && stride == 0)
      stride = kNoStride;
    steps.push_back({stride, count, static_cast<unsigned>(dim), elements, false,
                     getDevicePosition(operand, loop, isInStick)});
  }
  if (access.laneDim == kStickDim)
    steps.push_back(
        {kNoStride, 1, static_cast<unsigned>(stickDim), access.stickElements});
  if (operand.gathered)
    steps.push_back({operand.gatheredStride, operand.gatheredExtent,
                     static_cast<unsigned>(dimOf(*operand.gathered)), 1,
                     /*isGathered=*/true});
  return steps;
}

/// Whether each step's stride is a multiple of what the steps before it walk
/// over.
static bool isChain(ArrayRef<TensorStep> steps) {
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    int64_t stride = std::max<int64_t>(steps[i].stride, 1);
    if (steps[i + 1].stride != kNoStride &&
        (steps[i + 1].stride % stride != 0 ||
         steps[i + 1].stride / stride < steps[i].count))
      return false;
  }
  return true;
}

LogicalResult Describer::sortSteps(const Operand &operand,
                                   SmallVectorImpl<TensorStep> &steps) {
  auto byStride = [](const TensorStep &a, const TensorStep &b) {
    return std::tuple(a.stride, a.count, a.position, a.dim) <
           std::tuple(b.stride, b.count, b.position, b.dim);
  };
  llvm::sort(steps, byStride);
  // A single tile of the stick may come anywhere in the order.
  if (!isChain(steps))
    for (TensorStep &step : steps)
      if (step.count == 1 && !step.isGathered) {
        step.stride = kNoStride;
        llvm::sort(steps, byStride);
        break;
      }
  if (!isChain(steps))
    return refuse() << "an access to " << operand.buffer.getType()
                    << " whose elements overlap or interleave";
  if (steps.empty() || steps[0].stride <= 1 || steps[0].stride == kNoStride)
    return success();
  // Describe the elements that are skipped inside of the innermost loop.
  bool isTaken = llvm::any_of(steps, [&](const TensorStep &step) {
    return step.dim == static_cast<unsigned>(unitDim);
  });
  if (unitDim < 0 || isTaken)
    return refuse() << "an access to " << operand.buffer.getType()
                    << " that skips sticks inside of all loops";
  steps.insert(steps.begin(), {1, 1, static_cast<unsigned>(unitDim), 1, false});
  return success();
}

LogicalResult Describer::addStep(const Operand &operand,
                                 ArrayRef<TensorStep> steps, size_t number,
                                 Tensor &tensor) {
  const std::vector<Dim> &dims = result.sdsc.dims;
  const TensorStep &step = steps[number];
  int64_t total = operand.access.totalSticks;
  bool isLast =
      number + 1 == steps.size() || steps[number + 1].stride == kNoStride;
  int64_t count = step.count;
  if (step.stride != kNoStride) {
    if (!isLast)
      count = steps[number + 1].stride / step.stride;
    else if (total % step.stride == 0 && total / step.stride >= count)
      count = total / step.stride;
  }
  if (step.isGathered)
    count = std::max(count, operand.gatheredExtent);
  bool isStick = step.elements != 1;
  int64_t extent = isStick ? count * step.elements : count;
  const Dim &dim = dims[step.dim];
  int64_t gap = extent - (operand.inLX ? dim.perCore() : dim.size);
  if (changesStick) {
    auto known = result.extents.find(dim.name);
    int64_t valid = known != result.extents.end() ? known->second : dim.size;
    if (operand.inLX)
      valid = std::min(valid, dim.perCore());
    int64_t whole = isStick ? llvm::alignTo(valid, step.elements) : valid;
    if (extent != whole)
      return refuse() << "a change of stick of a part of a tensor";
    gap = -gap;
  }
  tensor.order.push_back(step.dim);
  tensor.scale.push_back(Scale::Present);
  tensor.gap.push_back(gap);
  tensor.maxSize.push_back(step.isGathered ? 1 : -1);
  return success();
}

/// What indices select along the label's sticks counts as so many sticks less
/// for the dimensions outside of it.
LogicalResult Describer::checkGathered(const Operand &operand,
                                       ArrayRef<TensorStep> steps) {
  const auto *gathered = llvm::find_if(
      steps, [](const TensorStep &step) { return step.isGathered; });
  if (gathered == steps.end() || gathered->dim != labelStick(operand))
    return success();
  if (llvm::any_of(llvm::make_range(gathered + 1, steps.end()),
                   [](const TensorStep &step) { return step.count > 1; }))
    return refuse() << "an indirect access along the sticks of others, to a "
                       "table with one element per stick";
  return success();
}

/// Order, scales and gaps of a tensor from its strides.
LogicalResult Describer::orderTensor(Operand &operand, Tensor &tensor) {
  FailureOr<SmallVector<TensorStep>> steps = collectSteps(operand);
  if (failed(steps) || failed(sortSteps(operand, *steps)) ||
      failed(checkGathered(operand, *steps)))
    return failure();
  for (size_t number = 0; number < steps->size(); ++number)
    if (failed(addStep(operand, *steps, number, tensor)))
      return failure();
  // Dimensions along which the tensor does not vary come last. Matmuls leave
  // them out, except for an operand that is added to the result.
  const std::vector<Dim> &dims = result.sdsc.dims;
  bool isAdded = isMatmul && &operand != &operands[0] &&
                 &operand != &operands[1] && &operand != &init();
  unsigned stick = labelStick(operand);
  for (unsigned dim = 0; dim < dims.size(); ++dim) {
    if (llvm::is_contained(tensor.order, dim))
      continue;
    bool isReduced = isMatmul && dim + 1 + windows.size() >= dims.size();
    bool isListed = !isMatmul || (isAdded && !isReduced) || dim == stick;
    if (!isListed)
      continue;
    tensor.order.push_back(dim);
    tensor.scale.push_back(dim == stick ? Scale::AbsentStick : Scale::Absent);
    tensor.gap.push_back(0);
    tensor.maxSize.push_back(-1);
  }
  return success();
}

/// A core writes whole sticks: the last one written must not hold what it does
/// not compute.
LogicalResult Describer::checkWrites(const Operand &operand) {
  int64_t lane = operand.access.laneDim;
  if (lane < 0 || extents[lane] % operand.access.stickElements == 0)
    return success();
  ArrayRef<int64_t> shape =
      cast<MemRefType>(operand.tile.whole.getType()).getShape();
  int64_t dim = operand.layout.getStickDim(shape);
  if (dim < 0)
    return success();
  int64_t first = operand.tile.first.empty() ? 0 : operand.tile.first[dim];
  if (first + getRange(operand.map.getResult(dim), extents).second + 1 <
      shape[dim])
    return refuse() << "a write of a part of a stick of "
                    << operand.buffer.getType();
  return success();
}

static bool areEqual(const std::vector<StickDim> &a,
                     const std::vector<StickDim> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const StickDim &x, const StickDim &y) {
                      return x.dim == y.dim && x.size == y.size;
                    });
}

void Describer::addLabel(const Operand &operand, Tensor &tensor) {
  Label label;
  label.order = tensor.order;
  if (operand.access.numPacked > 1)
    label.sticks.push_back(
        {static_cast<unsigned>(dimOf(operand.access.packedDim)),
         operand.access.numPacked});
  label.sticks.push_back({labelStick(operand), operand.access.stickElements});
  auto sorted = [](std::vector<unsigned> dims) {
    llvm::sort(dims);
    return dims;
  };
  std::vector<Label> &labels = result.sdsc.labels;
  bool isIndex = tensor.indirection == Indirection::Index;
  for (auto [number, known] : llvm::enumerate(labels))
    if (sorted(known.order) == sorted(label.order) &&
        areEqual(known.sticks, label.sticks) &&
        isIndexLabel[number] == isIndex) {
      tensor.label = number;
      return;
    }
  static const char *const kOther[] = {"OUTPUT", "KERNEL", "INPUT",
                                       "KERNEL_IDX"};
  static const char *const kMatmul[] = {"INPUT", "KERNEL", "OUTPUT",
                                        "KERNEL_IDX"};
  size_t number = llvm::count(isIndexLabel, false);
  if (isIndex || number > 3)
    number = 3;
  label.name = isMatmul ? kMatmul[number] : kOther[number];
  tensor.label = labels.size();
  labels.push_back(std::move(label));
  isIndexLabel.push_back(isIndex);
}

LogicalResult Describer::addTensor(Operand &operand, Indirection indirection) {
  Tensor tensor;
  tensor.indirection = indirection;
  tensor.inLX = operand.inLX;
  tensor.format = operand.layout.getDataFormat();
  if (failed(orderTensor(operand, tensor)))
    return failure();
  addLabel(operand, tensor);
  // The vendor's names of what is only moved.
  if (indirection == Indirection::Index)
    tensor.format = DataFormat::SENUINT32;
  else if (tensor.format == DataFormat::IEEE_INT32 &&
           (isCopy() || isa<GatherOp>(operation)) &&
           operands[0].layout.getDataFormat() == init().layout.getDataFormat())
    tensor.format = DataFormat::IEEE_FP32;
  tensor.wordLength = ::spyre::storageBytes(tensor.format);
  int64_t bytes =
      (operand.tile.sticks + operand.access.offset) * ::spyre::kStickBytes;
  if (tensor.inLX && (bytes != 0 || operand.buffer != operand.tile.whole))
    return refuse() << "a part of a buffer in LX";
  result.sdsc.tensors.push_back(std::move(tensor));
  result.buffers.push_back(operand.tile.whole);
  result.tiles.push_back(operand.tile);
  result.offsets.push_back(bytes);
  return success();
}

LogicalResult Describer::addOperands() {
  Sdsc &sdsc = result.sdsc;
  SmallVector<unsigned> order;
  auto indirectionOf = [&](unsigned number) {
    if (!indirect)
      return Indirection::None;
    if (number == indirect->index)
      return Indirection::Index;
    return number == indirect->operand ? Indirection::Value : Indirection::None;
  };
  // Index tensors come first; a square's operand is listed twice.
  if (indirect)
    order.push_back(indirect->index);
  for (unsigned number = 0; number < operands.size(); ++number)
    if ((!indirect || number != indirect->index) &&
        !isSecondLane(operation, number))
      order.push_back(number);
  // The label of a matmul's result is made before those of scales and what is
  // added.
  SmallVector<unsigned> numberOf(operands.size());
  for (auto [position, number] : llvm::enumerate(order)) {
    if (isMatmul && number == 2 && operands.size() > 3) {
      Tensor probe;
      if (failed(orderTensor(init(), probe)))
        return failure();
      addLabel(init(), probe);
    }
    if (failed(addTensor(operands[number], indirectionOf(number))))
      return failure();
    numberOf[number] = position;
  }
  if (sdsc.labels.size() > 4 ||
      llvm::count_if(sdsc.labels, [](const Label &label) {
        return label.name == "KERNEL_IDX";
      }) > 1)
    return refuse() << "more than four kinds of operands";
  if (indirect) {
    sdsc.tensors[numberOf[indirect->operand]].indexTensor =
        numberOf[indirect->index];
    sdsc.indices.push_back(numberOf[indirect->index]);
  }
  for (unsigned number = 0; number + 1 < operands.size(); ++number)
    if ((!indirect || number != indirect->index) &&
        !isSecondLane(operation, number))
      sdsc.inputs.push_back(numberOf[number]);
  sdsc.outputs.push_back(numberOf.back());
  if (isa<SquareOp>(operation))
    sdsc.inputs.push_back(sdsc.inputs.front());
  if (listsOutputAsInput(sdsc)) {
    sdsc.inputs.push_back(sdsc.outputs.front());
    bool onStick = llvm::is_contained(sdsc.tensors[sdsc.outputs[0]].scale,
                                      Scale::AbsentStick);
    sdsc.nonstick = !onStick;
    bool nonstick;
    if (!findDeviceOp(sdsc.opFunc(), nonstick))
      return refuse() << "'" << sdsc.op << "' of another dimension than the "
                      << "stick's";
  }
  return success();
}
