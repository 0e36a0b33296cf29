// SPDX-License-Identifier: Apache-2.0
// Operations of arith and math on i8: 19 elements, a vector and a rest.
// What is expected was computed on Python integers.
// RUN: spyre-run --cases %s
// RUN: spyre-run --cases %s --check=none

!t = tensor<19xi8>

func.func @arithmetic(%x: !t, %y: !t) -> (!t, !t, !t, !t, !t, !t, !t, !t, !t, !t, !t, !t, !t, !t, !t, !t) {
  %addi = arith.addi %x, %y : !t
  %subi = arith.subi %x, %y : !t
  %muli = arith.muli %x, %y : !t
  %divsi = arith.divsi %x, %y : !t
  %divui = arith.divui %x, %y : !t
  %floordivsi = arith.floordivsi %x, %y : !t
  %ceildivsi = arith.ceildivsi %x, %y : !t
  %ceildivui = arith.ceildivui %x, %y : !t
  %remsi = arith.remsi %x, %y : !t
  %remui = arith.remui %x, %y : !t
  %minsi = arith.minsi %x, %y : !t
  %maxsi = arith.maxsi %x, %y : !t
  %minui = arith.minui %x, %y : !t
  %maxui = arith.maxui %x, %y : !t
  %absi = math.absi %x : !t
  %add_constant_c = arith.constant dense<3> : !t
  %add_constant = arith.addi %x, %add_constant_c : !t
  return %addi, %subi, %muli, %divsi, %divui, %floordivsi, %ceildivsi, %ceildivui, %remsi, %remui, %minsi,
      %maxsi, %minui, %maxui, %absi, %add_constant : !t, !t, !t, !t, !t, !t, !t, !t, !t, !t, !t, !t, !t, !t,
      !t, !t
}

check.case "results wrap" {
  %x = arith.constant dense<[-16, 117, 80, 115, -128, 127, -1, 86, -118, -115, 62, 25, 121, -11, 53, -127,
      -108, 92, -33]> : !t
  %y = arith.constant dense<[-16, 117, 80, -4, 43, 121, -2, -109, -24, 1, -66, -99, 5, 85, -31, -9, 32, -9,
      1]> : !t
  %addi, %subi, %muli, %divsi, %divui, %floordivsi, %ceildivsi, %ceildivui, %remsi, %remui, %minsi, %maxsi,
      %minui, %maxui, %absi, %add_constant = check.run @arithmetic(%x, %y) : (!t, !t) -> (!t, !t, !t, !t,
      !t, !t, !t, !t, !t, !t, !t, !t, !t, !t, !t, !t)
  check.expect_eq %addi, dense<[-32, -22, -96, 111, -85, -8, -3, -23, 114, -114, -4, -74, 126, 74, 22, 120,
      -76, 83, -32]> : !t
  check.expect_eq %subi, dense<[0, 0, 0, 119, 85, 6, 1, -61, -94, -116, -128, 124, 116, -96, 84, -118, 116,
      101, -34]> : !t
  check.expect_eq %muli, dense<[0, 121, 0, 52, -128, 7, 2, 98, 16, -115, 4, 85, 93, 89, -107, 119, -128,
      -60, -33]> : !t
  check.expect_eq %divsi, dense<[1, 1, 1, -28, -2, 1, 0, 0, 4, -115, 0, 0, 24, 0, -1, 14, -3, -10, -33]> :
      !t
  check.expect_eq %divui, dense<[1, 1, 1, 0, 2, 1, 1, 0, 0, -115, 0, 0, 24, 2, 0, 0, 4, 0, -33]> : !t
  check.expect_eq %floordivsi, dense<[1, 1, 1, -29, -3, 1, 0, -1, 4, -115, -1, -1, 24, -1, -2, 14, -4, -11,
      -33]> : !t
  check.expect_eq %ceildivsi, dense<[1, 1, 1, -28, -2, 2, 1, 0, 5, -115, 0, 0, 25, 0, -1, 15, -3, -10, -33]>
      : !t
  check.expect_eq %ceildivui, dense<[1, 1, 1, 1, 3, 2, 2, 1, 1, -115, 1, 1, 25, 3, 1, 1, 5, 1, -33]> : !t
  check.expect_eq %remsi, dense<[0, 0, 0, 3, -42, 6, -1, 86, -22, 0, 62, 25, 1, -11, 22, -1, -12, 2, 0]> :
      !t
  check.expect_eq %remui, dense<[0, 0, 0, 115, 42, 6, 1, 86, -118, 0, 62, 25, 1, 75, 53, -127, 20, 92, 0]> :
      !t
  check.expect_eq %minsi, dense<[-16, 117, 80, -4, -128, 121, -2, -109, -118, -115, -66, -99, 5, -11, -31,
      -127, -108, -9, -33]> : !t
  check.expect_eq %maxsi, dense<[-16, 117, 80, 115, 43, 127, -1, 86, -24, 1, 62, 25, 121, 85, 53, -9, 32,
      92, 1]> : !t
  check.expect_eq %minui, dense<[-16, 117, 80, 115, 43, 121, -2, 86, -118, 1, 62, 25, 5, 85, 53, -127, 32,
      92, 1]> : !t
  check.expect_eq %maxui, dense<[-16, 117, 80, -4, -128, 127, -1, -109, -24, -115, -66, -99, 121, -11, -31,
      -9, -108, -9, -33]> : !t
  check.expect_eq %absi, dense<[16, 117, 80, 115, -128, 127, 1, 86, 118, 115, 62, 25, 121, 11, 53, 127, 108,
      92, 33]> : !t
  check.expect_eq %add_constant, dense<[-13, 120, 83, 118, -125, -126, 2, 89, -115, -112, 65, 28, 124, -8,
      56, -124, -105, 95, -30]> : !t
}

func.func @bits(%x: !t, %y: !t, %s: !t) -> (!t, !t, !t, !t, !t, !t) {
  %andi = arith.andi %x, %y : !t
  %ori = arith.ori %x, %y : !t
  %xori = arith.xori %x, %y : !t
  %shli = arith.shli %x, %s : !t
  %shrsi = arith.shrsi %x, %s : !t
  %shrui = arith.shrui %x, %s : !t
  return %andi, %ori, %xori, %shli, %shrsi, %shrui : !t, !t, !t, !t, !t, !t
}

check.case "bits and shifts" {
  %x = arith.constant dense<[-16, 117, 80, 115, -128, 127, -1, 86, -118, -115, 62, 25, 121, -11, 53, -127,
      -108, 92, -33]> : !t
  %y = arith.constant dense<[-16, 117, 80, -4, 43, 121, -2, -109, -24, 1, -66, -99, 5, 85, -31, -9, 32, -9,
      1]> : !t
  %s = arith.constant dense<[0, 7, 6, 5, 6, 1, 2, 0, 4, 0, 3, 2, 3, 1, 3, 6, 5, 5, 3]> : !t
  %andi, %ori, %xori, %shli, %shrsi, %shrui = check.run @bits(%x, %y, %s) : (!t, !t, !t) -> (!t, !t, !t, !t,
      !t, !t)
  check.expect_eq %andi, dense<[-16, 117, 80, 112, 0, 121, -2, 18, -120, 1, 62, 25, 1, 85, 33, -127, 0, 84,
      1]> : !t
  check.expect_eq %ori, dense<[-16, 117, 80, -1, -85, 127, -1, -41, -22, -115, -66, -99, 125, -11, -11, -9,
      -76, -1, -33]> : !t
  check.expect_eq %xori, dense<[0, 0, 0, -113, -85, 6, 1, -59, 98, -116, -128, -124, 124, -96, -44, 118,
      -76, -85, -34]> : !t
  check.expect_eq %shli, dense<[-16, -128, 0, 96, 0, -2, -4, 86, -96, -115, -16, 100, -56, -22, -88, 64,
      -128, -128, -8]> : !t
  check.expect_eq %shrsi, dense<[-16, 0, 1, 3, -2, 63, -1, 86, -8, -115, 7, 6, 15, -6, 6, -2, -4, 2, -5]> :
      !t
  check.expect_eq %shrui, dense<[-16, 0, 1, 3, 2, 63, 63, 86, 8, -115, 7, 6, 15, 122, 6, 2, 4, 2, 27]> : !t
}

func.func @comparisons(%x: !t, %y: !t, %s: !t) -> (!t, !t, !t, !t, !t, !t, !t, !t, !t, !t) {
  %eq_c = arith.cmpi eq, %x, %y : !t
  %eq = arith.select %eq_c, %x, %s : tensor<19xi1>, !t
  %ne_c = arith.cmpi ne, %x, %y : !t
  %ne = arith.select %ne_c, %x, %s : tensor<19xi1>, !t
  %slt_c = arith.cmpi slt, %x, %y : !t
  %slt = arith.select %slt_c, %x, %s : tensor<19xi1>, !t
  %sle_c = arith.cmpi sle, %x, %y : !t
  %sle = arith.select %sle_c, %x, %s : tensor<19xi1>, !t
  %sgt_c = arith.cmpi sgt, %x, %y : !t
  %sgt = arith.select %sgt_c, %x, %s : tensor<19xi1>, !t
  %sge_c = arith.cmpi sge, %x, %y : !t
  %sge = arith.select %sge_c, %x, %s : tensor<19xi1>, !t
  %ult_c = arith.cmpi ult, %x, %y : !t
  %ult = arith.select %ult_c, %x, %s : tensor<19xi1>, !t
  %ule_c = arith.cmpi ule, %x, %y : !t
  %ule = arith.select %ule_c, %x, %s : tensor<19xi1>, !t
  %ugt_c = arith.cmpi ugt, %x, %y : !t
  %ugt = arith.select %ugt_c, %x, %s : tensor<19xi1>, !t
  %uge_c = arith.cmpi uge, %x, %y : !t
  %uge = arith.select %uge_c, %x, %s : tensor<19xi1>, !t
  return %eq, %ne, %slt, %sle, %sgt, %sge, %ult, %ule, %ugt, %uge : !t, !t, !t, !t, !t, !t, !t, !t, !t, !t
}

check.case "x where it compares, else s" {
  %x = arith.constant dense<[-16, 117, 80, 115, -128, 127, -1, 86, -118, -115, 62, 25, 121, -11, 53, -127,
      -108, 92, -33]> : !t
  %y = arith.constant dense<[-16, 117, 80, -4, 43, 121, -2, -109, -24, 1, -66, -99, 5, 85, -31, -9, 32, -9,
      1]> : !t
  %s = arith.constant dense<[0, 7, 6, 5, 6, 1, 2, 0, 4, 0, 3, 2, 3, 1, 3, 6, 5, 5, 3]> : !t
  %eq, %ne, %slt, %sle, %sgt, %sge, %ult, %ule, %ugt, %uge = check.run @comparisons(%x, %y, %s) : (!t, !t,
      !t) -> (!t, !t, !t, !t, !t, !t, !t, !t, !t, !t)
  check.expect_eq %eq, dense<[-16, 117, 80, 5, 6, 1, 2, 0, 4, 0, 3, 2, 3, 1, 3, 6, 5, 5, 3]> : !t
  check.expect_eq %ne, dense<[0, 7, 6, 115, -128, 127, -1, 86, -118, -115, 62, 25, 121, -11, 53, -127, -108,
      92, -33]> : !t
  check.expect_eq %slt, dense<[0, 7, 6, 5, -128, 1, 2, 0, -118, -115, 3, 2, 3, -11, 3, -127, -108, 5, -33]>
      : !t
  check.expect_eq %sle, dense<[-16, 117, 80, 5, -128, 1, 2, 0, -118, -115, 3, 2, 3, -11, 3, -127, -108, 5,
      -33]> : !t
  check.expect_eq %sgt, dense<[0, 7, 6, 115, 6, 127, -1, 86, 4, 0, 62, 25, 121, 1, 53, 6, 5, 92, 3]> : !t
  check.expect_eq %sge, dense<[-16, 117, 80, 115, 6, 127, -1, 86, 4, 0, 62, 25, 121, 1, 53, 6, 5, 92, 3]> :
      !t
  check.expect_eq %ult, dense<[0, 7, 6, 115, 6, 1, 2, 86, -118, 0, 62, 25, 3, 1, 53, -127, 5, 92, 3]> : !t
  check.expect_eq %ule, dense<[-16, 117, 80, 115, 6, 1, 2, 86, -118, 0, 62, 25, 3, 1, 53, -127, 5, 92, 3]> :
      !t
  check.expect_eq %ugt, dense<[0, 7, 6, 5, -128, 127, -1, 0, 4, -115, 3, 2, 121, -11, 3, 6, -108, 5, -33]> :
      !t
  check.expect_eq %uge, dense<[-16, 117, 80, 5, -128, 127, -1, 0, 4, -115, 3, 2, 121, -11, 3, 6, -108, 5,
      -33]> : !t
}

func.func @conversions(%x: !t) -> (!t, !t) {
  %extsi_c = arith.extsi %x : !t to tensor<19xi64>
  %extsi_h = arith.constant dense<1> : tensor<19xi64>
  %extsi_e = arith.shrsi %extsi_c, %extsi_h : tensor<19xi64>
  %extsi = arith.trunci %extsi_e : tensor<19xi64> to !t
  %extui_c = arith.extui %x : !t to tensor<19xi64>
  %extui_h = arith.constant dense<1> : tensor<19xi64>
  %extui_e = arith.shrsi %extui_c, %extui_h : tensor<19xi64>
  %extui = arith.trunci %extui_e : tensor<19xi64> to !t
  return %extsi, %extui : !t, !t
}

check.case "wider and back" {
  %x = arith.constant dense<[-16, 117, 80, 115, -128, 127, -1, 86, -118, -115, 62, 25, 121, -11, 53, -127,
      -108, 92, -33]> : !t
  %extsi, %extui = check.run @conversions(%x) : (!t) -> (!t, !t)
  check.expect_eq %extsi, dense<[-8, 58, 40, 57, -64, 63, -1, 43, -59, -58, 31, 12, 60, -6, 26, -64, -54,
      46, -17]> : !t
  check.expect_eq %extui, dense<[120, 58, 40, 57, 64, 63, 127, 43, 69, 70, 31, 12, 60, 122, 26, 64, 74, 46,
      111]> : !t
}
