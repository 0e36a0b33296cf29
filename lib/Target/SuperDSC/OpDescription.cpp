// SPDX-License-Identifier: Apache-2.0
//===- OpDescription.cpp - One planned operation as SuperDSC ----*- C++ -*-===//
//
// Loops become dimensions, accesses become orders, gaps and scales. The rules
// are those of spec/superdsc.md, "SuperDSC JSON".
//
//===----------------------------------------------------------------------===//

#include "OpDescription.h"
#include "Lanes.h"
#include "OpNames.h"

#include "Spyre/Dialect/SpyreGraph/IR/VendorOps.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/StickAccess.h"
#include "Spyre/Target/SuperDSC/DeviceOps.h"
#include "Spyre/Target/SuperDSC/SdscFile.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace spyre::superdsc;
using spyre::DataFormat;

PlacementAttr spyre::superdsc::getPlacement(Value buffer) {
  Operation *definition = buffer.getDefiningOp();
  return definition ? definition->getAttrOfType<PlacementAttr>(
                          SpyreGraphDialect::getPlacementAttrName())
                    : PlacementAttr();
}

namespace {

/// One operand on the way to a tensor.
struct Operand {
  Value buffer;
  /// The part of a buffer that it is.
  TileStart tile;
  LayoutAttrInterface layout;
  /// Of the whole buffer, also for a tile, or of a core's part in LX.
  SmallVector<int64_t> shape;
  bool inLX = false;
  AffineMap map;
  /// The map over all iterations; `map` is over a core's in LX.
  AffineMap wholeMap;
  StickAccess access;
  /// Loop through which the operand is accessed indirectly: one of the
  /// index's, or kUnitDim.
  std::optional<int64_t> gathered;
  int64_t gatheredStride = 0, gatheredExtent = 0;
};

/// Dimensions that no loop is: one iteration, and one stick of lane 0.
constexpr int64_t kUnitDim = -2, kStickDim = -3;

class Describer {
public:
  explicit Describer(SpyreOpInterface op)
      : op(op), operation(op), extents(op.getLoopExtents()),
        kinds(op.getLoopKinds()), maps(op.getIndexingMaps()),
        indirect(op.getIndirectAccess()), isMatmul(isa<MatmulOp>(operation)) {}

  FailureOr<OpDescription> run();

private:
  InFlightDiagnostic refuse() {
    return op->emitOpError() << "SuperDSC cannot say ";
  }

  LogicalResult readOperands();
  LogicalResult chooseDims();
  LogicalResult chooseSticks();
  LogicalResult addTensor(Operand &operand, Indirection indirection);
  LogicalResult orderTensor(Operand &operand, Tensor &tensor);
  LogicalResult checkWrites(const Operand &operand);
  void addLabel(const Operand &operand, Tensor &tensor);
  LogicalResult addOperands();

  Operand &init() { return operands.back(); }
  /// A conversion to booleans is a comparison with 0.
  bool isCopy() const {
    auto elementOf = [&](unsigned number) {
      return getElementTypeOrSelf(operation->getOperand(number).getType());
    };
    return isa<IdentityOp, RestickifyOp>(operation) &&
           (!elementOf(1).isInteger(1) || elementOf(0).isInteger(1));
  }
  /// The dimension of a loop, or of kUnitDim or kStickDim; -1 if there is none.
  int dimOf(int64_t loop) const {
    if (loop == kUnitDim)
      return unitDim;
    if (loop == kStickDim)
      return stickDim;
    return loop < 0 ? -1 : dimOfLoop[loop];
  }
  /// The stick dimension of an operand's label.
  unsigned labelStick(const Operand &operand) const {
    if (operand.access.laneDim != -1)
      return dimOf(operand.access.laneDim);
    return commonStick;
  }

  SpyreOpInterface op;
  Operation *operation;
  SmallVector<int64_t> extents;
  SmallVector<utils::IteratorType> kinds;
  SmallVector<AffineMap> maps;
  std::optional<IndirectAccess> indirect;
  bool isMatmul;
  bool changesStick = false;
  std::vector<Operand> operands;
  SmallVector<int> dimOfLoop;
  int unitDim = -1, stickDim = -1;
  unsigned commonStick = 0;
  OpDescription result;
};

} // namespace

LogicalResult Describer::readOperands() {
  ArrayRef<int64_t> chunks = op.getWorkDivision().getChunks();
  for (auto [number, value] : llvm::enumerate(op->getOperands())) {
    Operand operand;
    operand.buffer = value;
    operand.layout = getLayout(value.getType());
    FailureOr<TileStart> tile = getTileStart(value, op);
    if (failed(tile))
      return failure();
    operand.tile = std::move(*tile);
    Value whole = operand.tile.whole;
    auto type = dyn_cast<MemRefType>(whole.getType());
    PlacementAttr placement = getPlacement(whole);
    if (!type || !operand.layout || (!placement && !isa<BlockArgument>(whole)))
      return op->emitOpError()
             << "operand of type " << value.getType()
             << " must be a function argument or an allocation with a layout "
                "and a placement";
    operand.inLX = placement && placement.getSpace() == MemorySpace::lx;
    operand.shape =
        llvm::to_vector(operand.inLX ? placement.getLocal() : type.getShape());
    operand.map = maps[number];
    if (holdsLanes(operation, number)) {
      // Shown without its lanes.
      unsigned lanes = type.getRank() - 1;
      if (operand.layout.getStickDim(type.getShape()) !=
          static_cast<int64_t>(lanes))
        return refuse() << "statistics whose stick is not their last dimension";
      SmallVector<AffineExpr> results(operand.map.getResults());
      results[lanes] = getAffineConstantExpr(0, op->getContext());
      operand.map = AffineMap::get(operand.map.getNumDims(), 0, results,
                                   op->getContext());
    }
    ArrayRef<int64_t> ranges = operand.inLX ? chunks : ArrayRef(extents);
    operand.wholeMap = simplifyWithRanges(operand.map, extents);
    operand.map = simplifyWithRanges(operand.map, ranges);
    std::optional<StickAccess> access =
        getStickAccess(operand.map, operand.layout, operand.shape, ranges);
    if (!access)
      return refuse() << "the access " << AffineMapAttr::get(maps[number])
                      << " to operand " << number << " of type "
                      << value.getType()
                      << ", which is not by whole sticks and one loop along "
                         "them";
    operand.access = *access;
    operands.push_back(std::move(operand));
  }
  return success();
}

/// Which loops become dimensions, and which dimensions are added.
LogicalResult Describer::chooseDims() {
  // Loops that the operation knows by number.
  auto isCounted = [&](int64_t loop) {
    if (auto own = dyn_cast<CumSumOp>(operation))
      return static_cast<int64_t>(own.getDim()) == loop;
    if (auto own = dyn_cast<IotaOp>(operation))
      return static_cast<int64_t>(own.getDim()) == loop;
    return isa<TriOp>(operation) &&
           loop + 2 >= static_cast<int64_t>(extents.size());
  };
  unsigned numLoops = extents.size();
  if (isMatmul) {
    // Loops in default order: ..., m, n, k. A dimension of extent 1 leaves no
    // trace in the accesses, but n and k are the operation's sticks.
    int64_t n = numLoops - 2, k = numLoops - 1;
    std::pair<Operand *, int64_t> sticks[] = {
        {&operands[0], k}, {&operands[1], n}, {&init(), n}};
    for (auto [operand, loop] : sticks) {
      if (operand->access.laneDim == -1 && extents[loop] == 1)
        operand->access.laneDim = loop;
      if (operand->access.laneDim != loop)
        return refuse() << "a matmul whose sticks are not along k, n and n";
    }
  }
  // A triangle is of the last two dimensions: the stick is the last one.
  if (isa<TriOp>(operation)) {
    int64_t last = numLoops - 1;
    for (Operand &operand : operands)
      if (operand.access.laneDim == -1 && extents[last] == 1)
        operand.access.laneDim = last;
    if (llvm::all_of(operands, [](const Operand &operand) {
          return operand.access.laneDim == -1;
        }))
      return refuse() << "a triangle of tensors of one element per stick";
  }
  // The gathered dimension of a table: one of the index's that does not select
  // anything else in it.
  if (indirect) {
    Operand &table = operands[indirect->operand];
    Operand &index = operands[indirect->index];
    table.gathered = kUnitDim;
    for (unsigned loop = 0; loop < numLoops; ++loop)
      if ((index.access.strides[loop] != 0 ||
           index.access.laneDim == static_cast<int64_t>(loop)) &&
          table.access.strides[loop] == 0 &&
          table.access.laneDim != static_cast<int64_t>(loop) &&
          extents[loop] > 1)
        table.gathered = loop;
    SmallVector<::spyre::DeviceDim> dims =
        table.layout.getDeviceDims(table.shape);
    unsigned found = 0;
    int64_t stride = 1;
    for (const ::spyre::DeviceDim &dim :
         llvm::reverse(ArrayRef(dims).drop_back())) {
      if (dim.hostDim == indirect->dim) {
        ++found;
        table.gatheredStride = stride;
        table.gatheredExtent = dim.extent;
      }
      stride *= dim.extent;
    }
    if (found != 1 || dims.back().hostDim == indirect->dim)
      return refuse() << "an indirect access along a stick";
  }
  bool needsUnit =
      indirect && *operands[indirect->operand].gathered == kUnitDim;
  for (Operand &operand : operands) {
    int64_t smallest = operand.access.getInnermostStride();
    if (operand.gathered &&
        (smallest == 0 || operand.gatheredStride < smallest))
      smallest = operand.gatheredStride;
    needsUnit |= smallest > 1 && operand.access.totalSticks > 1;
  }

  dimOfLoop.assign(numLoops, -1);
  std::vector<Dim> &dims = result.sdsc.dims;
  if (needsUnit) {
    unitDim = dims.size();
    dims.emplace_back();
  }
  for (unsigned loop = 0; loop < numLoops; ++loop) {
    bool isStick = llvm::any_of(operands, [&](const Operand &operand) {
      return operand.access.laneDim == static_cast<int64_t>(loop);
    });
    bool isLanes =
        loop + 1 == numLoops && countsLanes(op->getName().getStringRef());
    if (isLanes || (extents[loop] == 1 && !isCounted(loop) && !isStick))
      continue;
    dimOfLoop[loop] = dims.size();
    dims.emplace_back();
    dims.back().size = extents[loop];
    dims.back().slices = op.getWorkDivision().getSplits()[loop];
  }
  return success();
}

/// Sticks of operands without a lane, padding, names.
LogicalResult Describer::chooseSticks() {
  std::vector<Dim> &dims = result.sdsc.dims;
  Operand &reference =
      op.getCombiner() == Combiner::None ? init() : operands.front();
  // Indices have a label of their own.
  bool hasLane = llvm::any_of(operands, [&](const Operand &operand) {
    return operand.access.laneDim != -1 &&
           !(indirect && &operand == &operands[indirect->index]);
  });
  bool oneSided = isCopy() && (operands[0].access.laneDim == -1) !=
                                  (init().access.laneDim == -1);
  if (!hasLane || oneSided) {
    // Sticks of one element: a dimension as long as the stick.
    stickDim = dims.size();
    dims.emplace_back();
    int64_t elements =
        oneSided && operands[0].access.laneDim == -1
            ? operands[0].access.stickElements
            : (oneSided ? init() : reference).access.stickElements;
    // A conversion is between sticks of different lengths.
    bool converts = isCopy() && !hasLane;
    if (converts)
      elements = std::max(operands[0].access.stickElements, elements);
    dims.back().size = elements;
    for (auto [number, operand] : llvm::enumerate(operands)) {
      bool isStatistics = holdsLanes(operation, number) && &operand != &init();
      if (operand.access.laneDim == -1 && !isStatistics &&
          (operand.access.stickElements == elements || converts))
        operand.access.laneDim = kStickDim;
    }
  }
  changesStick =
      isCopy() && operands[0].access.laneDim != init().access.laneDim;
  // The stick of tensors that have none is that of the others.
  const Operand *first = nullptr;
  for (const Operand *operand : {&init(), &operands.front()})
    if (operand->access.laneDim != -1 && !first)
      first = operand;
  for (const Operand &operand : operands)
    if (operand.access.laneDim != -1 && !first &&
        !(indirect && &operand == &operands[indirect->index]))
      first = &operand;
  commonStick = dimOf(first->access.laneDim);

  SmallVector<int64_t> granularity(dims.size(), 1);
  for (const Operand &operand : operands)
    if (operand.access.laneDim >= 0) {
      int64_t &own = granularity[dimOf(operand.access.laneDim)];
      own = std::lcm(own, operand.access.stickElements);
    }
  std::optional<std::vector<std::string>> names =
      getDimNames(dims.size(), isMatmul);
  if (!names)
    return refuse() << "an operation of " << dims.size() << " dimensions";
  ArrayRef<int64_t> chunks = op.getWorkDivision().getChunks();
  if (stickDim >= 0)
    result.extents[(*names)[stickDim]] = 1;
  for (unsigned loop = 0; loop < extents.size(); ++loop) {
    if (dimOfLoop[loop] < 0)
      continue;
    Dim &dim = dims[dimOfLoop[loop]];
    dim.size = llvm::alignTo(extents[loop], granularity[dimOfLoop[loop]]);
    if (dim.slices > 1 && dim.slices * chunks[loop] != dim.size)
      return refuse() << "an uneven split: " << dim.slices << " slices of "
                      << chunks[loop] << " of loop " << loop << " with "
                      << dim.size << " iterations";
    const std::string &name = (*names)[dimOfLoop[loop]];
    if (dim.size != extents[loop]) {
      result.extents[name] = extents[loop];
      if (changesStick && dim.slices > 1)
        return refuse() << "a change of stick with a split of the padded loop "
                        << loop;
    }
    // Reductions along the stick mask the padding; in a scan it comes last.
    bool isScan = isa<CumSumOp>(operation);
    if (op.getCombiner() != Combiner::None && !isMatmul && !isScan &&
        kinds[loop] == utils::IteratorType::reduction)
      dim.masked = dim.size - extents[loop];
    if (dim.masked != 0 && dim.slices > 1)
      return refuse() << "a split of the padded reduction over loop " << loop;
  }
  for (auto [dim, name] : llvm::zip(dims, *names))
    dim.name = name;
  for (int64_t loop : op.getWorkDivision().getOrder())
    if (dimOfLoop[loop] >= 0)
      result.sdsc.coreOrder.push_back(dimOfLoop[loop]);
  for (unsigned dim = 0; dim < dims.size(); ++dim)
    if (!llvm::is_contained(result.sdsc.coreOrder, dim))
      result.sdsc.coreOrder.push_back(dim);
  return success();
}

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

/// Order, scales and gaps of a tensor from its strides.
LogicalResult Describer::orderTensor(Operand &operand, Tensor &tensor) {
  const std::vector<Dim> &dims = result.sdsc.dims;
  const StickAccess &access = operand.access;
  struct Step {
    int64_t stride;
    /// Iterations in sticks, one for other dimensions than the stick's.
    int64_t count;
    unsigned dim;
    /// Elements of a step in memory.
    int64_t elements;
    bool isGathered = false;
    /// Of equals: which device dimension, from the innermost.
    unsigned position = 0;
  };
  auto sizeOf = [&](unsigned dim) {
    return operand.inLX ? dims[dim].perCore() : dims[dim].size;
  };
  SmallVector<Step> steps;
  for (unsigned loop = 0; loop < extents.size(); ++loop) {
    int dim = dimOfLoop[loop];
    bool isLane = access.laneDim == static_cast<int64_t>(loop);
    int64_t stride = access.strides[loop];
    // A core's slice of one iteration leaves no trace in its part in LX.
    bool isSingle = operand.inLX && !isLane && stride == 0 && dim >= 0 &&
                    extents[loop] > 1 && operand.wholeMap.isFunctionOfDim(loop);
    // A matmul's second factor has the reduction even if it is of one.
    if (isMatmul && &operand == &operands[1] && loop + 1 == extents.size() &&
        extents[loop] == 1) {
      steps.push_back({std::numeric_limits<int64_t>::max(), 1,
                       static_cast<unsigned>(dim), 1});
      continue;
    }
    if (dim < 0 || (!isLane && stride == 0 && !isSingle))
      continue;
    if (isSingle)
      stride = getLocalStride(operand, loop);
    if (stride < 0)
      return refuse() << "a tensor that is read backwards";
    int64_t valid =
        operand.inLX ? op.getWorkDivision().getChunks()[loop] : extents[loop];
    int64_t count =
        isLane ? llvm::divideCeilSigned(valid, access.stickElements) : valid;
    if (isLane && stride == 0) {
      stride = access.tileStride;
      if (stride == 0)
        stride = std::numeric_limits<int64_t>::max();
    }
    steps.push_back({stride, count, static_cast<unsigned>(dim),
                     isLane ? access.stickElements : 1, false,
                     getDevicePosition(operand, loop, isLane)});
  }
  if (access.laneDim == kStickDim)
    steps.push_back({std::numeric_limits<int64_t>::max(), 1,
                     static_cast<unsigned>(stickDim), access.stickElements});
  if (operand.gathered)
    steps.push_back({operand.gatheredStride, operand.gatheredExtent,
                     static_cast<unsigned>(dimOf(*operand.gathered)), 1,
                     /*isGathered=*/true});
  auto byStride = [](const Step &a, const Step &b) {
    return std::tuple(a.stride, a.count, a.position, a.dim) <
           std::tuple(b.stride, b.count, b.position, b.dim);
  };
  llvm::sort(steps, byStride);
  // Of the stick's tiles, one alone, the place does not matter.
  auto isChain = [&] {
    for (size_t i = 0; i + 1 < steps.size(); ++i)
      if (steps[i + 1].stride != std::numeric_limits<int64_t>::max() &&
          (steps[i + 1].stride % std::max<int64_t>(steps[i].stride, 1) != 0 ||
           steps[i + 1].stride / std::max<int64_t>(steps[i].stride, 1) <
               steps[i].count))
        return false;
    return true;
  };
  if (!isChain())
    for (Step &step : steps)
      if (step.count == 1 && !step.isGathered) {
        step.stride = std::numeric_limits<int64_t>::max();
        llvm::sort(steps, byStride);
        break;
      }
  if (!isChain())
    return refuse() << "an access to " << operand.buffer.getType()
                    << " whose elements overlap or interleave";
  if (!steps.empty() && steps[0].stride > 1 &&
      steps[0].stride != std::numeric_limits<int64_t>::max()) {
    // What is skipped inside of the innermost loop.
    if (unitDim < 0 || llvm::any_of(
                           steps,
                           [&](const Step &step) {
                             return step.dim == static_cast<unsigned>(unitDim);
                           }))
      return refuse() << "an access to " << operand.buffer.getType()
                      << " that skips sticks inside of all loops";
    steps.insert(steps.begin(),
                 {1, 1, static_cast<unsigned>(unitDim), 1, false});
  }
  int64_t total = access.totalSticks;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step &step = steps[i];
    bool isLast = i + 1 == steps.size() ||
                  steps[i + 1].stride == std::numeric_limits<int64_t>::max();
    int64_t count = step.count;
    if (step.stride != std::numeric_limits<int64_t>::max()) {
      if (!isLast)
        count = steps[i + 1].stride / step.stride;
      else if (total % step.stride == 0 && total / step.stride >= count)
        count = total / step.stride;
    }
    if (step.isGathered)
      count = std::max(count, operand.gatheredExtent);
    bool isStick = step.elements != 1;
    int64_t extent = isStick ? count * step.elements : count;
    int64_t gap = extent - sizeOf(step.dim);
    if (changesStick) {
      int64_t valid = result.extents.count(dims[step.dim].name)
                          ? result.extents[dims[step.dim].name]
                          : dims[step.dim].size;
      if (operand.inLX)
        valid = std::min(valid, dims[step.dim].perCore());
      int64_t whole = valid;
      if (isStick)
        whole = llvm::alignTo(valid, step.elements);
      if (extent != whole)
        return refuse() << "a change of stick of a part of a tensor";
      gap = -gap;
    }
    tensor.order.push_back(step.dim);
    tensor.scale.push_back(Scale::Present);
    tensor.gap.push_back(gap);
    tensor.maxSize.push_back(step.isGathered ? 1 : -1);
  }
  // What the tensor does not vary along comes last; matmuls leave it out, but
  // for an operand that is added to the result.
  bool isAdded = isMatmul && &operand != &operands[0] &&
                 &operand != &operands[1] && &operand != &init();
  unsigned stick = labelStick(operand);
  for (unsigned dim = 0; dim < dims.size(); ++dim) {
    if (llvm::is_contained(tensor.order, dim))
      continue;
    bool isReduced = isMatmul && dim + 1 == dims.size();
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

void Describer::addLabel(const Operand &operand, Tensor &tensor) {
  Label label;
  label.order = tensor.order;
  label.sticks.push_back({labelStick(operand), operand.access.stickElements});
  auto sorted = [](std::vector<unsigned> dims) {
    llvm::sort(dims);
    return dims;
  };
  std::vector<Label> &labels = result.sdsc.labels;
  bool isIndex = tensor.indirection == Indirection::Index;
  for (auto [number, known] : llvm::enumerate(labels))
    if (sorted(known.order) == sorted(label.order) &&
        known.sticks[0].dim == label.sticks[0].dim &&
        known.sticks[0].size == label.sticks[0].size &&
        (known.name == "KERNEL_IDX") == isIndex) {
      tensor.label = number;
      return;
    }
  static const char *const kOther[] = {"OUTPUT", "KERNEL", "INPUT",
                                       "KERNEL_IDX"};
  static const char *const kMatmul[] = {"INPUT", "KERNEL", "OUTPUT",
                                        "KERNEL_IDX"};
  size_t number = llvm::count_if(
      labels, [](const Label &known) { return known.name != "KERNEL_IDX"; });
  if (isIndex || number > 3)
    number = 3;
  label.name = isMatmul ? kMatmul[number] : kOther[number];
  tensor.label = labels.size();
  labels.push_back(std::move(label));
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
  // The label of a matmul's result is made before that of what is added.
  SmallVector<unsigned> numberOf(operands.size());
  for (auto [position, number] : llvm::enumerate(order)) {
    if (isMatmul && number == 2 && operands.size() == 4) {
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

FailureOr<OpDescription> Describer::run() {
  if (!op.getWorkDivision())
    return op->emitOpError("has no work division");
  if (llvm::is_contained(extents, 0))
    return FailureOr<OpDescription>(refuse() << "an empty reduction");
  if (failed(readOperands()) || failed(chooseDims()) ||
      failed(chooseSticks()) || failed(checkWrites(init())) ||
      failed(describeOperation(op, dimOfLoop, result.sdsc)))
    return failure();
  if (changesStick) {
    if (result.sdsc.op != "identity")
      return FailureOr<OpDescription>(
          refuse() << "a conversion that changes the stick dimension");
    result.sdsc.op = "ReStickifyOpHBM";
  }
  if (failed(addOperands()))
    return failure();
  result.sdsc.format =
      result.sdsc
          .tensors[result.sdsc.inputs.empty() ? result.sdsc.outputs[0]
                                              : result.sdsc.inputs[0]]
          .format;
  return std::move(result);
}

FailureOr<OpDescription> spyre::superdsc::describeOp(SpyreOpInterface op) {
  return Describer(op).run();
}
