// SPDX-License-Identifier: Apache-2.0
// Operations of arith and math on i16: 19 elements, a vector and a rest.
// What is expected was computed on Python integers.
// RUN: spyre-run --cases %s
// RUN: spyre-run --cases %s --check=none

!t = tensor<19xi16>

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
  %x = arith.constant dense<[30064, 29648, -2083, 22140, -32768, 32767, -1, -32331, 23572, -7329, -20128,
      -17600, 31147, -27681, 2664, -25282, 21941, -2719, -2144]> : !t
  %y = arith.constant dense<[30064, 29648, -2083, 7, -28519, -5832, -5, 4804, -17681, -3, 14303, -29368, -8,
      4075, 16096, 3, -25066, -15416, -8]> : !t
  %addi, %subi, %muli, %divsi, %divui, %floordivsi, %ceildivsi, %ceildivui, %remsi, %remui, %minsi, %maxsi,
      %minui, %maxui, %absi, %add_constant = check.run @arithmetic(%x, %y) : (!t, !t) -> (!t, !t, !t, !t,
      !t, !t, !t, !t, !t, !t, !t, !t, !t, !t, !t, !t)
  check.expect_eq %addi, dense<[-5408, -6240, -4166, 22147, 4249, 26935, -6, -27527, 5891, -7332, -5825,
      18568, 31139, -23606, 18760, -25279, -3125, -18135, -2152]> : !t
  check.expect_eq %subi, dense<[0, 0, 0, 22133, -4249, -26937, 4, 28401, -24283, -7326, 31105, 11768, 31155,
      -31756, -13432, -25285, -18529, 12697, -2136]> : !t
  check.expect_eq %muli, dense<[-28416, -30464, 13513, 23908, -32768, 5832, 5, 2196, 32428, 21987, 8864,
      -5632, 12968, -12619, 19200, -10310, 5006, -26936, 17152]> : !t
  check.expect_eq %divsi, dense<[1, 1, 1, 3162, 1, -5, 0, -6, -1, 2443, -1, 0, -3893, -6, 0, -8427, 0, 0,
      268]> : !t
  check.expect_eq %divui, dense<[1, 1, 1, 3162, 0, 0, 1, 6, 0, 0, 3, 1, 0, 9, 0, 13418, 0, 1, 0]> : !t
  check.expect_eq %floordivsi, dense<[1, 1, 1, 3162, 1, -6, 0, -7, -2, 2443, -2, 0, -3894, -7, 0, -8428, -1,
      0, 268]> : !t
  check.expect_eq %ceildivsi, dense<[1, 1, 1, 3163, 2, -5, 1, -6, -1, 2443, -1, 1, -3893, -6, 1, -8427, 0,
      1, 268]> : !t
  check.expect_eq %ceildivui, dense<[1, 1, 1, 3163, 1, 1, 2, 7, 1, 1, 4, 2, 1, 10, 1, 13418, 1, 2, 1]> : !t
  check.expect_eq %remsi, dense<[0, 0, 0, 6, -4249, 3607, -1, -3507, 5891, 0, -5825, -17600, 3, -3231, 2664,
      -1, 21941, -2719, 0]> : !t
  check.expect_eq %remui, dense<[0, 0, 0, 6, -32768, 32767, 4, 4381, 23572, -7329, 2499, 11768, 31147, 1180,
      2664, 0, 21941, 12697, -2144]> : !t
  check.expect_eq %minsi, dense<[30064, 29648, -2083, 7, -32768, -5832, -5, -32331, -17681, -7329, -20128,
      -29368, -8, -27681, 2664, -25282, -25066, -15416, -2144]> : !t
  check.expect_eq %maxsi, dense<[30064, 29648, -2083, 22140, -28519, 32767, -1, 4804, 23572, -3, 14303,
      -17600, 31147, 4075, 16096, 3, 21941, -2719, -8]> : !t
  check.expect_eq %minui, dense<[30064, 29648, -2083, 7, -32768, 32767, -5, 4804, 23572, -7329, 14303,
      -29368, 31147, 4075, 2664, 3, 21941, -15416, -2144]> : !t
  check.expect_eq %maxui, dense<[30064, 29648, -2083, 22140, -28519, -5832, -1, -32331, -17681, -3, -20128,
      -17600, -8, -27681, 16096, -25282, -25066, -2719, -8]> : !t
  check.expect_eq %absi, dense<[30064, 29648, 2083, 22140, -32768, 32767, 1, 32331, 23572, 7329, 20128,
      17600, 31147, 27681, 2664, 25282, 21941, 2719, 2144]> : !t
  check.expect_eq %add_constant, dense<[30067, 29651, -2080, 22143, -32765, -32766, 2, -32328, 23575, -7326,
      -20125, -17597, 31150, -27678, 2667, -25279, 21944, -2716, -2141]> : !t
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
  %x = arith.constant dense<[30064, 29648, -2083, 22140, -32768, 32767, -1, -32331, 23572, -7329, -20128,
      -17600, 31147, -27681, 2664, -25282, 21941, -2719, -2144]> : !t
  %y = arith.constant dense<[30064, 29648, -2083, 7, -28519, -5832, -5, 4804, -17681, -3, 14303, -29368, -8,
      4075, 16096, 3, -25066, -15416, -8]> : !t
  %s = arith.constant dense<[0, 15, 7, 2, 8, 13, 11, 12, 7, 6, 11, 9, 2, 4, 14, 13, 1, 5, 11]> : !t
  %andi, %ori, %xori, %shli, %shrsi, %shrui = check.run @bits(%x, %y, %s) : (!t, !t, !t) -> (!t, !t, !t, !t,
      !t, !t)
  check.expect_eq %andi, dense<[30064, 29648, -2083, 4, -32768, 26936, -5, 132, 6148, -7331, 12608, -30400,
      31144, 971, 2656, 2, 5140, -16064, -2144]> : !t
  check.expect_eq %ori, dense<[30064, 29648, -2083, 22143, -28519, -1, -1, -27659, -257, -1, -18433, -16568,
      -5, -24577, 16104, -25281, -8265, -2071, -8]> : !t
  check.expect_eq %xori, dense<[0, 0, 0, 22139, 4249, -26937, 4, -27791, -6405, 7330, -31041, 13832, -31149,
      -25548, 13448, -25283, -13405, 13993, 2136]> : !t
  check.expect_eq %shli, dense<[30064, 0, -4480, 23024, 0, -8192, -2048, 20480, 2560, -10304, 0, -32768,
      -6484, 15856, 0, -16384, -21654, -21472, 0]> : !t
  check.expect_eq %shrsi, dense<[30064, 0, -17, 5535, -128, 3, -1, -8, 184, -115, -10, -35, 7786, -1731, 0,
      -4, 10970, -85, -2]> : !t
  check.expect_eq %shrui, dense<[30064, 0, 495, 5535, 128, 3, 31, 8, 184, 909, 22, 93, 7786, 2365, 0, 4,
      10970, 1963, 30]> : !t
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
  %x = arith.constant dense<[30064, 29648, -2083, 22140, -32768, 32767, -1, -32331, 23572, -7329, -20128,
      -17600, 31147, -27681, 2664, -25282, 21941, -2719, -2144]> : !t
  %y = arith.constant dense<[30064, 29648, -2083, 7, -28519, -5832, -5, 4804, -17681, -3, 14303, -29368, -8,
      4075, 16096, 3, -25066, -15416, -8]> : !t
  %s = arith.constant dense<[0, 15, 7, 2, 8, 13, 11, 12, 7, 6, 11, 9, 2, 4, 14, 13, 1, 5, 11]> : !t
  %eq, %ne, %slt, %sle, %sgt, %sge, %ult, %ule, %ugt, %uge = check.run @comparisons(%x, %y, %s) : (!t, !t,
      !t) -> (!t, !t, !t, !t, !t, !t, !t, !t, !t, !t)
  check.expect_eq %eq, dense<[30064, 29648, -2083, 2, 8, 13, 11, 12, 7, 6, 11, 9, 2, 4, 14, 13, 1, 5, 11]> :
      !t
  check.expect_eq %ne, dense<[0, 15, 7, 22140, -32768, 32767, -1, -32331, 23572, -7329, -20128, -17600,
      31147, -27681, 2664, -25282, 21941, -2719, -2144]> : !t
  check.expect_eq %slt, dense<[0, 15, 7, 2, -32768, 13, 11, -32331, 7, -7329, -20128, 9, 2, -27681, 2664,
      -25282, 1, 5, -2144]> : !t
  check.expect_eq %sle, dense<[30064, 29648, -2083, 2, -32768, 13, 11, -32331, 7, -7329, -20128, 9, 2,
      -27681, 2664, -25282, 1, 5, -2144]> : !t
  check.expect_eq %sgt, dense<[0, 15, 7, 22140, 8, 32767, -1, 12, 23572, 6, 11, -17600, 31147, 4, 14, 13,
      21941, -2719, 11]> : !t
  check.expect_eq %sge, dense<[30064, 29648, -2083, 22140, 8, 32767, -1, 12, 23572, 6, 11, -17600, 31147, 4,
      14, 13, 21941, -2719, 11]> : !t
  check.expect_eq %ult, dense<[0, 15, 7, 2, -32768, 32767, 11, 12, 23572, -7329, 11, 9, 31147, 4, 2664, 13,
      21941, 5, -2144]> : !t
  check.expect_eq %ule, dense<[30064, 29648, -2083, 2, -32768, 32767, 11, 12, 23572, -7329, 11, 9, 31147, 4,
      2664, 13, 21941, 5, -2144]> : !t
  check.expect_eq %ugt, dense<[0, 15, 7, 22140, 8, 13, -1, -32331, 7, 6, -20128, -17600, 2, -27681, 14,
      -25282, 1, -2719, 11]> : !t
  check.expect_eq %uge, dense<[30064, 29648, -2083, 22140, 8, 13, -1, -32331, 7, 6, -20128, -17600, 2,
      -27681, 14, -25282, 1, -2719, 11]> : !t
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
  %x = arith.constant dense<[30064, 29648, -2083, 22140, -32768, 32767, -1, -32331, 23572, -7329, -20128,
      -17600, 31147, -27681, 2664, -25282, 21941, -2719, -2144]> : !t
  %extsi, %extui = check.run @conversions(%x) : (!t) -> (!t, !t)
  check.expect_eq %extsi, dense<[15032, 14824, -1042, 11070, -16384, 16383, -1, -16166, 11786, -3665,
      -10064, -8800, 15573, -13841, 1332, -12641, 10970, -1360, -1072]> : !t
  check.expect_eq %extui, dense<[15032, 14824, 31726, 11070, 16384, 16383, 32767, 16602, 11786, 29103,
      22704, 23968, 15573, 18927, 1332, 20127, 10970, 31408, 31696]> : !t
}
