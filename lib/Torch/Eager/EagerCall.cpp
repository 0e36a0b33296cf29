// SPDX-License-Identifier: Apache-2.0
#include "EagerCall.h"
#include "../Storage/StorageFormatting.h"
#include "Spyre/Device/DL16.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace spyre::pytorch {

/// The largest number of a floating type.
static double largestOf(c10::ScalarType type) {
  switch (type) {
  case c10::kHalf:
    return std::numeric_limits<c10::Half>::max();
  case c10::kBFloat16:
    return std::numeric_limits<c10::BFloat16>::max();
  case c10::kFloat8_e4m3fn:
    return std::numeric_limits<c10::Float8_e4m3fn>::max();
  case c10::kFloat8_e5m2fnuz:
    return std::numeric_limits<c10::Float8_e5m2fnuz>::max();
  default:
    return std::numeric_limits<float>::max();
  }
}

Call::Call(bool leavesOutSizes) : leavesOutSizes(leavesOutSizes) {
  // Of most calls, without growing on the way.
  constexpr size_t bytes = 512, operands = 4;
  key.reserve(bytes);
  tensors.reserve(operands);
  storages.reserve(operands);
  // Floating results of integers have it.
  c10::ScalarType type = c10::get_default_dtype_as_scalartype();
  append(static_cast<char>(type));
  note(type);
}

void Call::note(c10::ScalarType type) {
  hasBFloat16 |= type == c10::kBFloat16;
  if (c10::isFloatingType(type))
    largest = std::min(largest, largestOf(type));
}

void Call::addDtype(c10::ScalarType type) {
  note(type);
  append('y');
  append(static_cast<int64_t>(type));
}

bool Call::add(const c10::IValue &value) {
  if (value.isNone()) {
    append('n');
    return true;
  }
  if (value.isTensor())
    return addTensor(value.toTensor());
  if (value.isBool()) {
    append(value.toBool() ? 't' : 'f');
    return true;
  }
  if (value.isInt()) {
    append('i');
    append(value.toInt());
    return true;
  }
  if (value.isDouble()) {
    append('d');
    numbers.push_back(value.toDouble());
    return true;
  }
  if (value.isString()) {
    append('s');
    append(static_cast<int64_t>(value.toStringRef().size()));
    key += value.toStringRef();
    return true;
  }
  if (value.isDevice()) {
    // The results' device is that of the tensors.
    append('v');
    return value.toDevice().type() == kSpyre;
  }
  if (value.isList()) {
    append('l');
    c10::ArrayRef<c10::IValue> entries = value.toListRef();
    append(static_cast<int64_t>(entries.size()));
    for (const c10::IValue &entry : entries)
      if (!add(entry))
        return false;
    return true;
  }
  return false; // generators, complex and symbolic numbers
}

void Call::leaveOut(const c10::IValue &value) {
  if (value.isInt()) {
    append('Z');
    integers.push_back(value.toInt());
    return;
  }
  std::vector<int64_t> entries = value.toIntVector();
  append('L');
  append(static_cast<int64_t>(entries.size()));
  integers.insert(integers.end(), entries.begin(), entries.end());
}

void Call::appendOrder(c10::ArrayRef<int64_t> strides) {
  for (int64_t stride : strides)
    append(static_cast<int64_t>(
        std::count_if(strides.begin(), strides.end(),
                      [&](int64_t other) { return other < stride; })));
}

void Call::endArguments() {
  sizes.insert(sizes.end(), integers.begin(), integers.end());
  auto isSpecial = [&](double number) {
    return (std::isfinite(number) && std::abs(number) > largest) ||
           (hasBFloat16 && isBeyondDL16(number));
  };
  if (std::none_of(numbers.begin(), numbers.end(), isSpecial))
    return;
  for (double number : numbers)
    append(isSpecial(number) ? std::bit_cast<int64_t>(number) : 0);
}

bool Call::addTensor(const at::Tensor &tensor) {
  if (!tensor.defined()) {
    append('u');
    return true;
  }
  if (tensor.is_cpu() && tensor.dim() == 0 &&
      tensor.layout() == c10::kStrided) {
    // A number, with its value.
    append(tensor.unsafeGetTensorImpl()->is_wrapped_number() ? 'w' : 'c');
    append(static_cast<int64_t>(tensor.scalar_type()));
    if (tensor.is_complex() || tensor.is_quantized())
      return false;
    if (tensor.is_floating_point()) {
      hasBFloat16 |= tensor.scalar_type() == c10::kBFloat16;
      numbers.push_back(tensor.item().toDouble());
      return true;
    }
    key.append(static_cast<const char *>(tensor.const_data_ptr()),
               tensor.itemsize());
    return true;
  }
  if (tensor.device().type() != kSpyre || tensor.layout() != c10::kStrided ||
      !tensor.has_storage())
    return false;
  SpyreStorageImpl &storage = storageOf(tensor);
  if (!storage.format && storage.nbytes() != 0)
    formatFor(tensor, /*force=*/true);
  if (!storage.format ||
      scalarType(storage.format->dtype) != tensor.scalar_type() ||
      (device >= 0 && storage.deviceIndex() != device))
    return false;
  device = storage.deviceIndex();
  note(tensor.scalar_type());
  append('T');
  append(
      static_cast<int64_t>(tensor.unsafeGetTensorImpl()->is_wrapped_number()));
  appendSizes(tensor.sizes());
  appendSizes(tensor.strides());
  if (leavesOutSizes) {
    sizes.push_back(tensor.storage_offset());
    appendOrder(tensor.strides());
  }
  auto known = std::find(storages.begin(), storages.end(), &storage);
  append(static_cast<int64_t>(known - storages.begin()));
  tensors.push_back(tensor);
  if (known != storages.end())
    return true;
  storages.push_back(&storage);
  const StorageFormat &format = *storage.format;
  append(static_cast<int64_t>(format.dtype));
  appendSizes(format.sizes);
  appendSizes(format.strides);
  if (leavesOutSizes) {
    // The program says whether it is for the layout.
    append(static_cast<int64_t>(format.layout.deviceSize.size()));
  } else {
    append(format.layout.deviceSize);
    append(format.layout.strideMap);
  }
  append(static_cast<int64_t>(format.layout.arrangement));
  return true;
}

/// The type of a parameter, or of what may be left out.
static c10::TypePtr typeOf(const c10::Argument &parameter) {
  c10::TypePtr type = parameter.real_type();
  if (auto optional = type->cast<c10::OptionalType>())
    type = optional->getElementType();
  return type;
}

std::optional<WholeNumber> wholeNumber(const c10::OperatorHandle &op,
                                       c10::ArrayRef<c10::IValue> arguments,
                                       size_t i) {
  const c10::IValue &value = arguments[i];
  if (i == 0 || !arguments[0].isTensor() ||
      !(value.isInt() || value.isTensor()))
    return std::nullopt;
  const at::Tensor &first = arguments[0].toTensor();
  if (!first.defined() || first.device().type() != kSpyre)
    return std::nullopt;
  // The device has 64-bit integers as 32-bit ones.
  bool meetsIntegers =
      first.scalar_type() == c10::kLong || first.scalar_type() == c10::kInt;
  if (!meetsIntegers && !first.is_floating_point())
    return std::nullopt;
  int64_t number = 0;
  if (value.isInt()) {
    const c10::Argument &parameter = op.schema().arguments()[i];
    const std::string &name = parameter.name();
    if (typeOf(parameter)->kind() != c10::TypeKind::NumberType ||
        (name != "other" && name != "value" && name != "min" && name != "max"))
      return std::nullopt;
    number = value.toInt();
  } else {
    const at::Tensor &tensor = value.toTensor();
    if (!tensor.defined() || !tensor.is_cpu() || tensor.dim() != 0 ||
        !tensor.unsafeGetTensorImpl()->is_wrapped_number() ||
        tensor.scalar_type() != c10::kLong)
      return std::nullopt;
    number = tensor.item<int64_t>();
  }
  // Exact in fp32, or in 32 bits.
  const int64_t most = meetsIntegers ? (int64_t(1) << 31) - 1 : 1 << 24;
  if (number < -most || number > most)
    return std::nullopt;
  return WholeNumber{static_cast<double>(number), meetsIntegers};
}

bool isDtype(const c10::Argument &parameter, const c10::IValue &value) {
  return value.isInt() &&
         typeOf(parameter)->kind() == c10::TypeKind::ScalarTypeType;
}

bool isSize(const c10::Argument &parameter, const c10::IValue &value) {
  if (!value.isInt() && !value.isIntList())
    return false;
  c10::TypePtr type = typeOf(parameter);
  if (auto list = type->cast<c10::ListType>())
    type = list->getElementType();
  return type->kind() == c10::TypeKind::SymIntType;
}

} // namespace spyre::pytorch
