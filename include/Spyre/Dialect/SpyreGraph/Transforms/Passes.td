// SPDX-License-Identifier: Apache-2.0
// Longer than 600 lines: the pages of the passes are made of it.
#ifndef SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_PASSES_TD
#define SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def SpyreDecompose : Pass<"spyre-decompose", "::mlir::func::FuncOp"> {
  let summary = "turn composite operations into device operations";
  let description = [{
    Softmax, norms and attention arrive as one operation each, so that one place
    decides how they are computed and rounded. After this pass, a value is
    rounded only where a device operation stores its result. Sums and statistics
    are f32. The exponential takes the unrounded difference. Scale and additive
    masks are part of the matmul that makes the scores. Grouped queries read key
    and value heads through index maps, so keys and values are never repeated in
    memory. A row that a mask hides entirely gives zeros, as PyTorch's fused
    attention does. Operations without users are erased.
  }];
  let dependentDialects = ["::mlir::spyre_graph::SpyreGraphDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::arith::ArithDialect"];
}

def SpyreSetTarget : Pass<"spyre-set-target", "::mlir::ModuleOp"> {
  let summary = "set the target that the module is planned for";
  let description = [{
    Gives the module the attribute `spyre_graph.target`. The passes after it
    read the attribute and plan only what this target can express. If the module
    already has another target, that is an error, because its plan may be for
    the other one.

    Constraints:
    - SG-TARGET-C3: the module has no other target already.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"ktir\"",
           "Name of a registered target, such as ktir or superdsc">,
  ];
  let dependentDialects = ["::mlir::spyre_graph::SpyreGraphDialect"];
}

def SpyreSetDevice : Pass<"spyre-set-device", "::mlir::ModuleOp"> {
  let summary = "set the numbers of the device that the module is planned for";
  let description = [{
    Reads a file of numbers of the device, as `spyre-run --device` does, and
    gives the module the attribute `spyre_graph.device`: a dictionary of the
    numbers that differ from the defaults, as in

    ```mlir
    module attributes {spyre_graph.device = {lxReservedFraction = 0.5,
                                             numCores = 4}} {
    }
    ```

    The passes after it plan for this device, and the program keeps the
    attribute. An option of a pass, such as `cores`, that is given replaces the
    device's number. If the module already has another device, that is an error,
    because its plan may be for the other one.

    Constraints:
    - SG-DEVICE-C1: `spyre_graph.device` is a dictionary, on a module, of
      numbers (i64 or finite f64) and strings.
    - SG-DEVICE-C2: its names are those of the device's numbers
      (`spyre-run --print-device-spec`), each value is of its number's type, and
      all together make sense.
    - SG-DEVICE-C3: the module has no other device already.
  }];
  let options = [
    Option<"file", "file", "std::string", "\"\"",
           "JSON file of the device's numbers that differ from the defaults">,
  ];
  let dependentDialects = ["::mlir::spyre_graph::SpyreGraphDialect"];
}

def SpyreLegalizeForTarget
    : Pass<"spyre-legalize-for-target", "::mlir::func::FuncOp"> {
  let summary = "replace what the module's target cannot express";
  let description = [{
    Runs the passes that the target adds (`Target::addLegalizationPasses`). They
    run after layouts are chosen, because what can be expressed depends on
    layouts, and before tiles and divisions, which are chosen for the operations
    that result. Without a target the pass does nothing.
  }];
  let dependentDialects = ["::mlir::spyre_graph::SpyreGraphDialect",
                           "::mlir::tensor::TensorDialect"];
}

def SpyrePropagateLayouts
    : Pass<"spyre-propagate-layouts", "::mlir::func::FuncOp"> {
  let summary = "fold views into index maps and give every tensor a layout";
  let description = [{
    The device moves and computes whole 128-byte sticks, so which dimension of
    a tensor lies along its sticks decides whether an op can read it at all,
    and each later change of it is a pass over memory. This pass therefore
    decides layouts for the whole function at once:

    1. Unused operations are erased. Each `spyre_graph.view`, and each copy that
       only rearranges and has one user, is composed into the index maps of its
       users and disappears. Views that leave the function, or are used by anything that
       is not a device operation, are materialised by `spyre_graph.identity`.
    2. Each result gets a `#spyre_graph.layout` encoding. The candidates for the
       stick of an op are its result's loop dimensions and those that lie along
       the sticks of its inputs (spec/layouts.md, "Propagation rules"). Of all
       ops together, the pass takes those that move the fewest bytes. It counts
       what ops read and write, and what copies do, each copy once for all of
       its users. Bytes of tensors inside the function count as a quarter,
       because most of them stay in LX. A result in another layout than its
       caller expects counts twice. A scan along sticks counts each of them once
       per element, unless it is larger than a core can address: then it is
       scanned part by part. The search is exact unless it has to keep more than
       1024 states; then it is no worse than the reference's beam search
       (Spyre/Planning/LayoutAssignment.h). A remark says which of the two
       happened. A result that has a layout keeps it, and an op that updates a
       tensor keeps the tensor's.
    3. An input whose stick runs along another loop dimension than the op needs
       is copied by `spyre_graph.restickify`. An input whose lane is not 0, v or
       v mod (elements per stick) for a loop dimension v is copied by
       `spyre_graph.identity`. Equal copies are made once. A table that is
       indexed along its stick is copied to another stick, because an index
       cannot select a lane; if it is updated, it is copied back.

    A contraction exchanges its factors where that moves less and the target
    allows it. A copy, or a contraction that takes the matrix unit longer than
    its data takes to arrive, counts as the bytes that device memory could move
    in the meantime.

    An operation's `spyre_graph.layout_hint` asks for the layout of its result.
    The pass then chooses only among ways to make this layout.

    The pass never changes values. Any index map can be executed; the copies are
    there because the device's ops cannot read across sticks.

    Constraints:
    - SG-PROPAGATE-C1: every function argument of tensor type has a layout.
    - SG-PROPAGATE-C2: only device operations, `tensor.empty` and
      `bufferization.materialize_in_destination` make tensors.
    - SG-PROPAGATE-C3: an operation with a layout hint can make this layout.
    - SG-PROPAGATE-C4: 64 bits hold the bytes of every tensor, an element per
      stick.
  }];
  let options = [
    Option<"maxSpan", "max-span", "int64_t", "-1",
           "Bytes of a tensor in device memory that a core can address; -1: "
           "the device's">,
  ];
  let dependentDialects = ["::mlir::spyre_graph::SpyreGraphDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numUnused", "unused-erased", "Unused operations erased">,
    Statistic<"numCopiesFolded", "copies-folded",
              "Rearranging copies treated as views">,
    Statistic<"numViewsFolded", "views-folded", "Views folded into users">,
    Statistic<"numViewsMaterialized", "views-materialized",
              "Views copied because a user needs a tensor">,
    Statistic<"numRestickify", "restickify", "Stick changes inserted">,
    Statistic<"numLaneCopies", "lane-copies",
              "Copies inserted for accesses inside a stick">,
    Statistic<"numCopiedBytes", "copied-bytes",
              "Device bytes written by inserted copies">,
    Statistic<"numProven", "proven", "Functions without cheaper layouts">,
  ];
}

def SpyreUpdateInPlace : Pass<"spyre-update-in-place", "::mlir::func::FuncOp"> {
  let summary = "let operations write their results into what these update";
  let description = [{
    A graph updates an argument by copying a computed value into it. This pass
    removes the copy: the operation that computes the value writes it straight
    into the argument, or into the part that the copy would write. Otherwise
    `x += 1` would need room for another tensor as large as `x`, and move each
    byte once more.

    An elementwise operation takes over the loops of the copy, and with them its
    views: a transposed or flattened part of the argument is written where it
    lies. Any other operation must compute all of the argument in the argument's
    layout. An operation may read the argument only at the very place that an
    iteration writes, or not at all. One that reads other places, or older
    contents, keeps its copy. One that stands before other readers of the old
    contents moves behind them. Bufferization then checks once more that nothing
    reads what has been overwritten.

    A result that has other users keeps its copy too, as long as the LX of all
    cores could hold it: these users would have to read it from device memory.

    Constraints:
    - SG-UPDATE-C1: all tensors of the graph have layouts.
  }];
  let statistics = [
    Statistic<"numInPlace", "in-place", "Copies into arguments removed">,
  ];
  let dependentDialects = ["::mlir::spyre_graph::SpyreGraphDialect"];
}

def SpyreResolveHints : Pass<"spyre-resolve-hints", "::mlir::func::FuncOp"> {
  let summary = "turn the dimension names of hints into loop dimensions";
  let description = [{
    Users name the dimensions of a function's arguments, and ask for tiles and
    work divisions by name. The pass follows the names through the operations. A
    loop dimension that runs over a named dimension of an operand, or over one
    component of a flattened one, gets this name and hands it to the result.
    Views have been folded into index maps before, so names pass through them.
    Where a loop runs over a flattened dimension, its outermost component can be
    cut, into tiles that hold whole inner components.

    `spyre_graph.hints` of an operation becomes `spyre_graph.tile_hints` and
    `spyre_graph.work_division_hint`. The later passes follow these, or reject
    them with an error. An operation that does not have the dimension ignores the
    hint; if no operation has it, a warning says so.

    Constraints:
    - SG-HINT-C1: a dimension that a hint names has more than one element, or one
      part is asked for, and some loop runs over it other than over a flattened
      dimension of which it is an inner component.
    - SG-HINT-C2: `spyre_graph.dim_names` gives each dimension no names, or names
      whose sizes multiply to its extent.
    - SG-HINT-C3: a hint is `{scope, dim, tiles}`, `{dim, work_div}` or
      `{named_dims}`, and its number is positive.
    - SG-HINT-C4: if a hint divides a component of a flattened dimension that a
      loop runs over as a whole, the slices are equal.
    - SG-HINT-C5: all tensors of the graph have layouts.
  }];
  let statistics = [
    Statistic<"numResolved", "resolved", "Operations whose hints were resolved">,
  ];
  let dependentDialects = ["::mlir::spyre_graph::SpyreGraphDialect"];
}

def SpyreSizeLoops : Pass<"spyre-size-loops", "::mlir::func::FuncOp"> {
  let summary = "run what varies with a size in loops up to that size";
  let description = [{
    A function for many sizes has operations whose extents vary. This pass gives
    them the extent of one step between sizes, and runs them in a loop up to the
    size, `spyre_graph.bound_map` of which says so (SG-SYMBOL-C4). So each
    operation is of one size, as devices want it that take a size only for the
    number of a loop's iterations: `loop_dimension` in the field's words, where an
    operation of varying extents has a `dimension` that is a symbol.

    Operations that vary with one symbol share a loop, and hand on tiles in
    buffers of one tile. Those that read other tiles than their own, or need what
    is computed of them outside of the loop, are in another loop that follows. It
    does nothing in a function without symbols.

    Constraints:
    - SG-SIZE-LOOP-C1: one loop of each such operation varies, is parallel, and
      is one symbol; tiles of one operation are tiles of the others. None writes
      from an offset on that varies.
    - SG-SIZE-LOOP-C2: sizes are the multiples of their step, and a tile of so
      many elements begins at whole sticks.
    - SG-SIZE-LOOP-C3: the graph is on tensors, all of which have layouts.
  }];
  let statistics = [
    Statistic<"numLoops", "num-loops", "Loops up to sizes">,
  ];
  let dependentDialects = [
    "::mlir::spyre_graph::SpyreGraphDialect", "::mlir::scf::SCFDialect",
    "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"
  ];
}

def SpyreCoarseTiling : Pass<"spyre-coarse-tiling", "::mlir::func::FuncOp"> {
  let summary = "run operations tile by tile, so that intermediates fit in LX";
  let description = [{
    An intermediate that is larger than the LX of all cores together travels to
    device memory and back. Where its producer and its users can be cut along a
    common parallel dimension, they run tile by tile in an `scf.for`. The
    intermediate then never exists as a whole: attention keeps the scores of a
    few heads at a time, an MLP the activations of a few tokens.

    Operations that share large intermediates form a group. The pass follows a
    loop dimension of one of them through the tensors that they hand on. Every
    operation of the group must have it as a dimension that selects whole slices
    of its operands. Updates of tensors in place, scans along the dimension, and
    operations that compute with its index are not cut.

    Several dimensions, or pairs of dimensions, may be possible, each in several
    numbers of equal tiles of whole sticks. The pass considers those for which
    all live intermediates fit and no core idles. It takes the one that saves
    most time under the device's cost model, and none if none saves time: what
    is not cut has to be read again for each tile. If no number of tiles divides
    the extent, the last tile is smaller and is computed after the loop.

    A dimension that is as long as a symbol says is cut into tiles of which the
    smallest size has at least four. The loop runs up to the size, and the last
    tile ends there (`spyre_graph.tile_start`): what it has in common with the
    tile before it is computed twice. So only dimensions outside of the sticks
    are cut so, and nothing that is reduced or updated.

    A view between two operations may flatten dimensions or take them apart. A
    loop over heads and one over heads x width are then cut together, at
    multiples of the width.

    Tiles are `tensor.extract_slice` and `tensor.insert_slice` whose offset is
    the induction variable. After bufferization they are address arithmetic on
    device strides. A value that is used inside and outside the loop is computed
    into a tile-sized buffer and copied out.

    A reduction along the dimension (the K of a matmul, a sum, a maximum)
    accumulates from tile to tile. Sums are kept in fp32 and rounded once at the
    end; an argmax keeps the largest element so far beside its index. Operations
    that need the result come after the loop, which must be the innermost one.
    There is an exception for exp(x - max(x)) of which only sums are needed, as
    in a softmax: it stays in the loop and subtracts the maximum so far, and when
    that grows, the sums are rescaled. Attention over many keys then never has
    all scores of a row at once. Not all targets support such loops.

    A core can address 256 MiB of a tensor. If no division over the cores makes
    the parts of an operation small enough, it is cut alone, into the fewest
    tiles with which one does. It may also write a part of another's result. Where no
    tiles are enough, it becomes several operations: parts of its iterations,
    copies to an order of dimensions that can be cut, gathers from parts of a
    table.

    Operations with equal `spyre_graph.tile_hints` are tiled as the hints say,
    one loop per hint, before any group is chosen. An operation that reduces the
    dimension and cannot accumulate runs on the whole, outside the loops; a
    remark says why. An operation with an empty list stays out of all loops. An
    operation that was tiled carries, as `spyre_graph.tiling`, the hints that
    would tile it like that again.

    Constraints:
    - SG-TILING-C1: the graph is on tensors, all of which have layouts.
    - SG-TILE-HINT-C1: the dimension can be cut into as many tiles as the hint
      says: whole sticks, equal but for the last one, and none empty.
    - SG-TILE-HINT-C2: every operation under the hint can be cut along the
      dimension, once, or does not depend on it. If the target cannot change the
      stick of a part of a tensor, a change of stick can be cut only between
      operations of the loop.
    - SG-TILE-HINT-C3: a loop whose dimension is reduced is the innermost one.
    - SG-TILE-HINT-C4: what lies between the operations of a loop is under the
      same hints or under none.
  }];
  let options = [
    Option<"cores", "cores", "int64_t", "-1",
           "Cores of the card (1 to 32); -1: the device's">,
    Option<"capacity", "capacity", "int64_t", "-1",
           "Bytes of LX per core; -1: the device's">,
    Option<"lxFraction", "lx-fraction", "double", "-1",
           "Share of LX kept for the kernels' own tiles; -1: the device's">,
    Option<"fill", "fill", "double", "0.75",
           "Share of the rest that a group's live tiles may take">,
    Option<"force", "force", "bool", "false",
           "Tile what can be tiled even if it saves no time">,
    Option<"maxSpan", "max-span", "int64_t", "-1",
           "Bytes of a tensor in device memory that a core can address; -1: "
           "the device's">,
  ];
  let statistics = [
    Statistic<"numGroups", "groups", "Groups of operations under tile loops">,
    Statistic<"numTiled", "ops-tiled", "Operations under tile loops">,
    Statistic<"numReductions", "reductions",
              "Reductions that accumulate from tile to tile">,
    Statistic<"numRescaled", "rescaled",
              "Exponentials of tiles whose sums are rescaled">,
    Statistic<"numSavedBytes", "saved-bytes",
              "Device bytes not moved, less those moved more than once">,
  ];
  let dependentDialects = ["::mlir::spyre_graph::SpyreGraphDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def SpyreWorkDivision : Pass<"spyre-work-division", "::mlir::func::FuncOp"> {
  let summary = "divide the loops of every operation over the cores";
  let description = [{
    A kernel runs on all cores at once, each on its own slice of the loop
    space. The choice of dimensions to slice decides how evenly the work is
    spread, how often an operand is read from device memory, and whether a core
    finds in its own LX what it computed in the op before.

    Parallel dimensions are split. A dimension along a stick is split at whole
    sticks, so that no two cores write the same one. One reduction is split too
    if that makes the operation cheaper, taken by itself. Then only that number
    of slices is considered, so that sums are rounded alike wherever the
    operation stands.

    Every combination of splits with a product of at most `cores` gets a price
    from the device's cost model: the compute time of the largest slice or the
    time to move the operands, whichever is longer, and the part of the shorter
    one that a kernel cannot overlap. An operand that its producer leaves on the
    same core in the same slices needs no moving and no waiting. One that it
    leaves in other slices moves over the ring or through device memory,
    whichever is cheaper. A choice therefore depends on those of its neighbours:
    the first sweep goes forward and knows the producers; the next ones go back
    and forth and know the users too. Among combinations within `tolerance` of
    the cheapest, the pass takes the one with more bytes in agreement, then with
    smaller slices, then with outer dimensions split more.

    Where no plan is within 15 % of the best ones at all sizes, and two plans
    are nearer, the function gets `spyre_graph.sizes_apart` (SG-SYMBOL-C5), which
    says where sizes are best cut in two ranges. Whoever imports the graph may
    make a program for each.

    `mode=reference` follows the reference instead (spec/passes.md, "Work
    division"): spans within 256 MiB, its matmul model, its default rule, all
    per operation. Where the reference splits a reduction whose parts cannot be
    combined, the reduction stays whole, with a warning.

    `spyre_graph.work_division_hint` of an operation, an array with the number of
    slices per loop dimension, replaces the automatic choice. So does a division
    that is there already.

    Constraints: SG-DIVISION-C1 to C4 of the attribute.
    - SG-WORK-DIVISION-C1: all tensors of the graph have layouts.
    - SG-DIVISION-HINT-C1: a hint has one number per loop dimension.
    - SG-DIVISION-HINT-C2: the numbers of a hint are positive.
    - SG-DIVISION-HINT-C3: the product of a hint's numbers is at most `cores`.
    - SG-DIVISION-HINT-C4: a hint splits at most one reduction, of an operation
      whose partial results can be combined.
    - SG-DIVISION-HINT-C5: a hint leaves no slice empty. In `mode=reference`, and
      if the target requires it, all slices are equal.
  }];
  let options = [
    Option<"cores", "cores", "int64_t", "-1",
           "Cores of the card (1 to 32); -1: the device's">,
    Option<"mode", "mode", "std::string", "\"default\"",
           "How to choose: default (by price) or reference (as the reference "
           "does)">,
    Option<"reshard", "reshard", "bool", "true",
           "Assume that --spyre-lx-planning moves values over the ring">,
    Option<"tolerance", "tolerance", "double", "1e-2",
           "Relative difference below which two prices count as equal">,
    Option<"sweeps", "sweeps", "unsigned", "3",
           "How often to go over the operations, forward and backward in turn">,
    Option<"maxSpan", "max-span", "int64_t", "-1",
           "Bytes of a tensor in device memory that a core can address; -1: "
           "the device's">,
  ];
  let statistics = [
    Statistic<"numDivided", "ops-divided", "Operations on more than one core">,
    Statistic<"numSingleCore", "ops-single-core", "Operations on one core">,
    Statistic<"numHints", "hints", "Operations divided as a hint says">,
    Statistic<"numAgreeing", "operands-agreeing",
              "Operands read in the slices their producer wrote">,
  ];
  let dependentDialects = ["::mlir::spyre_graph::SpyreGraphDialect"];
}

def SpyreBufferize : Pass<"spyre-bufferize", "::mlir::ModuleOp"> {
  let summary = "turn tensors into buffers and results into out-parameters";
  let description = [{
    Runs upstream's one-shot bufferization across function boundaries. A tensor's
    layout becomes the memory space of its buffer, so that the same device
    operations work on buffers. Results become trailing out-parameters that keep
    the results' attributes. Wherever possible, the op that computes a result
    writes it there directly. A function argument that the graph updates is
    written in place, unless its old value is read afterwards. The copies that
    remain are `spyre_graph.identity`, never `memref.copy`, and get a work
    division like every op.

    Constraints:
    - SG-BUFFERIZE-C1: every tensor has a layout.
    - SG-BUFFERIZE-C2: no function returns a buffer.
  }];
  let options = [
    Option<"cores", "cores", "int64_t", "-1",
           "Cores over which to divide inserted copies (1 to 32); -1: the "
           "device's">,
  ];
  let statistics = [
    Statistic<"numCopies", "copies", "Copies inserted">,
    Statistic<"numCopiedBytes", "copied-bytes",
              "Device bytes written by inserted copies">,
  ];
  let dependentDialects = ["::mlir::spyre_graph::SpyreGraphDialect",
                           "::mlir::bufferization::BufferizationDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::tensor::TensorDialect"];
}

def SpyreLXPlanning : Pass<"spyre-lx-planning", "::mlir::func::FuncOp"> {
  let summary = "keep intermediate buffers in the cores' scratchpads";
  let description = [{
    Each core has an LX scratchpad that keeps its contents for the whole
    sequence. A buffer that every op touches in the same per-core slices can
    live there, at the same 128-byte aligned offset on every core, and never
    travels to device memory.

    A buffer is eligible if each of its users accesses all of it through plain
    loop dimensions, and each core works on the same box of it in all of them.
    It does not matter which operations they are. The result of an operation may
    take over the memory of an operand that dies there, if each element is
    written after it was read, by the same core, through the same map. An
    argument that several operations read in the same slices is copied into LX
    first, and so is a tile that several operations of a loop read. What an
    operation copies from an argument is made by each core that reads it in
    other slices, where that is faster than a move. If users otherwise
    disagree on the slices, a `spyre_graph.reshard` before those that read other
    slices than the writer's moves the parts over the ring. This happens only
    where the cost model says that it is faster than device memory, and the
    target allows it.

    The aim is the least traffic with device memory. `optimal` places all
    buffers if the solver (docs/internals/memory.md) finds a placement.
    Otherwise it places those that save most, never less than the reference's
    heuristics would, and leaves the others to --spyre-memory-planning.

    `mode=reference` follows the reference's rule of eligibility: results of
    the operations that it keeps in LX (an interface method), of at least two
    uses; in place where it works in place; no copies of arguments. Its
    default solver is greedy.

    Constraints:
    - SG-LX-C1: no operation is on tensors.
    - SG-LX-C2: no buffer has a place in LX.
  }];
  let options = [
    Option<"solver", "solver", "std::string", "\"optimal\"",
           "How to place buffers: optimal, or a heuristic of the reference "
           "(greedy, firstfit, bestfit)">,
    Option<"mode", "mode", "std::string", "\"default\"",
           "Which buffers are eligible: default, or reference (its rule)">,
    Option<"inPlace", "in-place", "bool", "true",
           "Let results take over the memory of operands">,
    Option<"cloneInputs", "clone-inputs", "bool", "true",
           "Copy arguments and tiles that are read repeatedly into LX">,
    Option<"reshard", "reshard", "bool", "true",
           "Move buffers over the ring where users disagree on slices, or let "
           "each core copy what it reads">,
    Option<"capacity", "capacity", "int64_t", "-1",
           "Bytes of LX per core; -1: the device's">,
    Option<"lxFraction", "lx-fraction", "double", "-1",
           "Share of LX kept for the kernels' own tiles; -1: the device's">,
    Option<"maxSpan", "max-span", "int64_t", "-1",
           "Bytes of a tensor in device memory that a core can address; -1: "
           "the device's">,
  ];
  let statistics = [
    Statistic<"numPlaced", "placed", "Buffers placed in LX">,
    Statistic<"numInPlace", "in-place",
              "Buffers placed where an operand of their operation was">,
    Statistic<"numClones", "clones", "Arguments and tiles copied into LX">,
    Statistic<"numReshards", "reshards",
              "Moves of a buffer into other slices over the ring">,
    Statistic<"numIneligible", "ineligible",
              "Buffers that users access in different slices">,
    Statistic<"numNotFitting", "not-fitting",
              "Eligible buffers for which there was no room">,
    Statistic<"savedBytes", "saved-bytes",
              "Bytes of device-memory traffic saved">,
  ];
  let dependentDialects = ["::mlir::spyre_graph::SpyreGraphDialect",
                           "::mlir::memref::MemRefDialect"];
}

def SpyreMemoryPlanning
    : Pass<"spyre-memory-planning", "::mlir::func::FuncOp"> {
  let summary = "place the other intermediate buffers in one pool";
  let description = [{
    The runtime allocates one block of device memory per call, the pool. Each
    buffer without a placement gets a 128-byte aligned offset in it. Buffers
    that are not live at the same time share memory, so that the pool is as
    small as the solver (docs/internals/memory.md) can make it. The function's
    `spyre_graph.pool_size` says how large it must be. If it has one already,
    what lies in that pool stays where it is.

    Constraints:
    - SG-MEMORY-C1: no operation is on tensors.
  }];
  let statistics = [
    Statistic<"numPlaced", "placed", "Buffers placed in the pool">,
    Statistic<"poolBytes", "pool-bytes", "Bytes of the pools">,
    Statistic<"unsharedBytes", "unshared-bytes",
              "Bytes the pools would have without reuse">,
  ];
  let dependentDialects = ["::mlir::spyre_graph::SpyreGraphDialect"];
}

/// Beside the constraints below:
/// - SG-PLAN-C15: buffers are used by device operations and their tiles only,
///   and nothing is on tensors.
def SpyreVerifyPlan : Pass<"spyre-verify-plan", "::mlir::func::FuncOp"> {
  let summary = "check a plan, with code that the planners do not share";
  let description = [{
    A wrong plan would give wrong values without any error. So plans are checked
    by code apart from the passes that make them: the two share only the
    dialect's maps, layouts and sizes, and the arithmetic of linear forms.

    Constraints:
    - SG-PLAN-C1: every buffer's layout fits its type.
    - SG-PLAN-C2: every operation has maps, extents and a division that obeys
      SG-DIVISION-C1 to C3, on at most `cores` cores.
    - SG-PLAN-C3: the cores' slices cover the loop space exactly once. No two
      cores write the same stick, except partners in a split reduction, which
      are neighbours.
    - SG-PLAN-C4: no operation accesses an element outside a buffer.
    - SG-PLAN-C5: every allocation has a placement (SG-PLACEMENT-C1 and C2) that
      lies inside LX or the pool.
    - SG-PLAN-C6: buffers whose lifetimes overlap do not overlap in space, unless
      one takes over the other's memory in place: then the operation at which
      they meet reads and writes each element in one iteration.
    - SG-PLAN-C7: every core accesses only the slice of an LX buffer that it
      holds, and all users agree on that slice. In a dimension that is not
      divided they may access different parts.
    - SG-PLAN-C8: no buffer, and no tile of one, is read before it is written.
    - SG-PLAN-C9: a tile is a dense part, inside its bounds and at whole sticks,
      of a buffer in device memory whose layout is relative to its shape.
    - SG-PLAN-C10: what a core touches of an operand in device memory spans at
      most 256 MiB.
    - SG-PLAN-C11: the operands of an elementwise operation with several inputs
      have their sticks along one loop dimension.
    - SG-PLAN-C12: source and destination of a `spyre_graph.reshard` lie in LX,
      in separate memory.
    - SG-PLAN-C13: at each size that the function's symbols admit, slices cover
      the loops once and are not larger than the plan says (C2), no operation
      accesses an element outside what a buffer then has (C4) or holds in LX
      (C7), and none that has not been written (C8). Tiles of loops up to a
      size lie in what is there, and what they write is read in such tiles.
      Parts that begin at offsets follow each other up to the end of what is
      joined of them, which is read after the last one.
    - SG-PLAN-C14: an operation that reads the buffer that it writes reads, in
      each iteration, only the element that this iteration writes, or what no
      iteration writes.
  }];
  let options = [
    Option<"cores", "cores", "int64_t", "-1",
           "Cores of the card (1 to 32); -1: the device's">,
    Option<"capacity", "capacity", "int64_t", "-1",
           "Bytes of LX per core; -1: the device's">,
    Option<"lxFraction", "lx-fraction", "double", "-1",
           "Share of LX kept for the kernels' own tiles; -1: the device's">,
    Option<"partial", "partial", "bool", "false",
           "Check only what has been decided so far; for use between passes">,
    Option<"maxSpan", "max-span", "int64_t", "-1",
           "Bytes of a tensor in device memory that a core can address; -1: "
           "the device's">,
  ];
  let dependentDialects = ["::mlir::spyre_graph::SpyreGraphDialect"];
}

def SpyreNumberOperations
    : Pass<"spyre-number-operations", "::mlir::func::FuncOp"> {
  let summary = "number the operations, so that a plan can refer to them";
  let description = [{
    Decisions about layouts and tiles are made for operations that later passes
    cut, copy and bufferize. `spyre_graph.number` tells, in the plan, from which
    operation one comes. Operations that have a number keep it, so the pass can
    run again for operations that other passes inserted. The first time, the
    function gets `spyre_graph.graph`, a hash of its text that tells it from
    other graphs.
  }];
}

def SpyreDecisionsOut : Pass<"spyre-decisions-out", "::mlir::ModuleOp"> {
  let summary = "write the decisions of a plan to a JSON file";
  let description = [{
    A file of decisions can be read, compared, edited and read back. For each
    function it lists the operations in order (name, source line, loop extents,
    counts of the loops around it, layout of its result, tiling, division), the
    buffers (source line, shape, layout, placement) and the size of the pool. A
    hash of each decision tells --spyre-decisions-in which ones were edited.
    Layouts and tilings are there for operations that --spyre-number-operations
    has numbered. `--spyre-decisions-out=f.json` is short for
    `--spyre-decisions-out="file=f.json"`.
  }];
  let options = [
    Option<"file", "file", "std::string", "\"-\"",
           "File to write; - is standard output">,
  ];
}

def SpyreDecisionsIn : Pass<"spyre-decisions-in", "::mlir::ModuleOp"> {
  let summary = "read the decisions of a plan from a JSON file";
  let description = [{
    Reads a file that --spyre-decisions-out wrote for the same graph and that you
    may have edited. The pass runs before each pass that makes a decision of the
    file, that is, in up to four places. The option `stage` says which:

    - `layouts`, before --spyre-propagate-layouts: each result gets the layout
      of the file;
    - `tilings`, before --spyre-coarse-tiling: the tilings of the file become
      hints, and an operation that it does not tile stays whole;
    - `divisions`, before --spyre-work-division;
    - `plan`, after --spyre-memory-planning: divisions (also of operations that
      later passes inserted), placements and the size of the pool.

    Decisions depend on those before them: tilings on layouts, divisions on
    both, placements on all. If you edit one, those of later kinds are planned
    anew, except the ones that you edited too; these must still belong to
    something in the plan. Run --spyre-verify-plan afterwards: it says whether
    the decisions together are a valid plan.

    Constraints:
    - SG-DECISIONS-C1: the file is JSON of the version that the compiler writes,
      without a key twice in an object.
    - SG-DECISIONS-C2: its functions, operations and buffers are those of the
      module: same graph, names, extents and shapes, in the same order.
    - SG-DECISIONS-C3: every layout, tiling, division, placement and pool size
      is complete and not negative.
    - SG-DECISIONS-C4: an edited decision belongs to an operation or buffer of
      the plan that the edited decisions of earlier kinds make.
    - SG-DECISIONS-C5: at stage `plan` no operation is on tensors; at the others
      operations have numbers (--spyre-number-operations).
  }];
  let options = [
    Option<"file", "file", "std::string", "\"\"", "File to read">,
    Option<"stage", "stage", "std::string", "\"plan\"",
           "Which decisions to read: layouts, tilings, divisions, or plan">,
  ];
  let statistics = [
    Statistic<"numChanged", "changed", "Decisions that the file changes">,
  ];
  let dependentDialects = ["::mlir::spyre_graph::SpyreGraphDialect"];
}

#endif // SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_PASSES_TD
