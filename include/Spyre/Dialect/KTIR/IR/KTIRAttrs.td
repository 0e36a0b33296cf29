// SPDX-License-Identifier: Apache-2.0

#ifndef SPYRE_DIALECT_KTIR_IR_KTIRATTRS_TD
#define SPYRE_DIALECT_KTIR_IR_KTIRATTRS_TD

include "Spyre/Dialect/KTIR/IR/KTIRDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def KTDP_MemorySpaceAttrInterface : AttrInterface<"KtdpMemorySpaceAttr"> {
  let cppNamespace = "::mlir::ktdp";
  let description = [{
    Marks an attribute that can be a view's `memory_space`. No methods: a target
    brings its own attribute.
  }];
}

// Values are the front end's (spec/ktir.md, 2.1).
def KTDP_MemorySpaceKind : I32EnumAttr<"MemorySpaceKind", "Memory space", [
    I32EnumAttrCase<"Unspecified", 0, "unspecified">,
    I32EnumAttrCase<"LX", 1, "LX">,
    I32EnumAttrCase<"HBM", 2, "HBM">,
    I32EnumAttrCase<"L0", 3, "L0">
  ]> {
  let cppNamespace = "::mlir::ktdp";
  let genSpecializedAttr = 0;
}

def KTDP_RuntimeArgExtractKind
    : I32EnumAttr<"RuntimeArgExtractKind", "What to extract", [
        I32EnumAttrCase<"value", 0>, I32EnumAttrCase<"granularity", 1>,
        I32EnumAttrCase<"upperbound", 2>
      ]> {
  let cppNamespace = "::mlir::ktdp";
}

def KTDP_MemorySpaceAttr : AttrDef<KTDP_Dialect, "MemorySpace",
    [DeclareAttrInterfaceMethods<KTDP_MemorySpaceAttrInterface>]> {
  let mnemonic = "memory_space";
  let summary = "The memory that a view lies in";
  let description = [{
    `#ktdp.memory_space<global>` is device memory, shared by all cores;
    `#ktdp.memory_space<ct_local>` is a core's scratchpad: the executing core's
    own without `ct_id`, else the one of that core.

    The front end's older spelling
    `#ktdp.spyre_memory_space<HBM|LX|L0|unspecified>` is accepted everywhere;
    `HBM` and `LX` print in the spelling above, `L0` and `unspecified`, which
    that lacks, in the front end's.

    ```mlir
    #ktdp.memory_space<global>
    #ktdp.memory_space<ct_local, ct_id = 3>
    #ktdp.spyre_memory_space<L0, core = 3>
    ```

    Constraints:

    - `KTDP-MEMORY_SPACE-C1`: the core is not negative (-1: none).
    - `KTDP-MEMORY_SPACE-C2`: only `ct_local` (`LX`) and `L0` name a core.
  }];
  let parameters = (ins "MemorySpaceKind":$kind,
                        DefaultValuedParameter<"int64_t", "-1">:$core);
  let builders = [
    AttrBuilder<(ins "MemorySpaceKind":$kind), [{
      return $_get($_ctxt, kind, /*core=*/int64_t(-1));
    }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Device memory, seen by all cores.
    static MemorySpaceAttr getGlobal(::mlir::MLIRContext *context);
    /// A core's scratchpad; the executing core's own if `core` is -1.
    static MemorySpaceAttr getCtLocal(::mlir::MLIRContext *context,
                                      int64_t core = -1);
    bool isGlobal() const { return getKind() == MemorySpaceKind::HBM; }
    bool isCtLocal() const { return getKind() == MemorySpaceKind::LX; }
    bool hasCore() const { return getCore() >= 0; }
    /// The mnemonic it prints with.
    ::llvm::StringRef getSpelling() const;

    static constexpr ::llvm::StringLiteral kFrontEndMnemonic =
        "spyre_memory_space";
    static ::mlir::Attribute parseFrontEndSpelling(::mlir::AsmParser &parser);
  }];
}

def KTDP_LayoutAttr : AttrDef<KTDP_Dialect, "Layout"> {
  let mnemonic = "layout";
  let summary = "How a host array is laid out in device memory";
  let description = [{
    The layout of an array argument: `device_size` and `stride_map` as in
    spec/layouts.md ("Layouts and their propagation"; outermost first, the last
    entry is the position within a 128-byte stick, `stride_map` in host
    elements, -1 for a synthetic dimension), the device format, the host dtype,
    and the shape and strides (in elements) of the host array.

    ```mlir
    #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1],
                 format = SEN169_FP16, host_dtype = float16,
                 shape = [100, 100], strides = [100, 1]>
    ```

    `arrangement = DL16_TO_FP32 | QFP8CH | EXX2` says that elements within a
    stick are not in `STANDARD` order.

    Constraints:

    - `KTDP-LAYOUT-C1`: `device_size` and `stride_map` have equal, non-zero
      length.
    - `KTDP-LAYOUT-C2`: `shape` and `strides` have equal length.
    - `KTDP-LAYOUT-C3`: no size is negative (zero is an empty array), and the
      element counts fit 63 bits.
    - `KTDP-LAYOUT-C4`: format, host dtype and arrangement are known names.
    - `KTDP-LAYOUT-C5`: no `stride_map` entry is below -1.
    - `KTDP-LAYOUT-C6`: an array of `shape` and `strides` can be moved to and
      from the layout (spec/layouts.md, "DCI"): each device dimension is a
      division and modulus of one dimension of the array, together they hold
      every element, and the last one is a stick.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$deviceSize,
    ArrayRefParameter<"int64_t">:$strideMap,
    StringRefParameter<>:$format,
    StringRefParameter<>:$hostDtype,
    ArrayRefParameter<"int64_t">:$shape,
    ArrayRefParameter<"int64_t">:$strides,
    StringRefParameter<>:$arrangement);
  let builders = [
    AttrBuilder<(ins "::llvm::ArrayRef<int64_t>":$deviceSize,
                     "::llvm::ArrayRef<int64_t>":$strideMap,
                     "::llvm::StringRef":$format,
                     "::llvm::StringRef":$hostDtype,
                     "::llvm::ArrayRef<int64_t>":$shape,
                     "::llvm::ArrayRef<int64_t>":$strides), [{
      return $_get($_ctxt, deviceSize, strideMap, format, hostDtype, shape,
                   strides, ::llvm::StringRef("STANDARD"));
    }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // SPYRE_DIALECT_KTIR_IR_KTIRATTRS_TD
