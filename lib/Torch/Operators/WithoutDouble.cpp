// SPDX-License-Identifier: Apache-2.0
// Functions that PyTorch composes of others, with numbers in float64 between
// them, which the device does not have. Here these are in fp32.
#include <ATen/ATen.h>
#include <ATen/ops/_batch_norm_impl_index_native.h>
#include <torch/library.h>

namespace spyre::pytorch {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

/// Of nothing, PyTorch keeps the statistics in the type that it sums in: on any
/// device but CUDA, float64 for float32. Gradients do not read them.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, int64_t>
batchNorm(const at::Tensor &input, const OptionalTensor &weight,
          const OptionalTensor &bias, const OptionalTensor &mean,
          const OptionalTensor &variance, bool training, double momentum,
          double eps, bool cudnnEnabled) {
  if (input.sym_numel() != 0)
    return at::native::_batch_norm_impl_index(input, weight, bias, mean,
                                              variance, training, momentum, eps,
                                              cudnnEnabled);
  at::Tensor result = input.clone();
  if (weight && weight->defined())
    result = result * (*weight)[0];
  if (bias && bias->defined())
    result = result + (*bias)[0];
  at::Tensor statistics =
      at::empty_symint({input.sym_size(1)}, input.options().dtype(at::kFloat));
  return {result, statistics, at::empty_like(statistics),
          at::empty({0}, input.options().dtype(at::kByte)), 0};
}

bool isDerived(const at::Tensor &self) {
  return (c10::GradMode::is_enabled() && self.requires_grad()) ||
         self._fw_grad(/*level=*/0).defined();
}

/// Rows whose norm is too large, made shorter. Its gradient in PyTorch sums
/// norms in float64; here it follows from what is called.
at::Tensor renorm(const at::Tensor &self, const at::Scalar &p, int64_t dim,
                  const at::Scalar &most) {
  if (!isDerived(self)) {
    at::AutoDispatchBelowAutograd below;
    return self.renorm(p, dim, most);
  }
  TORCH_CHECK(p.toDouble() > 0, "renorm: non-positive-norm not supported");
  TORCH_CHECK(most.toDouble() >= 0,
              "renorm: expected maxnorm to be >= 0 but got ", most.toDouble());
  TORCH_CHECK(self.dim() > 1, "renorm: input needs at least 2 dimensions, got ",
              self.dim(), " dimensions");
  std::vector<int64_t> others;
  for (int64_t other = 0; other < self.dim(); ++other)
    if (other != c10::maybe_wrap_dim(dim, self.dim()))
      others.push_back(other);
  at::Tensor wide = self.to(at::kFloat);
  at::Tensor norm = at::linalg_vector_norm(wide, p, others, /*keepdim=*/true);
  at::Tensor scale = at::where(norm > most, (norm + 1e-7).reciprocal() * most,
                               at::Scalar(1.0));
  return (wide * scale).to(self.scalar_type());
}

at::Tensor &renormInPlace(at::Tensor &self, const at::Scalar &p, int64_t dim,
                          const at::Scalar &most) {
  if (!isDerived(self)) {
    at::AutoDispatchBelowAutograd below;
    return self.renorm_(p, dim, most);
  }
  return self.copy_(self.clone().renorm(p, dim, most));
}

at::Tensor number(const at::Tensor &like, double value) {
  return at::full({}, value, like.options().dtype(at::kFloat));
}

OptionalTensor number(const at::Tensor &like, std::optional<double> value) {
  return value ? OptionalTensor(number(like, *value)) : std::nullopt;
}

void checkMatrices(const at::Tensor &input) {
  TORCH_CHECK(input.scalar_type() == at::kFloat,
              "expected matrices of float32, the one type that both the CPU "
              "and the device take; found ",
              input.scalar_type());
  TORCH_CHECK(input.dim() >= 2, "expected matrices; found a tensor with ",
              input.dim(), " dimensions");
}

/// In relation to the largest value, if nobody says: PyTorch's own rule.
at::Tensor defaultTolerance(const at::Tensor &input) {
  c10::SymInt size = std::max(input.sym_size(-1), input.sym_size(-2));
  return at::full({},
                  c10::SymFloat(size) * std::numeric_limits<float>::epsilon(),
                  input.options().dtype(at::kFloat));
}

/// Below which values along the last dimension count as zero, where the largest
/// one is given. A relative tolerance that is not given counts only where the
/// absolute one is zero.
at::Tensor limit(const at::Tensor &input, const OptionalTensor &absolute,
                 const OptionalTensor &relative, const at::Tensor &largest) {
  bool hasAbsolute = absolute && absolute->defined();
  at::Tensor atol = hasAbsolute ? *absolute : number(input, 0.0);
  at::Tensor rtol;
  if (relative && relative->defined())
    rtol = *relative;
  else if (rtol = defaultTolerance(input); hasAbsolute)
    rtol = at::where(atol > 0, number(input, 0.0), rtol);
  return at::maximum(atol.unsqueeze(-1), rtol.unsqueeze(-1) * largest);
}

/// Below autograd, which knows the gradient.
at::Tensor pseudoInverse(const at::Tensor &input,
                         const OptionalTensor &absolute,
                         const OptionalTensor &relative, bool hermitian) {
  checkMatrices(input);
  if (input.numel() == 0)
    return at::empty_like(input.mT(), at::MemoryFormat::Contiguous);
  if (hermitian) {
    auto [values, vectors] = at::linalg_eigh(input);
    at::Tensor sizes = values.abs();
    at::Tensor least = limit(input, absolute, relative, sizes.amax(-1, true));
    at::Tensor inverse = at::where(sizes > least, values.reciprocal(), 0.0);
    return at::matmul(vectors * inverse.unsqueeze(-2), vectors.mT());
  }
  auto [left, values, right] = at::linalg_svd(input, /*full_matrices=*/false);
  at::Tensor least = limit(input, absolute, relative, values.narrow(-1, 0, 1));
  at::Tensor inverse = at::where(values > least, values.reciprocal(), 0.0);
  return at::matmul(right.mT() * inverse.unsqueeze(-2), left.mT());
}

at::Tensor rankWithin(const at::Tensor &input, const OptionalTensor &absolute,
                      const OptionalTensor &relative, bool hermitian) {
  checkMatrices(input);
  at::Tensor values =
      hermitian ? at::linalg_eigvalsh(input).abs() : at::linalg_svdvals(input);
  if (values.sym_size(-1) == 0)
    return values.sum(-1).to(at::kLong);
  at::Tensor largest =
      hermitian ? values.amax(-1, true) : values.narrow(-1, 0, 1);
  return (values > limit(input, absolute, relative, largest)).sum(-1);
}

at::Tensor rank(const at::Tensor &input, std::optional<double> absolute,
                std::optional<double> relative, bool hermitian) {
  return rankWithin(input, number(input, absolute), number(input, relative),
                    hermitian);
}

at::Tensor rankBelow(const at::Tensor &input, double tolerance,
                     bool hermitian) {
  return rank(input, tolerance, 0.0, hermitian);
}

at::Tensor rankBelowTensor(const at::Tensor &input, const at::Tensor &tolerance,
                           bool hermitian) {
  return rankWithin(input, tolerance, number(input, 0.0), hermitian);
}

at::Tensor pseudoInverseOfNumbers(const at::Tensor &input,
                                  std::optional<double> absolute,
                                  std::optional<double> relative,
                                  bool hermitian) {
  return at::linalg_pinv(input, number(input, absolute),
                         number(input, relative), hermitian);
}

at::Tensor pseudoInverseRelative(const at::Tensor &input, double relative,
                                 bool hermitian) {
  return pseudoInverseOfNumbers(input, 0.0, relative, hermitian);
}

at::Tensor pseudoInverseRelativeTensor(const at::Tensor &input,
                                       const at::Tensor &relative,
                                       bool hermitian) {
  return at::linalg_pinv(input, number(input, 0.0), relative, hermitian);
}

void registerAll(torch::Library &m) {
  m.impl("_batch_norm_impl_index", batchNorm);
  m.impl("linalg_pinv.atol_rtol_float", pseudoInverseOfNumbers);
  m.impl("linalg_pinv", pseudoInverseRelative);
  m.impl("linalg_pinv.rcond_tensor", pseudoInverseRelativeTensor);
  m.impl("linalg_matrix_rank.atol_rtol_tensor", rankWithin);
  m.impl("linalg_matrix_rank.atol_rtol_float", rank);
  m.impl("linalg_matrix_rank", rankBelow);
  m.impl("linalg_matrix_rank.tol_tensor", rankBelowTensor);
}

// Gradients follow from what is called. Tensors of inference mode have no
// gradients.
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  registerAll(m);
  m.impl("renorm", renorm);
  m.impl("renorm_", renormInPlace);
}
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  registerAll(m);
  m.impl("linalg_pinv.atol_rtol_tensor", pseudoInverse);
}

} // namespace
} // namespace spyre::pytorch
