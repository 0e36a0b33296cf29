// SPDX-License-Identifier: Apache-2.0
#ifndef SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_PASSES_TD
#define SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def SpyreDecompose : Pass<"spyre-decompose", "::mlir::func::FuncOp"> {
  let summary = "turn composite operations into device operations";
  let description = [{
    Softmax, norms and attention arrive as one operation each, so that there is
    one place that decides how they are computed and rounded. What leaves this
    pass rounds at most where the result of a device operation is stored: sums
    and statistics are f32, the exponential is taken of the unrounded
    difference, scale and additive masks belong to the matmul that makes the
    scores. Grouped queries read key and value heads through index maps; keys
    and values are never repeated in memory. Rows that a mask hides entirely
    give zeros, as PyTorch's fused attention does. Operations without users are
    dropped.
  }];
  let dependentDialects = ["::mlir::spyre_graph::SpyreGraphDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::arith::ArithDialect"];
}

def SpyreSetTarget : Pass<"spyre-set-target", "::mlir::ModuleOp"> {
  let summary = "say what the module is planned for";
  let description = [{
    Gives the module the attribute `spyre_graph.target`, which the passes after
    it read: they plan only what this target can express. A module that has
    another target already is an error, as its plan would be for that one.

    Constraints:
    - SG-TARGET-C3: the module has no other target.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"ktir\"",
           "Name of a registered target, such as ktir or superdsc">,
  ];
  let dependentDialects = ["::mlir::spyre_graph::SpyreGraphDialect"];
}

def SpyreLegalizeForTarget
    : Pass<"spyre-legalize-for-target", "::mlir::func::FuncOp"> {
  let summary = "replace what the module's target cannot express";
  let description = [{
    Runs the passes that the target adds (Target::addLegalizationPasses). They
    come after layouts are chosen, because what can be expressed depends on
    them, and before tiles and divisions, which see the operations that result.
    Without a target nothing happens.
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
       ops together those are taken that move the fewest bytes: what ops read
       and write, and what copies do, each copy once for all who need it. Bytes
       of tensors inside the function count as a quarter: most of them stay in
       LX. A result in another layout than its caller expects counts twice. The
       search is exact unless more than 1024 states have to be kept, and then
       no worse than the reference's beam (Spyre/Planning/LayoutAssignment.h);
       a remark says which. Results that have a layout keep it, and ops that
       update a tensor keep the tensor's.
    3. An input whose stick runs along another loop dimension than the op needs
       is copied by `spyre_graph.restickify`; one whose lane is not 0, v or
       v mod (elements per stick) for a loop dimension v by
       `spyre_graph.identity`. Equal copies are made once. A table that is
       indexed along its stick is copied to another stick, because indices
       cannot select lanes; an updated one is copied back.

    A contraction exchanges its factors where that moves less and the target
    allows it. Each copy and each contraction that the matrix
    unit holds up longer than its data counts as the bytes that device memory
    moves meanwhile.

    An operation's `spyre_graph.layout_hint` restricts the choice to ways that
    give its result this layout.

    The pass never changes values: any index map can be executed, the copies
    are there because the device's ops cannot read across sticks.

    Constraints:
    - SG-PROPAGATE-C1: every function argument of tensor type has a layout.
    - SG-PROPAGATE-C2: tensors are made by device operations, `tensor.empty`
      or `bufferization.materialize_in_destination` only.
    - SG-PROPAGATE-C3: an operation can give its result the layout of its hint.
  }];
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

def SpyreResolveHints : Pass<"spyre-resolve-hints", "::mlir::func::FuncOp"> {
  let summary = "turn named dimensions in users' hints into loop dimensions";
  let description = [{
    Users name the dimensions of a function's arguments and ask for tiles and
    work divisions by name. The names are followed through the operations: a
    loop dimension that runs over a named dimension of an operand, or over one
    component of a flattened one, has its name, and hands it to the result.
    Views have been folded into index maps before, so names pass through them.
    Where a loop runs over a flattened dimension, the outermost component can
    be cut: into tiles of the loop that are multiples of the others.
    `spyre_graph.hints` of an operation becomes `spyre_graph.tile_hints` and
    `spyre_graph.work_division_hint`, which the later passes obey or reject; an
    operation that lacks a dimension ignores the hint.

    Constraints:
    - SG-HINT-C1: some operation under a hint has the dimension that it names,
      not only inside of larger steps of a loop.
    - SG-HINT-C2: `spyre_graph.dim_names` gives each dimension names whose sizes
      multiply to its extent, or none.
    - SG-HINT-C3: a hint is `{scope, dim, tiles}`, `{dim, work_div}` or
      `{named_dims}`, its number positive.
    - SG-HINT-C4: slices of a component of a flattened dimension, which a loop
      runs over as a whole, are equal.
  }];
  let statistics = [
    Statistic<"numResolved", "resolved", "Operations whose hints were resolved">,
  ];
  let dependentDialects = ["::mlir::spyre_graph::SpyreGraphDialect"];
}

def SpyreCoarseTiling : Pass<"spyre-coarse-tiling", "::mlir::func::FuncOp"> {
  let summary = "loop over tiles whose intermediates fit in LX";
  let description = [{
    An intermediate that is larger than the LX of all cores together travels to
    device memory and back. Where its producer and its users can be cut along a
    common parallel dimension, they are run tile by tile in an `scf.for`, so
    that the intermediate is never materialised as a whole: attention keeps a
    few heads' scores at a time, an MLP a few tokens' activations.

    Operations that share large intermediates form a group. A loop dimension of
    one of them is followed through the tensors that they hand on; every
    operation of the group must have it as a dimension that selects whole slices
    of its operands. Updates of tensors in place, scans along it, and operations
    that compute with its index are not cut. Of the
    dimensions (or pairs of dimensions) that can be cut, and the numbers of
    equal tiles of whole sticks for which all live intermediates fit and no core
    idles, the one that saves most time under the device's cost model is taken,
    if any saves time: tiles pay with reading again, for each, what is not cut.
    If no number divides the extent into tiles that fit, the last tile is
    smaller: it is computed after the loop over the others.

    A view between two operations may flatten dimensions or take them apart. A
    loop over heads and one over heads x width are then cut together, at
    multiples of the width.

    Tiles are `tensor.extract_slice` and `tensor.insert_slice` whose offset is
    the induction variable: after bufferization, address arithmetic on device
    strides. A value used inside and outside the loop is computed into a
    tile-sized buffer and copied out.

    A reduction along the dimension (the K of a matmul, a sum, a maximum)
    accumulates from tile to tile, sums in fp32, and is rounded once at the end;
    an argmax keeps the largest element so far beside its index. What needs the
    result comes after the loop, which must be the innermost. An exponential of
    x - max(x) along the dimension of which only sums are needed stays in the
    loop: it subtracts the maximum so far, and each time that grows, the sums
    are rescaled. Attention over many keys then never has all scores of a row.
    Not all targets have such loops.

    An operation that no division over the cores makes small enough for each to
    address its parts of all tensors (256 MiB per core and tensor) is cut alone,
    into the fewest tiles with which one does. It may also write a part of
    another's result. Where no tiles are enough, it becomes several operations:
    parts of its iterations, copies to an order of dimensions that can be cut,
    gathers from parts of a table.

    Operations with equal `spyre_graph.tile_hints` are tiled as these say, each
    hint a loop, before any group is chosen. Those that reduce the dimension and
    cannot accumulate run on the whole, outside the loops; a remark says why.
    An operation with an empty list stays out of all loops. What is tiled has
    the hints that would tile it so again as `spyre_graph.tiling`.

    Constraints:
    - SG-TILE-HINT-C1: as many tiles of whole sticks, equal but for the last,
      are filled.
    - SG-TILE-HINT-C2: every operation under the hint can be cut along the
      dimension, once, or does not depend on it. Where the target does not change
      the stick of parts, a change of stick can be cut only between operations of
      the loop.
    - SG-TILE-HINT-C3: a loop whose dimension is reduced is the innermost.
  }];
  let options = [
    Option<"cores", "cores", "int64_t", "::spyre::DeviceSpec::kMaxCores",
           "Cores of the card (1 to 32)">,
    Option<"capacity", "capacity", "int64_t",
           "::spyre::DeviceSpec().lxBytesPerCore",
           "Bytes of LX per core">,
    Option<"lxFraction", "lx-fraction", "double",
           "::spyre::DeviceSpec().lxReservedFraction",
           "Share of LX kept for the kernels' own tiles">,
    Option<"fill", "fill", "double", "0.75",
           "Share of the rest that a group's live tiles may take">,
    Option<"force", "force", "bool", "false",
           "Tile what can be tiled even if it saves no time">,
    Option<"maxSpan", "max-span", "int64_t", "268435456",
           "Bytes of a tensor in device memory that a core can address">,
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
    space. Which dimensions are sliced decides how evenly the work is spread,
    how often an operand is read from device memory, and whether a core finds
    in its own LX what it computed in the op before.

    Parallel dimensions are split, at multiples of a stick where the dimension
    lies along one, so that no two cores write the same stick, and one reduction
    if that makes the operation alone cheaper: then only that number of
    slices of it is considered, so that sums are rounded alike wherever the
    operation stands. Every combination of splits with a product of at most `cores` is priced with the
    terms of the device's cost model: the compute time of the largest slice or
    the time to move the operands, whichever is longer, and of the other what
    kernels, which work on a slice in pieces, cannot overlap. An operand that its
    producer leaves on the same core in the same slices needs no moving and no
    waiting, one that it leaves in other slices moves over the ring or through
    device memory, whichever is cheaper, so a choice depends on those of its neighbours: the first sweep
    goes forward and knows the producers, the next ones go back and forth and
    know the users too. Among combinations within `tolerance` of the cheapest,
    the one with more bytes in agreement, then with the smaller slices, then
    with outer dimensions split more, is taken.

    `mode=reference` follows the reference instead (spec/passes.md, "Work
    division"): spans within 256 MiB, its matmul model, its default rule, all
    per operation. A reduction whose parts cannot be combined stays whole where
    the reference splits it, with a warning.

    The attribute `spyre_graph.work_division_hint` of an operation, an array of
    the number of slices per loop dimension, replaces the automatic choice, as
    does a division that is there already.

    Constraints: SG-DIVISION-C1 to C4 of the attribute.
    - SG-DIVISION-HINT-C1: a hint has one number per loop dimension,
    - SG-DIVISION-HINT-C2: all positive,
    - SG-DIVISION-HINT-C3: whose product is at most `cores`;
    - SG-DIVISION-HINT-C4: at most one reduction is split, of an operation
      whose partial results can be combined;
    - SG-DIVISION-HINT-C5: no slice is empty; in mode=reference, or if the target
      has no others, all are equal.
  }];
  let options = [
    Option<"cores", "cores", "int64_t", "::spyre::DeviceSpec::kMaxCores",
           "Cores of the card (1 to 32)">,
    Option<"mode", "mode", "std::string", "\"default\"",
           "Rule of decision: default or reference">,
    Option<"reshard", "reshard", "bool", "true",
           "Count on --spyre-lx-planning to move values over the ring">,
    Option<"tolerance", "tolerance", "double", "1e-6",
           "Relative cost difference that counts as equal">,
    Option<"sweeps", "sweeps", "unsigned", "3",
           "Passes over the operations, forward and backward in turn">,
    Option<"maxSpan", "max-span", "int64_t", "268435456",
           "Bytes of a tensor in device memory that a core can address">,
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
    Runs upstream's one-shot bufferization over function boundaries. A tensor's
    layout becomes the memory space of its buffer, so that the same device
    operations live on buffers. Results become trailing out-parameters that
    keep the results' attributes, and are written directly by the op that
    computes them wherever nothing else forbids it. A function argument that
    the graph updates is written in place, unless its old value is read
    afterwards. The copies that remain are `spyre_graph.identity`, never
    `memref.copy`, and get a work division like every op.

    Constraints:
    - SG-BUFFERIZE-C1: every tensor has a layout.
  }];
  let options = [
    Option<"cores", "cores", "int64_t", "::spyre::DeviceSpec::kMaxCores",
           "Cores over which inserted copies are divided">,
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
    Each core has an LX scratchpad that holds its contents for the whole
    sequence. A buffer that every op touches in the same per-core slices can
    live there and never travels to device memory, at the same 128-byte aligned
    offset on every core. A buffer is eligible if each of its users accesses
    all of it through plain loop dimensions, and the box each core works on is
    the same in all of them; which operations they are does not matter. The
    result of an operation may take over the memory of an operand that dies
    there, if each element is written after it was read, by the same core,
    through the same map. An argument that several operations read in the same
    slices is copied into LX first. If users disagree on the slices, a
    `spyre_graph.reshard` before those that read others than the writer's moves
    the parts over the ring, where the cost model says that this is faster than
    device memory, and the target allows it.

    The aim is the least traffic with device memory. `optimal` places all
    buffers if the solver (docs/internals/memory.md) finds a placement, else
    those that save most, never less than the reference's heuristics would; the
    others are left to --spyre-memory-planning.

    `mode=reference` follows the reference's rule of eligibility: results of
    the operations that it keeps in LX (an interface method), of at least two
    uses; in place where it works in place; no copies of arguments. Its
    default solver is greedy.
  }];
  let options = [
    Option<"solver", "solver", "std::string", "\"optimal\"",
           "Placement: greedy, firstfit, bestfit (the reference's) or optimal">,
    Option<"mode", "mode", "std::string", "\"default\"",
           "Which buffers are eligible: default or reference">,
    Option<"inPlace", "in-place", "bool", "true",
           "Let results take over the memory of operands">,
    Option<"cloneInputs", "clone-inputs", "bool", "true",
           "Copy arguments that are read repeatedly into LX">,
    Option<"reshard", "reshard", "bool", "true",
           "Move buffers over the ring where users disagree on slices">,
    Option<"capacity", "capacity", "int64_t",
           "::spyre::DeviceSpec().lxBytesPerCore",
           "Bytes of LX per core">,
    Option<"lxFraction", "lx-fraction", "double",
           "::spyre::DeviceSpec().lxReservedFraction",
           "Share of LX kept for the kernels' own tiles">,
  ];
  let statistics = [
    Statistic<"numPlaced", "placed", "Buffers placed in LX">,
    Statistic<"numInPlace", "in-place",
              "Buffers placed where an operand of their operation was">,
    Statistic<"numClones", "clones", "Arguments copied into LX">,
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
  let summary = "give intermediate buffers offsets in one pool";
  let description = [{
    The runtime allocates one block of device memory per call. Buffers without
    a placement get a 128-byte aligned offset in it, so that those that are not
    live together share memory and the block is as small as the solver
    (docs/internals/memory.md) can make it; the function's
    `spyre_graph.pool_size` says how large it must be.
  }];
  let statistics = [
    Statistic<"numPlaced", "placed", "Buffers placed in the pool">,
    Statistic<"poolBytes", "pool-bytes", "Bytes of the pools">,
    Statistic<"unsharedBytes", "unshared-bytes",
              "Bytes the pools would have without reuse">,
  ];
  let dependentDialects = ["::mlir::spyre_graph::SpyreGraphDialect"];
}

def SpyreVerifyPlan : Pass<"spyre-verify-plan", "::mlir::func::FuncOp"> {
  let summary = "check a planned function independently of the planners";
  let description = [{
    A wrong plan gives wrong values without any error, so plans are checked by
    code that shares nothing with the passes that make them.

    Constraints:
    - SG-PLAN-C1: every buffer's layout fits its type.
    - SG-PLAN-C2: every operation has maps, extents and a division that obeys
      SG-DIVISION-C1 to C3, on at most `cores` cores.
    - SG-PLAN-C3: the cores' slices cover the loop space exactly once, and no
      two cores write the same stick, but for partners in a split reduction,
      which are neighbours.
    - SG-PLAN-C4: no operation accesses an element outside a buffer.
    - SG-PLAN-C5: every allocation has a placement, aligned to 128 bytes, that
      lies inside LX or the pool.
    - SG-PLAN-C6: buffers whose lifetimes overlap do not overlap in space, unless
      one takes over the other's memory in place: the operation at which they
      meet reads and writes each element in one iteration.
    - SG-PLAN-C7: every core accesses only the slice of an LX buffer that it
      holds, and all users agree on that slice; of a dimension that is not
      divided, they may access other parts.
    - SG-PLAN-C8: no buffer, and no tile of one, is read before it is written.
    - SG-PLAN-C9: a tile is a dense part, inside its bounds and at whole sticks,
      of a buffer in device memory whose layout is relative to its shape.
    - SG-PLAN-C10: what a core touches of an operand in device memory spans at
      most 256 MiB.
    - SG-PLAN-C11: the operands of an elementwise operation with several inputs
      have their sticks along one loop dimension.
    - SG-PLAN-C12: what moves between cores over the ring lies in LX before and
      after, in memory of its own.
  }];
  let options = [
    Option<"cores", "cores", "int64_t", "::spyre::DeviceSpec::kMaxCores",
           "Cores of the card">,
    Option<"capacity", "capacity", "int64_t",
           "::spyre::DeviceSpec().lxBytesPerCore",
           "Bytes of LX per core">,
    Option<"lxFraction", "lx-fraction", "double",
           "::spyre::DeviceSpec().lxReservedFraction",
           "Share of LX kept for the kernels' own tiles">,
    Option<"partial", "partial", "bool", "false",
           "Between passes: check what has been decided so far">,
    Option<"maxSpan", "max-span", "int64_t", "268435456",
           "Bytes of a tensor in device memory that a core can address">,
  ];
  let dependentDialects = ["::mlir::spyre_graph::SpyreGraphDialect"];
}

def SpyreNumberOperations
    : Pass<"spyre-number-operations", "::mlir::func::FuncOp"> {
  let summary = "give every operation a number that passes leave alone";
  let description = [{
    Decisions about layouts and tiles are made for operations that later passes
    cut, copy and bufferize. `spyre_graph.number` tells, in the plan, which one
    it was. Operations that have a number keep it, so that the pass can run
    again for what other passes inserted. The first time, the function gets
    `spyre_graph.graph`, a hash of its text that tells it from other graphs.
  }];
}

def SpyreDecisionsOut : Pass<"spyre-decisions-out", "::mlir::ModuleOp"> {
  let summary = "write the decisions of a plan to a JSON file";
  let description = [{
    Decisions are worth reading, comparing and trying others. The file has per
    function its operations in order (name, source line, loop extents, counts
    of the loops around it, layout of its result, tiling, division), its buffers
    (source line, shape, layout, placement) and the size of its pool; and for
    each decision a hash, by which --spyre-decisions-in sees which were edited.
    Layouts and tilings are those of operations that --spyre-number-operations
    gave a number. `--spyre-decisions-out=f.json` is short for
    `--spyre-decisions-out="file=f.json"`.
  }];
  let options = [
    Option<"file", "file", "std::string", "\"-\"",
           "File to write; -: standard output">,
  ];
}

def SpyreDecisionsIn : Pass<"spyre-decisions-in", "::mlir::ModuleOp"> {
  let summary = "take the decisions of a plan from a JSON file";
  let description = [{
    Reads what --spyre-decisions-out wrote, perhaps edited, for the same graph.
    Decisions are taken where they are made, so the pass runs in up to four
    places, each its `stage`:

    - `layouts`, before --spyre-propagate-layouts: each result gets the layout
      of the file;
    - `tilings`, before --spyre-coarse-tiling: the tilings of the file become
      hints, and what it does not tile stays whole;
    - `divisions`, before --spyre-work-division;
    - `plan`, after --spyre-memory-planning: divisions (of what later passes
      inserted, too), placements and the size of the pool.

    Decisions depend on those before them: a layout on none, tilings on
    layouts, divisions on both, placements on all. If some were edited, what is
    in the file of later kinds is planned anew, unless it was edited too; then
    it must still belong to something in the plan. Whether all together are a
    plan, --spyre-verify-plan must say afterwards.

    Constraints:
    - SG-DECISIONS-C1: the file is JSON of this version.
    - SG-DECISIONS-C2: its functions, operations and buffers are those of the
      module: same graph, names, extents and shapes, in the same order.
    - SG-DECISIONS-C3: every layout, tiling, division, placement and pool size
      is complete and not negative.
    - SG-DECISIONS-C4: what was edited belongs to an operation or buffer of the
      plan that the edited decisions of earlier kinds make.
  }];
  let options = [
    Option<"file", "file", "std::string", "\"\"", "File to read">,
    Option<"stage", "stage", "std::string", "\"plan\"",
           "What to take: layouts, tilings, divisions, or plan">,
  ];
  let statistics = [
    Statistic<"numChanged", "changed", "Decisions that the file changes">,
  ];
  let dependentDialects = ["::mlir::spyre_graph::SpyreGraphDialect"];
}

#endif // SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_PASSES_TD
