// SPDX-License-Identifier: Apache-2.0
//===- EagerCall.h - A call of an operator as a key -------------*- C++ -*-===//

#ifndef SPYRE_LIB_TORCH_EAGER_EAGERCALL_H
#define SPYRE_LIB_TORCH_EAGER_EAGERCALL_H

#include "../Storage/ViewShift.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/DefaultDtype.h>
#include <c10/util/irange.h>

#include <bit>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace spyre::pytorch {

/// A part of a storage that has grown from another one, and is stored there
/// without moving to memory of its own.
struct GrownPart {
  c10::Storage storage, source;
  int64_t start; ///< in elements of the device
};

/// A call taken apart.
class Call {
public:
  /// The key of a call that `leavesOutSizes` is the same for all sizes.
  explicit Call(bool leavesOutSizes = false);

  /// Appends an argument to the key; false if no program takes such a one.
  bool add(const c10::IValue &value);
  /// Appends that there is an integer, or a list of them, of any values.
  void leaveOut(const c10::IValue &value);
  /// Appends an argument that is a dtype.
  void addDtype(c10::ScalarType type);
  /// Ends the arguments. The kind has the values of numbers that decide which
  /// program there is: those that a floating type of the call lacks, because
  /// the CPU may refuse them, and those that the device's 16 bits lack, if rows
  /// of the ATen table may compute with others in bfloat16 (immElement()).
  void endArguments();

  /// Ends the key: appends where programs see the tensors in their storages,
  /// and the numbers.
  void close() {
    placeStart = key.size();
    shifts = shiftViews(tensors);
    place();
  }
  /// Makes the key that of a program for where the tensors lie.
  void stay() {
    key.resize(placeStart);
    shifts.assign(tensors.size(), {});
    place();
  }
  /// The key without the values of the numbers.
  std::string kind() const { return key.substr(0, kindSize); }

  std::string key;
  /// The spyre tensors in order, lists included.
  std::vector<at::Tensor> tensors;
  /// How far each tensor is moved for the program. Valid after close().
  std::vector<ViewShift> shifts;
  /// Adds a whole number that operators take as one of any value.
  void addWhole(double number) {
    append('I');
    numbers.push_back(number);
  }

  /// The floating-point arguments in order, including those in lists, whole
  /// numbers that operators take as such, and those of integer tensors.
  std::vector<double> numbers;
  /// What was left out: per tensor its sizes, strides and offset, and where it
  /// is the first one on its storage, the sizes and strides of the home.
  std::vector<int64_t> sizes;
  /// The integers that were left out, in order.
  std::vector<int64_t> integers;
  c10::DeviceIndex device = -1;
  /// Where the first tensor lies, if not in its own storage.
  std::optional<GrownPart> part;

private:
  void append(int64_t value) {
    key.append(reinterpret_cast<const char *>(&value), sizeof(value));
  }
  void append(c10::ArrayRef<int64_t> values) {
    append(static_cast<int64_t>(values.size()));
    key.append(reinterpret_cast<const char *>(values.data()),
               values.size() * sizeof(int64_t));
  }
  void append(char tag) { key.push_back(tag); }
  void place() {
    for (size_t i : c10::irange(tensors.size()))
      append(tensors[i].storage_offset() - shifts[i].hostElements);
    kindSize = key.size();
    for (double number : numbers)
      append(std::bit_cast<int64_t>(number));
  }
  void appendSizes(c10::ArrayRef<int64_t> values) {
    if (!leavesOutSizes)
      return append(values);
    append(static_cast<int64_t>(values.size()));
    sizes.insert(sizes.end(), values.begin(), values.end());
  }
  /// In which order the dimensions lie.
  void appendOrder(c10::ArrayRef<int64_t> strides);
  bool addTensor(const at::Tensor &tensor);
  /// Of a tensor or dtype.
  void note(c10::ScalarType type);

  std::vector<const SpyreStorageImpl *> storages;
  bool leavesOutSizes;
  bool hasBFloat16 = false; ///< a tensor or dtype
  /// Of the narrowest floating type of the tensors and dtypes.
  double largest = std::numeric_limits<float>::max();
  size_t placeStart = 0, kindSize = 0;
};

/// A whole number among the arguments that programs take as one of any value.
struct WholeNumber {
  double value;
  /// It meets integers. Of floating x, `x + 3` is `x + 3.0`.
  bool meetsIntegers;
};

/// The one that argument `i` of a call is, if it is one.
std::optional<WholeNumber> wholeNumber(const c10::OperatorHandle &op,
                                       c10::ArrayRef<c10::IValue> arguments,
                                       size_t i);

/// Whether the value of a parameter is a dtype.
bool isDtype(const c10::Argument &parameter, const c10::IValue &value);

/// Whether the value of a parameter is an integer, or a list of them, that
/// PyTorch lets depend on sizes.
bool isSize(const c10::Argument &parameter, const c10::IValue &value);

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_EAGER_EAGERCALL_H
