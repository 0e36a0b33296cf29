// SPDX-License-Identifier: Apache-2.0
#include "BackwardThreads.h"
#include "Card.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>

namespace spyre::pytorch {

namespace {

/// Computes nothing, on the thread of its input's device.
struct Marker final : torch::autograd::Node {
  torch::autograd::variable_list
  apply(torch::autograd::variable_list &&) override {
    return {};
  }
};

/// Says whether the engine has started its threads, which it does on first use.
struct EngineState : torch::autograd::Engine {
  static bool hasThreads(const torch::autograd::Engine &engine) {
    return !(engine.*&EngineState::device_ready_queues_).empty();
  }
};

} // namespace

void awaitBackwardThreads() {
  torch::autograd::Engine &engine =
      torch::autograd::Engine::get_default_engine();
  if (!isInitialized() || !EngineState::hasThreads(engine))
    return;
  for (c10::DeviceIndex index = 0; index < deviceCount(); ++index) {
    // A thread takes one task after the other: once it has this one, it has
    // let go of those before.
    at::Tensor nothing =
        at::empty({0}, at::TensorOptions(c10::Device(kSpyre, index)));
    auto marker = c10::make_intrusive<Marker>();
    marker->add_input_metadata(nothing);
    engine.execute({torch::autograd::Edge(marker, 0)}, {nothing},
                   /*keep_graph=*/false, /*create_graph=*/false,
                   /*accumulate_grad=*/true);
    // Never destroyed: the thread may be the last that has it, and where
    // anomalies are detected it holds Python's objects.
    marker.release();
  }
}

} // namespace spyre::pytorch
