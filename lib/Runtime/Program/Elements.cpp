// SPDX-License-Identifier: Apache-2.0
//===- Elements.cpp - Element types and scalars ---------------------------===//

#include "Elements.h"

using namespace spyre::runtime;

const char *spyre::runtime::elemName(Elem e) {
  switch (e) {
  case Elem::F16:
    return "f16";
  case Elem::BF16:
    return "bf16";
  case Elem::F32:
    return "f32";
  case Elem::F8E4M3FN:
    return "f8E4M3FN";
  case Elem::F8E5M2:
    return "f8E5M2";
  case Elem::I1:
    return "i1";
  case Elem::I8:
    return "i8";
  case Elem::I16:
    return "i16";
  case Elem::I32:
    return "i32";
  case Elem::I64:
    return "i64";
  case Elem::Index:
    return "index";
  }
  return "?";
}
