// SPDX-License-Identifier: Apache-2.0
//===- RaiseOptions.h - What a folder does not say --------------*- C++ -*-===//

#ifndef SPYRE_TARGET_SUPERDSC_RAISE_RAISEOPTIONS_H
#define SPYRE_TARGET_SUPERDSC_RAISE_RAISEOPTIONS_H

namespace spyre::superdsc {

struct RaiseOptions {
  /// Segment 0 is a pool. Only where neither a manifest nor a bundle says it.
  bool hasPool = false;
};

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_RAISE_RAISEOPTIONS_H
