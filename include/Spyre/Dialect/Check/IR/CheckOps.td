// SPDX-License-Identifier: Apache-2.0
//
// The `check` dialect: inputs of programs, and what they must compute.

#ifndef SPYRE_DIALECT_CHECK_IR_CHECKOPS_TD
#define SPYRE_DIALECT_CHECK_IR_CHECKOPS_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Check_Dialect : Dialect {
  let name = "check";
  let cppNamespace = "::mlir::check";
  let summary = "what programs must compute";
  let description = [{
    Tests of the runtime: a file holds functions of KTIR, and cases that give
    them inputs and say what must come out. `spyre-run --cases FILE` runs the
    cases. It prints nothing if all of them hold; else it prints an error at
    each expectation that does not, and exits with 1.

    ```mlir
    func.func @scale(%x: tensor<3xf32>, %by: f32) -> tensor<3xf32> {
      %s = tensor.splat %by : tensor<3xf32>
      %r = arith.mulf %x, %s : tensor<3xf32>
      return %r : tensor<3xf32>
    }

    check.case "a product with a scalar" {
      %x = arith.constant dense<[1.0, -2.0, 0.5]> : tensor<3xf32>
      %by = arith.constant 3.0 : f32
      %r = check.run @scale(%x, %by) : (tensor<3xf32>, f32) -> tensor<3xf32>
      check.expect_eq %r, dense<[3.0, -6.0, 1.5]> : tensor<3xf32>
    }
    ```

    Only `spyre-run` and `spyre-opt` know this dialect; the compiler does not.
  }];
}

class Check_Op<string mnemonic, list<Trait> traits = []>
    : Op<Check_Dialect, mnemonic, traits>;

def Check_Float : AnyTypeOf<[F16, BF16, F32, F8E4M3FN, F8E5M2]>;
/// What lies in memory: each element type that KTIR stores.
def Check_Array : StaticShapeTensorOf<
    [F16, BF16, F32, F8E4M3FN, F8E5M2, I1, I8, I16, I32, I64, Index]>;
def Check_FloatArray
    : StaticShapeTensorOf<[F16, BF16, F32, F8E4M3FN, F8E5M2]>;
def Check_Scalar : AnyTypeOf<[F32, I1, I8, I16, I32, I64, Index]>;

def Check_Numerics : I32EnumAttr<"Numerics", "what f16 is", [
    I32EnumAttrCase<"dl16", 0>, I32EnumAttrCase<"ieee", 1>]> {
  let cppNamespace = "::mlir::check";
}

def Check_CaseOp : Check_Op<"case",
    [IsolatedFromAbove, NoTerminator, SingleBlock, HasParent<"::mlir::ModuleOp">]> {
  let summary = "inputs, runs and expectations";
  let description = [{
    ```mlir
    check.case "the sum of nothing" {
      %x = arith.constant dense<> : tensor<0xf32>
      %r = check.run @sum(%x) : (tensor<0xf32>) -> tensor<f32>
      check.expect_eq %r, dense<0.0> : tensor<f32>
    }
    ```

    The name says what holds. Errors repeat it.

    Constraints:
    - CHECK-CASE-C1: there is an expectation in the body.
    - CHECK-CASE-C2: beside operations of this dialect the body holds
      `arith.constant` only.
  }];
  let arguments = (ins StrAttr:$name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$name $body attr-dict";
  let hasRegionVerifier = 1;
}

def Check_GenerateOp : Check_Op<"generate", [Pure]> {
  let summary = "a tensor whose elements follow from their indices";
  let description = [{
    ```mlir
    // [[0, 1, 2], [10, 11, 12]]
    %x = check.generate affine_map<(i, j) -> (i * 10 + j)> : tensor<2x3xf32>
    ```

    The integers are converted to the element type, rounded to nearest even;
    integers wrap.

    Constraints:
    - CHECK-GENERATE-C1: the map takes an index per dimension of the tensor, and
      no symbols; it has one result.
  }];
  let arguments = (ins AffineMapAttr:$map);
  let results = (outs Check_Array:$result);
  let assemblyFormat = "$map attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Check_RunOp : Check_Op<"run",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "run a function of the module";
  let description = [{
    A function with a tensor among its parameters, or with results, is a
    computation: operands and results are the function's, and a kernel on one
    core is made that loads the operands from memory, computes and stores the
    results.

    ```mlir
    %r = check.run @add(%x, %y) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    ```

    Any other function is a program. Each tensor among the operands is an array
    in memory, whose address the function gets; the results are these arrays
    after the run. Pools are allocated and have no operand.

    ```mlir
    // func.func @transpose(%x: index, %y: index)
    %x1, %y1 = check.run @transpose(%x, %y)
        : (tensor<2x3xf16>, tensor<3x2xf16>) -> (tensor<2x3xf16>, tensor<3x2xf16>)
    ```

    `numerics(ieee)` runs with IEEE's half as f16, `numerics(dl16)` with the
    card's format; without it the command line decides. Tensors of f16 are IEEE
    halves here in any case, as on the host.

    Constraints:
    - CHECK-RUN-C1: the callee is a function of the module, with a body.
    - CHECK-RUN-C2: there is an operand for each parameter but pools: of its type
      for a computation; for a program a tensor or a value where the parameter is
      an index, else a value of the parameter's type (the type inside of a
      `!ktdp.runtime_arg`).
    - CHECK-RUN-C3: the results have the types of a computation's results, or of
      the tensors that a program is given.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee,
                       Variadic<AnyTypeOf<[Check_Array, Check_Scalar]>>:$inputs,
                       OptionalAttr<Check_Numerics>:$numerics);
  let results = (outs Variadic<Check_Array>:$outputs);
  let assemblyFormat = [{
    $callee `(` $inputs `)` (`numerics` `(` $numerics^ `)`)? attr-dict `:`
    functional-type($inputs, $outputs)
  }];
}

class Check_Expect<string mnemonic, Type array> : Check_Op<mnemonic> {
  dag common = (ins array:$actual, Optional<array>:$computed,
                    OptionalAttr<ElementsAttr>:$constant);
  let assemblyFormat = [{
    $actual `,`
    custom<Expected>($computed, $constant, type($actual), type($computed))
    attr-dict
  }];
  let hasVerifier = 1;
}

def Check_ExpectEqOp : Check_Expect<"expect_eq", Check_Array> {
  let summary = "two tensors are equal";
  let description = [{
    ```mlir
    check.expect_eq %r, dense<[1.0, 0x7FC00000, -0.0]> : tensor<3xf32>
    check.expect_eq %r, %expected : tensor<3xf32>
    ```

    Elements are equal if their bits are, or if both are NaN: zeros of different
    signs are not equal.

    Constraints:
    - CHECK-EXPECT_EQ-C1: the expected tensor has the result's type.
  }];
  let arguments = common;
}

def Check_ExpectCloseOp : Check_Expect<"expect_close", Check_FloatArray> {
  let summary = "two tensors of floats are close";
  let description = [{
    ```mlir
    check.expect_close %r, dense<[0.1, 2.5]> : tensor<2xf32> {max_ulp = 2 : i64}
    check.expect_close %r, dense<[0.1, 2.5]> : tensor<2xf32> {atol = 1.0e-6 : f64}
    ```

    Two finite elements are close if there are at most `max_ulp` steps from one
    to the other through the values of their type, or if they differ by at most
    `atol`. Infinities are close to themselves, a NaN to any NaN. A step of f16
    is IEEE half's: one of the card's format is two of them.

    Constraints:
    - CHECK-EXPECT_CLOSE-C1: the expected tensor has the result's type.
    - CHECK-EXPECT_CLOSE-C2: there is `max_ulp` or `atol`, and none is negative.
  }];
  let arguments = !con(common, (ins OptionalAttr<I64Attr>:$max_ulp,
                                    OptionalAttr<F64Attr>:$atol));
}

def Check_ExpectErrorOp : Check_Op<"expect_error",
    [NoTerminator, SingleBlock]> {
  let summary = "a run is refused or fails";
  let description = [{
    ```mlir
    check.expect_error "integer division by zero" {
      check.run @divide(%x, %zero) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
    }
    ```

    The error contains the text. It may be the loader's or the run's.

    Constraints:
    - CHECK-EXPECT_ERROR-C1: the text is not empty.
    - CHECK-EXPECT_ERROR-C2: the body holds one `check.run` and nothing else.
  }];
  let arguments = (ins StrAttr:$text);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$text $body attr-dict";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::check::RunOp getRun();
  }];
}

#endif // SPYRE_DIALECT_CHECK_IR_CHECKOPS_TD
