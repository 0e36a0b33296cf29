// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Device/DL16.h"

void spyre::encodeDL16(const float *values, uint16_t *codes, size_t count) {
  for (size_t i = 0; i < count; ++i)
    codes[i] = encodeDL16(values[i]);
}

void spyre::decodeDL16(const uint16_t *codes, float *values, size_t count) {
  for (size_t i = 0; i < count; ++i)
    values[i] = decodeDL16(codes[i]);
}
