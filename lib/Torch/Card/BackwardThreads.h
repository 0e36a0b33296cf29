// SPDX-License-Identifier: Apache-2.0
//===- BackwardThreads.h - PyTorch's threads for gradients ------*- C++ -*-===//

#ifndef SPYRE_LIB_TORCH_CARD_BACKWARDTHREADS_H
#define SPYRE_LIB_TORCH_CARD_BACKWARDTHREADS_H

namespace spyre::pytorch {

/// Waits until the threads that compute gradients on cards have let go of what
/// they computed last. backward() returns a little sooner, and they may need
/// Python's lock for it: who asks for it when the interpreter ends is ended by
/// it, which ends the process where C++ allows no exception. The caller does
/// not hold the lock, and the process is not forked off one that has such
/// threads.
void awaitBackwardThreads();

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_CARD_BACKWARDTHREADS_H
