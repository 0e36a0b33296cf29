// SPDX-License-Identifier: Apache-2.0
#include "WrittenMemory.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <c10/util/irange.h>

#include <map>
#include <set>
#include <string>

namespace spyre::pytorch {

/// ATen operator -> the arguments that may not be what it writes. Elementwise
/// operators may have what they write as an operand.
static const std::set<std::string> &apartOf(const std::string &name) {
  static const std::set<std::string> none;
  static const std::set<std::string> updates = {"index", "indices", "src",
                                                "source", "values"};
  static const std::map<std::string, std::set<std::string>> known = {
      {"_index_put_impl", updates},
      {"cat", {"tensors"}},
      {"cross", {"self", "other"}},
      {"gather", {"self"}},
      {"index_add", updates},
      {"index_copy", updates},
      {"index_fill", updates},
      {"index_put", updates},
      {"index_reduce", updates},
      {"index_select", {"self", "index"}},
      {"kthvalue", {"self"}},
      {"linalg_cross", {"self", "other"}},
      {"masked_select", {"self", "mask"}},
      {"nonzero", {"self"}},
      {"put", updates},
      {"scatter", updates},
      {"scatter_add", updates},
      {"scatter_reduce", updates},
      {"stack", {"tensors"}},
      {"take", {"self", "index"}},
  };
  auto it = known.find(name);
  return it == known.end() ? none : it->second;
}

WrittenMemory::WrittenMemory(const c10::FunctionSchema &schema) {
  std::string name = schema.name();
  name.erase(0, name.find("::") + 2);
  if (name.back() == '_')
    name.pop_back();
  const std::set<std::string> &apart = apartOf(name);
  for (const c10::Argument &argument : schema.arguments()) {
    written.push_back(argument.alias_info() &&
                      argument.alias_info()->isWrite());
    isApart.push_back(!written.back() && apart.count(argument.name()) != 0);
    hasWritten |= written.back();
  }
}

template <typename Function>
static void forEachStrided(const c10::IValue &value, Function function) {
  if (value.isTensor()) {
    const at::Tensor &tensor = value.toTensor();
    if (tensor.defined() && tensor.layout() == c10::kStrided)
      function(tensor);
  } else if (value.isList()) {
    for (const c10::IValue &element : value.toListRef())
      forEachStrided(element, function);
  }
}

void WrittenMemory::check(c10::ArrayRef<c10::IValue> arguments) const {
  for (size_t i : c10::irange(arguments.size())) {
    if (!written[i])
      continue;
    forEachStrided(arguments[i], [&](const at::Tensor &to) {
      at::assert_no_internal_overlap(to);
      // Updates of lists of tensors are made one by one.
      for (size_t j = 0; arguments[i].isTensor() && j < arguments.size(); ++j)
        forEachStrided(arguments[j], [&](const at::Tensor &other) {
          if (isApart[j])
            at::assert_no_overlap(to, other);
          else
            at::assert_no_partial_overlap(to, other);
        });
    });
  }
}

} // namespace spyre::pytorch
