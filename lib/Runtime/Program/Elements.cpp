// SPDX-License-Identifier: Apache-2.0
//===- Elements.cpp - Element types and scalars ---------------------------===//

#include "Elements.h"

using namespace spyre::runtime;

const char *spyre::runtime::elemName(Elem e) {
  switch (e) {
#define SPYRE_RUNTIME_ELEMENT(name, elementType, bits, stored)                 \
  case Elem::name:                                                             \
    return elementType;
#include "Spyre/Device/NumberFormats.def"
  }
  return "?";
}
