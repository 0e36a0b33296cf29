// SPDX-License-Identifier: Apache-2.0
// Operators that PyTorch gives to every backend but the CPU: the boxed
// fallback finds no CPU kernel for them, so what has no program is computed
// here, on the host, and counts as a fallback.
#include "../Eager/Eager.h"
#include "../Transfer/Copy.h"
#include "../Transfer/Transfer.h"
#include "Fallback.h"

#include <ATen/ATen.h>
#include <torch/library.h>

namespace spyre::pytorch {

namespace {

using OptionalTensor = std::optional<at::Tensor>;

at::Tensor toHostOrNone(const OptionalTensor &tensor) {
  return tensor && tensor->defined() ? toHost(*tensor) : at::Tensor();
}

/// fp32 values on the host; an undefined tensor stays one.
at::Tensor toFloat(const OptionalTensor &tensor) {
  at::Tensor host = toHostOrNone(tensor);
  return host.defined() ? host.to(c10::kFloat) : host;
}

/// A device tensor of the dtype and device of `like`.
at::Tensor toDevice(const at::Tensor &host, const at::Tensor &like) {
  if (!host.defined())
    return host;
  at::Tensor result =
      at::empty_strided(host.sizes(), host.strides(), like.options());
  copyTensor(host, result);
  return result;
}

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

/// The results of an operator's program; nothing if it has none.
template <typename... Arguments>
std::optional<torch::jit::Stack> runProgram(const c10::OperatorHandle &op,
                                            Arguments &&...arguments) {
  return callNative(op, {c10::IValue(std::forward<Arguments>(arguments))...});
}

std::vector<int64_t> toInts(c10::SymIntArrayRef values) {
  std::vector<int64_t> result;
  for (const c10::SymInt &value : values)
    result.push_back(value.expect_int());
  return result;
}

at::Tensor convolution(const at::Tensor &input, const at::Tensor &weight,
                       const OptionalTensor &bias, c10::SymIntArrayRef stride,
                       c10::SymIntArrayRef padding,
                       c10::SymIntArrayRef dilation, bool transposed,
                       c10::SymIntArrayRef outputPadding, c10::SymInt groups) {
  static const c10::OperatorHandle op =
      c10::Dispatcher::singleton().findSchemaOrThrow(
          "aten::convolution_overrideable", "");
  if (auto results = runProgram(op, input, weight, bias, toInts(stride),
                                toInts(padding), toInts(dilation), transposed,
                                toInts(outputPadding), groups.expect_int()))
    return (*results)[0].toTensor();
  recordFallback("aten::convolution_overrideable");
  return toDevice(at::convolution_symint(toHost(input), toHost(weight),
                                         toHostOrNone(bias), stride, padding,
                                         dilation, transposed, outputPadding,
                                         std::move(groups)),
                  input);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor>
convolutionBackward(const at::Tensor &gradOutput, const at::Tensor &input,
                    const at::Tensor &weight, c10::SymIntArrayRef stride,
                    c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation,
                    bool transposed, c10::SymIntArrayRef outputPadding,
                    c10::SymInt groups, std::array<bool, 3> wanted) {
  static const c10::OperatorHandle op =
      c10::Dispatcher::singleton().findSchemaOrThrow(
          "aten::convolution_backward_overrideable", "");
  if (auto results = runProgram(
          op, gradOutput, input, weight, toInts(stride), toInts(padding),
          toInts(dilation), transposed, toInts(outputPadding),
          groups.expect_int(), std::vector<bool>(wanted.begin(), wanted.end())))
    return {(*results)[0].toTensor(), (*results)[1].toTensor(),
            (*results)[2].toTensor()};
  recordFallback("aten::convolution_backward_overrideable");
  auto [gradInput, gradWeight, gradBias] = at::convolution_backward_symint(
      toHost(gradOutput), toHost(input), toHost(weight), std::nullopt, stride,
      padding, dilation, transposed, outputPadding, std::move(groups),
      {wanted[0], wanted[1], false});
  if (wanted[2]) {
    std::vector<int64_t> dims{0};
    for (int64_t d = 2; d < gradOutput.dim(); ++d)
      dims.push_back(d);
    gradBias = toHost(gradOutput).sum(dims);
  }
  return {toDevice(gradInput, input), toDevice(gradWeight, weight),
          toDevice(gradBias, weight)};
}

//===----------------------------------------------------------------------===//
// Recurrent cells
//===----------------------------------------------------------------------===//

at::Tensor addBias(const at::Tensor &gates, const OptionalTensor &bias) {
  return bias && bias->defined() ? gates + toFloat(bias) : gates;
}

/// Workspace: the four gates after their activation, [batch, 4 x hidden].
std::tuple<at::Tensor, at::Tensor, at::Tensor>
lstmCell(const at::Tensor &inputGates, const at::Tensor &hiddenGates,
         const at::Tensor &cell, const OptionalTensor &inputBias,
         const OptionalTensor &hiddenBias) {
  recordFallback("aten::_thnn_fused_lstm_cell");
  std::vector<at::Tensor> gates = (addBias(toFloat(inputGates), inputBias) +
                                   addBias(toFloat(hiddenGates), hiddenBias))
                                      .chunk(4, 1);
  at::Tensor in = gates[0].sigmoid(), forget = gates[1].sigmoid(),
             update = gates[2].tanh(), out = gates[3].sigmoid();
  at::Tensor newCell = forget * toFloat(cell) + in * update;
  at::Tensor hidden = out * newCell.tanh();
  return {toDevice(hidden, cell), toDevice(newCell, cell),
          toDevice(at::cat({in, forget, update, out}, 1), inputGates)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor>
lstmCellBackward(const OptionalTensor &gradHidden,
                 const OptionalTensor &gradCell, const at::Tensor &cell,
                 const at::Tensor &newCell, const at::Tensor &workspace,
                 bool hasBias) {
  recordFallback("aten::_thnn_fused_lstm_cell_backward_impl");
  at::Tensor gradH = toFloat(gradHidden), gradC = toFloat(gradCell);
  if (!gradH.defined() && !gradC.defined())
    return {};
  std::vector<at::Tensor> gates = toFloat(workspace).chunk(4, 1);
  const at::Tensor &in = gates[0], &forget = gates[1], &update = gates[2],
                   &out = gates[3];
  at::Tensor activated = toFloat(newCell).tanh();
  at::Tensor gradCy = gradC.defined() ? gradC : at::zeros_like(activated);
  at::Tensor gradOut = at::zeros_like(activated);
  if (gradH.defined()) {
    gradCy = gradCy + gradH * out * (1 - activated * activated);
    gradOut = gradH * activated;
  }
  at::Tensor gradGates =
      at::cat({gradCy * update * in * (1 - in),
               gradCy * toFloat(cell) * forget * (1 - forget),
               gradCy * in * (1 - update * update), gradOut * out * (1 - out)},
              1);
  return {toDevice(gradGates, workspace), toDevice(gradCy * forget, cell),
          hasBias ? toDevice(gradGates.sum(0), workspace) : at::Tensor()};
}

/// Workspace: reset, update and new gate, old state, hidden part of the new
/// gate, [batch, 5 x hidden].
std::tuple<at::Tensor, at::Tensor> gruCell(const at::Tensor &inputGates,
                                           const at::Tensor &hiddenGates,
                                           const at::Tensor &state,
                                           const OptionalTensor &inputBias,
                                           const OptionalTensor &hiddenBias) {
  recordFallback("aten::_thnn_fused_gru_cell");
  std::vector<at::Tensor> in =
      addBias(toFloat(inputGates), inputBias).chunk(3, 1);
  std::vector<at::Tensor> hidden =
      addBias(toFloat(hiddenGates), hiddenBias).chunk(3, 1);
  at::Tensor old = toFloat(state);
  at::Tensor reset = (in[0] + hidden[0]).sigmoid();
  at::Tensor update = (in[1] + hidden[1]).sigmoid();
  at::Tensor fresh = (in[2] + reset * hidden[2]).tanh();
  return {
      toDevice(fresh + update * (old - fresh), state),
      toDevice(at::cat({reset, update, fresh, old, hidden[2]}, 1), inputGates)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>
gruCellBackward(const at::Tensor &gradHidden, const at::Tensor &workspace,
                bool hasBias) {
  recordFallback("aten::_thnn_fused_gru_cell_backward");
  std::vector<at::Tensor> saved = toFloat(workspace).chunk(5, 1);
  const at::Tensor &reset = saved[0], &update = saved[1], &fresh = saved[2],
                   &old = saved[3], &hiddenNew = saved[4];
  at::Tensor gradient = toFloat(gradHidden);
  at::Tensor gradUpdate = gradient * (old - fresh) * update * (1 - update);
  at::Tensor gradNew = gradient * (1 - update) * (1 - fresh * fresh);
  at::Tensor gradReset = gradNew * hiddenNew * reset * (1 - reset);
  at::Tensor gradIn = at::cat({gradReset, gradUpdate, gradNew}, 1);
  at::Tensor gradState = at::cat({gradReset, gradUpdate, gradNew * reset}, 1);
  auto bias = [&](const at::Tensor &gates) {
    return hasBias ? toDevice(gates.sum(0), workspace) : at::Tensor();
  };
  return {toDevice(gradIn, workspace), toDevice(gradState, workspace),
          toDevice(gradient * update, gradHidden), bias(gradIn),
          bias(gradState)};
}

// These have a composite kernel, which refuses, before the boxed fallback.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("convolution_overrideable",
         torch::CppFunction::makeFromBoxedFunction<&runBoxed>());
  m.impl("convolution_backward_overrideable",
         torch::CppFunction::makeFromBoxedFunction<&runBoxed>());
  m.impl("mode.values", torch::CppFunction::makeFromBoxedFunction<&runBoxed>());
  // Its composite kernel does not say that it may not write its operands.
  m.impl("addr.out", torch::CppFunction::makeFromBoxedFunction<&runBoxed>());
}

TORCH_LIBRARY_IMPL(aten, kHostKernels, m) {
  m.impl("convolution_overrideable", convolution);
  m.impl("convolution_backward_overrideable", convolutionBackward);
  m.impl("_thnn_fused_lstm_cell", lstmCell);
  m.impl("_thnn_fused_lstm_cell_backward_impl", lstmCellBackward);
  m.impl("_thnn_fused_gru_cell", gruCell);
  m.impl("_thnn_fused_gru_cell_backward", gruCellBackward);
}

} // namespace

} // namespace spyre::pytorch
