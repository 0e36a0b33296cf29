// SPDX-License-Identifier: Apache-2.0
//
// Sparse tensors whose indices and values are on the device. What only takes
// them apart, puts them together or copies them is PyTorch's own code, which is
// the same for all devices; every other operator runs on the CPU, and is
// counted as such.

#include "Fallback.h"

#include <ATen/ops/_coalesced_native.h>
#include <ATen/ops/_indices_native.h>
#include <ATen/ops/_nnz_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_and_tensors_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_native.h>
#include <ATen/ops/_sparse_mm_reduce_impl.h>
#include <ATen/ops/_values_native.h>
#include <ATen/ops/ccol_indices_native.h>
#include <ATen/ops/clone_native.h>
#include <ATen/ops/col_indices_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/copy_sparse_to_sparse_native.h>
#include <ATen/ops/crow_indices_native.h>
#include <ATen/ops/dense_dim_native.h>
#include <ATen/ops/empty_like_native.h>
#include <ATen/ops/empty_native.h>
#include <ATen/ops/indices_native.h>
#include <ATen/ops/is_coalesced_native.h>
#include <ATen/ops/permute_native.h>
#include <ATen/ops/resize_as_sparse_native.h>
#include <ATen/ops/row_indices_native.h>
#include <ATen/ops/select_native.h>
#include <ATen/ops/sparse_dim_native.h>
#include <ATen/ops/sparse_resize_and_clear_native.h>
#include <ATen/ops/sparse_resize_native.h>
#include <ATen/ops/unsqueeze_native.h>
#include <ATen/ops/values_native.h>
#include <ATen/ops/zero_native.h>
#include <torch/library.h>

namespace spyre::pytorch {

namespace {

/// How the boxed fallback writes what an operator has changed in place.
at::Tensor copyBack(const at::Tensor &self, const at::Tensor &destination) {
  at::Tensor written = destination;
  return written.copy_(self);
}

template <c10::DispatchKey kernels>
void runBoxedOnCPU(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  runOnCPU(op, stack, kernels);
}

/// A product with the largest or smallest terms in place of sums. The CPU's
/// kernel says which these are only if an argument requires a gradient, which
/// copies on the CPU do not, and the gradient reads that unasked.
std::tuple<at::Tensor, at::Tensor> reduceProducts(const at::Tensor &self,
                                                  const at::Tensor &other,
                                                  std::string_view reduce) {
  TORCH_CHECK(self.device() == other.device(),
              "aten::_sparse_mm_reduce_impl: expected all tensors to be on the "
              "same device, found ",
              self.device(), " and ", other.device());
  auto onCPU = [](const at::Tensor &tensor) {
    return tensor.detach().cpu().set_requires_grad(tensor.requires_grad());
  };
  auto [values, places] =
      at::_sparse_mm_reduce_impl(onCPU(self), onCPU(other), reduce);
  recordFallback("aten::_sparse_mm_reduce_impl");
  return {values.detach().to(self.device()), places.to(self.device())};
}

constexpr auto *kSparse = &runBoxedOnCPU<c10::DispatchKey::SparseCPU>;
constexpr auto *kCompressed = &runBoxedOnCPU<c10::DispatchKey::SparseCsrCPU>;

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  using namespace at::native;
  m.impl("_sparse_coo_tensor_with_dims", new_with_dims_sparse);
  m.impl("_sparse_coo_tensor_with_dims_and_tensors",
         new_with_dims_and_tensor_sparse_symint);
  m.impl("empty.memory_format", empty_sparse_symint);
  m.impl("empty_like", empty_like_sparse_coo);
  m.impl("sparse_dim", sparse_dim_sparse);
  m.impl("_dimI", sparse_dim_sparse);
  m.impl("dense_dim", dense_dim_sparse);
  m.impl("_dimV", dense_dim_sparse);
  m.impl("_nnz", _nnz_sparse);
  m.impl("is_coalesced", is_coalesced_sparse);
  m.impl("_coalesced_", _coalesced_sparse_);
  m.impl("_indices", _indices_sparse);
  m.impl("indices", indices_sparse);
  m.impl("_values", _values_sparse);
  m.impl("values", values_sparse);
  m.impl("clone", clone_sparse);
  m.impl("copy_", copy_sparse_wrapper_);
  m.impl("copy_sparse_to_sparse_", copy_sparse_);
  m.impl("_copy_from_and_resize", copyBack);
  m.impl("resize_as_sparse_", resize_as_sparse_);
  m.impl("sparse_resize_", sparse_resize_);
  m.impl("sparse_resize_and_clear_", sparse_resize_and_clear_);
  m.impl("zero_", zero_sparse_);
  m.impl("permute", permute_sparse_coo);
  m.impl("unsqueeze", unsqueeze_sparse);
}

TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<kSparse>());
}

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  using namespace at::native;
  m.impl("empty.memory_format", empty_sparse_compressed_symint);
  m.impl("empty_like", empty_like_sparse_csr);
  m.impl("sparse_dim", sparse_dim_sparse_csr);
  m.impl("dense_dim", dense_dim_sparse_csr);
  m.impl("_nnz", _nnz_sparse_csr);
  m.impl("crow_indices", crow_indices_sparse_csr);
  m.impl("col_indices", col_indices_sparse_csr);
  m.impl("ccol_indices", ccol_indices_sparse_csr);
  m.impl("row_indices", row_indices_sparse_csr);
  m.impl("values", values_sparse_csr);
  m.impl("select.int", select_sparse_csr);
  m.impl("clone", clone_sparse_compressed);
  m.impl("copy_", copy_sparse_compressed_);
  m.impl("_copy_from_and_resize", copyBack);
  m.impl("resize_as_sparse_", resize_as_sparse_compressed_);
  m.impl("zero_", zero_sparse_csr_);
  m.impl("_sparse_mm_reduce_impl", reduceProducts);

  // Of operators that write to `out`, a kernel for all devices, which knows no
  // such tensors, comes before the fallback.
  c10::Dispatcher &dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName &name : dispatcher.getAllOpNames()) {
    auto op = dispatcher.findOp(name);
    if (op && op->hasKernelForDispatchKey(c10::DispatchKey::SparseCsrCPU) &&
        !op->hasKernelForDispatchKey(c10::DispatchKey::SparseCsrPrivateUse1))
      m.impl(c10::toString(name).c_str(),
             torch::CppFunction::makeFromBoxedFunction<kCompressed>());
  }
}

TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<kCompressed>());
}

} // namespace

} // namespace spyre::pytorch
