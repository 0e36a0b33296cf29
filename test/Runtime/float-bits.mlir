// SPDX-License-Identifier: Apache-2.0
// The bits of an f16 are its code in the card's format, or IEEE half's.
// RUN: spyre-run --cases %s

func.func @bits(%x: tensor<19xf16>) -> (tensor<19xi16>, tensor<19xi1>) {
  %r = arith.bitcast %x : tensor<19xf16> to tensor<19xi16>
  %b = arith.bitcast %r : tensor<19xi16> to tensor<19xf16>
  %same = arith.cmpf oeq, %b, %x : tensor<19xf16>
  return %r, %same : tensor<19xi16>, tensor<19xi1>
}

check.case "arith.bitcast of f16" {
  %x = arith.constant dense<[1.0, -2.5, 0.0999755859375, 3.14453125, -6.002187728881836e-05, 65504.0, 1.0009765625,
      -0.333251953125, 7.0, 1024.0, -0.0010004043579101562, 0.5, 2.75, -9.125, 100.0625,
      0.006999969482421875, -33.3125, 0.0005002021789550781, 1.5]> : tensor<19xf16>
  %dl16, %same_dl16 = check.run @bits(%x) numerics(dl16) : (tensor<19xf16>) -> (tensor<19xi16>, tensor<19xi1>)
  // Sign, exponent + 31 in 6 bits, 9 bits of fraction; half is rounded away from zero.
  check.expect_eq %dl16, dense<[15872, -16256, 14131, 16677, -24081, 24064, 15873, -17749, 17280, 20992, -22003, 15360, 16576,
      -15288, 19233, 12182, -14315, 10253, 16128]> : tensor<19xi16>
  check.expect_eq %same_dl16, dense<true> : tensor<19xi1>
  %ieee, %same_ieee = check.run @bits(%x) numerics(ieee) : (tensor<19xf16>) -> (tensor<19xi16>, tensor<19xi1>)
  check.expect_eq %ieee, dense<[15360, -16128, 11878, 16970, -31761, 31743, 15361, -19115, 18176, 25600, -27623, 14336, 16768,
      -14192, 22081, 7979, -12246, 4121, 15872]> : tensor<19xi16>
  check.expect_eq %same_ieee, dense<true> : tensor<19xi1>
}
