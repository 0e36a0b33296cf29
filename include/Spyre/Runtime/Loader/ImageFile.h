// SPDX-License-Identifier: Apache-2.0
//===- ImageFile.h - The bytes of program images ----------------*- C++ -*-===//
//
// A header, a table of the arguments' dimensions, a KTIR module as MLIR
// bytecode. docs/internals/spyrecode.md describes the bytes. No MLIR types.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_RUNTIME_LOADER_IMAGEFILE_H
#define SPYRE_RUNTIME_LOADER_IMAGEFILE_H

#include "Spyre/Runtime/Launch/ProgramImage.h"

#include <string>

namespace spyre::runtime {

/// The image of a program given as KTIR bytecode; a multiple of 128 bytes.
/// Correction tensor and pool lie behind it. `tileGroups` has one entry per
/// argument. Throws Error if the program cannot be loaded or has an array
/// without a layout.
std::string encodeImage(const std::string &ktirBytecode,
                        const TileGroups &tileGroups, bool isCorrected);

/// Reads an image back; every count and offset is checked before it is used.
/// Throws BrokenRule (SPYRECODE-IMAGE-*).
ProgramImage decodeImage(const std::string &bytes, const std::string &name);

/// Puts the checksum of an image into its header (tests mutate images).
void sealImage(std::string &bytes);

} // namespace spyre::runtime

#endif // SPYRE_RUNTIME_LOADER_IMAGEFILE_H
