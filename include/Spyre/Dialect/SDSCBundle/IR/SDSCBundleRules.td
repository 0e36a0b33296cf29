// SPDX-License-Identifier: Apache-2.0
//
// The rules that a bundle obeys, numbered. `spyre-translate
// --validate-superdsc` reports violations by these numbers.

#ifndef SPYRE_DIALECT_SDSCBUNDLE_IR_SDSCBUNDLERULES_TD
#define SPYRE_DIALECT_SDSCBUNDLE_IR_SDSCBUNDLERULES_TD

include "mlir/IR/DialectBase.td"
include "Spyre/Dialect/SDSCBundle/IR/SpyreCodeRules.td"

def SDSCBundle_Dialect : Dialect {
  let name = "sdscbundle";
  let cppNamespace = "::mlir::sdscbundle";
  let summary = "the program of a SuperDSC bundle";
  let description = [{
    A bundle is a folder with one `sdsc*.json` per device operation and one
    `bundle.mlir`: a module with one function that executes them in order
    (spec/superdsc.md, "SuperDSC-Bundle"). Beside this dialect's operations the
    function holds `arith.constant`, `arith.addi`, `affine.apply`, `scf.for` and
    `return`.

    Files:
    - SDSC-FILE-C1: a file is a regular file in the bundle's folder, not
      reached through a link, and not larger than is read.
    - SDSC-FILE-C2: a JSON file is JSON with distinct keys, 64-bit integers and
      bounded nesting.

    Form of a JSON file:
    - SDSC-FORM-C1: there is one top key, `<index>_<opfunc>` (as built) or
      `<opfunc>` (as specified), and one entry in `dscs_`, with the key
      `<opfunc>`.
    - SDSC-FORM-C2: every required key is there, and its value has the right type.
    - SDSC-FORM-C3: there are no other keys.
    - SDSC-FORM-C4: a fact that stands in several places (folds, stages, core
      lists, references) is the same in all of them.

    Operations:
    - SDSC-OP-C1: `opFuncName` is one of the published names or of the listed
      extensions.
    - SDSC-OP-C2: the operation has the inputs, outputs and indices it needs.
    - SDSC-OP-C3: `exUnit` is `pt` for matrix multiplications, else `sfp`.
    - SDSC-OP-C4: the file has each constant that the operation takes once, and
      no others.
    - SDSC-OP-C5: the operation's data format has elements of the size of some
      operand's.

    Dimensions and cores:
    - SDSC-DIM-C1: dimensions have distinct known labels and positive sizes.
    - SDSC-DIM-C2: slices divide the size and their product is the number of
      cores, 1 to 32.
    - SDSC-DIM-C3: cores walk the slices in mixed radix, one core per slice.
    - SDSC-DIM-C4: a mask covers the end of a dimension that is not split, and
      its constant does not change the operation's result.

    Labels and tensors:
    - SDSC-LABEL-C1: labels are distinct and among OUTPUT, KERNEL, INPUT and
      KERNEL_IDX.
    - SDSC-LABEL-C2: a label's dimensions are distinct and hold its sticks.
    - SDSC-TENSOR-C1: a tensor's dimensions are its label's; `scale_` is 1, -1,
      or -2 on a stick dimension.
    - SDSC-TENSOR-C2: word length and stick size are those of the data format.
    - SDSC-TENSOR-C3: data structures, allocations and operands refer to each
      other.
    - SDSC-TENSOR-C4: gaps leave a positive extent, and no size overflows.
    - SDSC-TENSOR-C5: a value accessed indirectly names its index tensor, both
      are in device memory, and what indices select along the sticks is inside
      of no other dimension.

    Addresses:
    - SDSC-ADDRESS-C1: addresses are multiples of 128 inside the seven segments
      or LX, or negative symbols where they are symbolic.
    - SDSC-ADDRESS-C2: cores' addresses differ as their slices do; in LX each
      core holds its slice at one address.
    - SDSC-ADDRESS-C3: a core's part of a stick dimension is whole sticks.
    - SDSC-ADDRESS-C4: a core's part of a tensor spans at most 256 MiB.
    - SDSC-ADDRESS-C5: a core's part of an index tensor is whole sticks or less
      than one.

    Dimensions of many sizes:
    - SDSC-SYMBOL-C1: each has one symbol, a negative id, which its size's name
      stands beside; dimensions share a symbol if, and only if, they share the
      size.
    - SDSC-SYMBOL-C2: the step between sizes divides the largest, which is in
      `N_`, and slices divide the step.
    - SDSC-SYMBOL-C3: it is along no stick, masked nowhere, and as long as in
      all tensors.
    - SDSC-SYMBOL-C4: the operation does the same at every size: it is a matrix
      multiplication, a pointwise operation, a conversion, a copy or a reduction
      without indices, which reduces such a dimension on one core and without
      constants.
    - SDSC-SYMBOL-C5: addresses in device memory are symbols.

    Kinds of operations:
    - SDSC-MATMUL-C1: fp16 sticks lie along the reduction in input 1 and along
      the generated dimension in input 2 and the output, 64 elements each.
    - SDSC-MATMUL-C2: fp8 and int8 sticks are 128 elements of the reduction in
      input 1 and 2 x 64 of reduction and generated dimension in input 2.
    - SDSC-MATMUL-C3: int4 sticks are 16 x 2 x 8 in input 1 and 4 x 64 in input
      2.
    - SDSC-MATMUL-C4: there is exactly one reduced and one generated dimension,
      and there are at most two preserved ones and two without reuse.
    - SDSC-CONV-C1: the dimensions of a conv2d are some of mb, i, j, which input
      and output have, then out, which kernel and output have, ki, kj, which the
      kernel has, and in, which the inputs have. in and out are there, i with
      ki, and j with kj.
    - SDSC-CONV-C2: sticks of a conv2d lie along in in its input, along out in
      kernel and output, 64 elements each.
    - SDSC-CONV-C3: the input of a conv2d reaches as far as its windows: it has
      i + ki - 1 elements along i, and j + kj - 1 along j.
    - SDSC-REDUCE-C1: a stick reduction reduces the stick dimension.
    - SDSC-REDUCE-C2: a nonstick reduction does not reduce a stick dimension.
    - SDSC-POINTWISE-C1: tensors that vary along a stick have the same stick
      dimension.
    - SDSC-POINTWISE-C2: a tensor that is broadcast along the stick has no
      other stick dimension.
    - SDSC-TOPK-C1: neither the reduced dimension nor k is in a stick.
    - SDSC-POOL-C1: no window dimension is in a stick.
    - SDSC-CAST-C1: a conversion to fewer bits has one stick dimension in its
      input, and conversions keep the dimension.
    - SDSC-RESTICKIFY-C1: input and output have one stick dimension each.

    The bundle:
    - SDSC-BUNDLE-C1: `bundle.mlir` is one function of the allowed operations,
      with constant loop bounds, or loops up to sizes. Its parameters are the
      pool, arguments and sizes, in this order, and their names say which:
      `%pool_base_addr`, `%arg_<number>_base_addr` and `%dim_<symbol>_base`.
    - SDSC-BUNDLE-C2: file names are plain names of files in the folder.
    - SDSC-BUNDLE-C3: an execution binds exactly the symbols of its file.
    - SDSC-BUNDLE-C4: a symbol id belongs to one file.
    - SDSC-BUNDLE-C5: every `sdsc*.json` in the folder is executed.
    - SDSC-BUNDLE-C6: if several bundles are one program, `sdscbundle.segments`
      of each function says which of the program's arguments its segments are: at
      most seven distinct numbers, of which the first may be -1 for a pool, and
      which a manifest, if there is one, has too.
    - SDSC-BUNDLE-C7: without a manifest, several bundles are folders `bundle_0`
      to `bundle_<n - 1>`, and none is missing.
    - SDSC-BUNDLE-C8: the symbol of a dimension is bound to the parameter of its
      size, with the same name, step and largest size; bundles of one program
      agree on them, and a manifest, if there is one, has them, too.
    - SDSC-BUNDLE-C9: a loop up to a size runs from 0 to a size itself by a
      constant that divides its granularity; files in it are for one size.
    - SDSC-MANIFEST-C1: `manifest.json` has the form of
      docs/internals/superdsc.md.
    - SDSC-MANIFEST-C2: the manifest's folders, arguments, buffers and files fit
      the bundles: extents their iterations and masks, and what tensors are
      their addresses. Each file that is executed has one entry.
    - SDSC-MANIFEST-C3: what the bundles access lies inside the arguments, the
      buffers and the pool that the manifest describes, so that they can be
      raised.

  }] # kSpyreCodeRules;
  let useDefaultTypePrinterParser = 1;
}

#endif // SPYRE_DIALECT_SDSCBUNDLE_IR_SDSCBUNDLERULES_TD
