// SPDX-License-Identifier: Apache-2.0
//===- BundlePrinter.cpp - The model as bundle.mlir -------------*- C++ -*-===//
//
// Printed by hand: the reference's text has tabs, names and an order of
// constants that MLIR's printer does not keep.
//
//===----------------------------------------------------------------------===//

#include "Spyre/Target/SuperDSC/Writer/BundlePrinter.h"
#include "Spyre/Target/SuperDSC/Model/BundleProgram.h"

#include <algorithm>
#include <map>
#include <tuple>

using namespace spyre::superdsc;

namespace {

class Printer {
public:
  explicit Printer(const Bundle &bundle) : bundle(bundle) {
    collect(bundle.steps);
  }

  std::string print() {
    std::string body;
    std::vector<int> loops;
    for (const Step &step : bundle.steps)
      printStep(step, loops, body);

    std::string text;
    for (const auto &[terms, number] : orderedMaps())
      text += printMap(terms, number);
    text += "module {\n\tfunc.func @sdsc_bundle(";
    std::vector<Parameter> parameters = getParameters();
    for (size_t i = 0; i < parameters.size(); ++i)
      text += (i ? ", %" : "%") + parameters[i].name + parameters[i].suffix +
              ": " + parameters[i].type;
    text += ")" + segments() + " {\n";
    for (const Parameter &own : parameters)
      text += "\t\t%" + own.name +
              " = sdscbundle.input_arg_extract value from %" + own.name +
              own.suffix + " : " + own.type + " -> index\n";
    if (!bundleLoops.empty())
      text += constant("c0", 0);
    if (std::any_of(bundleLoops.begin(), bundleLoops.end(),
                    [](const Step *loop) { return !loop->size; }))
      text += constant("c1", 1);
    for (size_t i = 0; i < bundleLoops.size(); ++i) {
      const Step &loop = *bundleLoops[i];
      std::string number = std::to_string(i);
      text += loop.size ? constant("step_" + number, loop.tile)
                        : constant("loop_bound_" + number, loop.count);
    }
    for (const Address &address : sums)
      text += printSum(address);
    return text + body + "\t\treturn\n\t}\n}\n";
  }

private:
  struct Parameter {
    std::string name, suffix, type;
  };
  /// What an address adds to its start: a multiple of each loop's counter, and
  /// of sizes, without their numbers.
  struct Terms {
    std::vector<int64_t> strides;
    std::vector<std::pair<int64_t, int64_t>> sizes;

    explicit Terms(const Address &address) : strides(address.strides) {
      for (const SizeTerm &term : address.sizes)
        sizes.emplace_back(term.factor, term.divisor);
    }
    bool operator<(const Terms &other) const {
      return std::tie(strides, sizes) < std::tie(other.strides, other.sizes);
    }
  };

  static std::string constant(const std::string &name, int64_t value) {
    return "\t\t%" + name + " = arith.constant " + std::to_string(value) +
           " : index\n";
  }

  static std::string argumentName(int64_t number) {
    return "arg_" + std::to_string(number);
  }

  std::string sizeName(size_t number) const {
    return "dim_" + bundle.sizes[number].name;
  }

  std::vector<Parameter> getParameters() const {
    std::vector<Parameter> list;
    const std::string type = "!sdscbundle.input_arg<index";
    if (bundle.hasPoolParameter)
      list.push_back({"pool", "_base_addr", type + ">"});
    for (int64_t argument : bundle.arguments)
      list.push_back({argumentName(argument), "_base_addr", type + ">"});
    for (size_t number = 0; number < bundle.sizes.size(); ++number) {
      const SizeParameter &size = bundle.sizes[number];
      list.push_back({sizeName(number), "_base",
                      type +
                          ", granularity=" + std::to_string(size.granularity) +
                          ", max_value=" + std::to_string(size.maximum) + ">"});
    }
    return list;
  }

  std::string segments() const {
    if (!bundle.segments)
      return "";
    std::string numbers;
    for (int64_t segment : *bundle.segments)
      numbers += (numbers.empty() ? ": " : ", ") + std::to_string(segment);
    return std::string(" attributes {") + kSegmentsAttribute + " = array<i64" +
           numbers + ">}";
  }

  /// The address without what it adds.
  static Address start(const Address &address) {
    Address result = address;
    result.strides.clear();
    result.sizes.clear();
    return result;
  }

  static std::string startName(const Address &address) {
    std::string offset = std::to_string(address.offset);
    switch (address.base) {
    case Address::Argument:
      return argumentName(address.argument) +
             (address.offset ? "_core_" + offset : "");
    case Address::Pool:
      return "pool_addr_" + offset;
    case Address::None:
      break;
    }
    return "address_" + offset;
  }

  static std::string printSum(const Address &address) {
    std::string offset = std::to_string(address.offset), name, base;
    if (address.base == Address::None)
      return constant(startName(address), address.offset);
    if (address.base == Address::Pool) {
      base = "pool";
      name = "pool_offset_" + offset;
    } else {
      base = argumentName(address.argument);
      name = base + "_core_offset_" + offset;
    }
    return constant(name, address.offset) + "\t\t%" + startName(address) +
           " = arith.addi %" + base + ", %" + name + " : index\n";
  }

  void collect(const std::vector<Step> &steps) {
    for (const Step &step : steps) {
      if (step.isLoop()) {
        loopNumbers[&step] = bundleLoops.size();
        bundleLoops.push_back(&step);
        collect(step.body);
        continue;
      }
      for (const Address &address : step.operands) {
        if (address.getSize())
          continue;
        Address own = start(address);
        bool isPlain = own.base == Address::Argument && own.offset == 0;
        std::string name = startName(own);
        if (!isPlain && sumNames.emplace(name, true).second)
          sums.push_back(own);
      }
    }
  }

  static bool moves(const Address &address) {
    return !address.sizes.empty() ||
           std::any_of(address.strides.begin(), address.strides.end(),
                       [](int64_t stride) { return stride != 0; });
  }

  void printStep(const Step &step, std::vector<int> &loops, std::string &text) {
    std::string indent(loops.size() + 2, '\t');
    if (step.isLoop()) {
      int number = loopNumbers[&step];
      std::string name = std::to_string(number);
      text += indent + "scf.for %i_" + name + " = %c0 to %" +
              (step.size ? sizeName(*step.size) : "loop_bound_" + name) +
              " step %" + (step.size ? "step_" + name : "c1") + " {\n";
      loops.push_back(number);
      for (const Step &inner : step.body)
        printStep(inner, loops, text);
      loops.pop_back();
      text += indent + "}\n";
      return;
    }
    std::string operands, symbols;
    for (size_t i = 0; i < step.operands.size(); ++i) {
      const Address &address = step.operands[i];
      std::string name = startName(start(address));
      if (auto size = address.getSize()) {
        name = sizeName(*size);
      } else if (moves(address)) {
        std::string own = "addr_" + std::to_string(numApplied++);
        text += indent + "%" + own + " = affine.apply #map_" +
                std::to_string(mapNumber(Terms(perCount(address, loops)))) +
                "(";
        for (size_t loop = 0; loop < loops.size(); ++loop)
          text += (loop ? ", %i_" : "%i_") + std::to_string(loops[loop]);
        text += ")[%" + name;
        for (const SizeTerm &term : address.sizes)
          text += ", %" + sizeName(term.size);
        text += "]\n";
        name = own;
      }
      operands += (i ? ", %" : "%") + name;
      symbols += (i ? ", " : "") + std::to_string(step.symbols[i]);
    }
    text += indent + "sdscbundle.sdsc_execute (" + operands +
            ") {sdsc_filename=\"" + step.file + "\"";
    if (!symbols.empty())
      text += ", \"symbol_ids\"=[" + symbols + "]";
    text += "}\n";
  }

  /// With strides per step of each loop's counter, which counts the elements of
  /// a size where the loop runs up to one.
  Address perCount(const Address &address, const std::vector<int> &loops) {
    Address result = address;
    for (size_t i = 0; i < loops.size(); ++i)
      result.strides[i] /= bundleLoops[loops[i]]->tile;
    return result;
  }

  size_t mapNumber(const Terms &terms) {
    return maps.emplace(terms, maps.size()).first->second;
  }

  std::vector<std::pair<Terms, size_t>> orderedMaps() const {
    std::vector<std::pair<Terms, size_t>> list(maps.begin(), maps.end());
    std::sort(list.begin(), list.end(),
              [](const auto &a, const auto &b) { return a.second < b.second; });
    return list;
  }

  static std::string printMap(const Terms &terms, size_t number) {
    std::string dims, symbols = "s0", sum;
    for (size_t i = 0; i < terms.strides.size(); ++i) {
      std::string dim = "d" + std::to_string(i);
      dims += (i ? ", " : "") + dim;
      sum += " + " + std::to_string(terms.strides[i]) + "*" + dim;
    }
    for (size_t i = 0; i < terms.sizes.size(); ++i) {
      auto [factor, divisor] = terms.sizes[i];
      std::string symbol = "s" + std::to_string(i + 1);
      symbols += ", " + symbol;
      sum += " + " + std::to_string(factor) + "*" +
             (divisor == 1 ? symbol
                           : "(" + symbol + " floordiv " +
                                 std::to_string(divisor) + ")");
    }
    return "#map_" + std::to_string(number) + " = affine_map<(" + dims + ")[" +
           symbols + "] -> (s0" + sum + ")>\n";
  }

  const Bundle &bundle;
  std::map<const Step *, int> loopNumbers;
  std::vector<const Step *> bundleLoops;
  std::vector<Address> sums;
  std::map<std::string, bool> sumNames;
  std::map<Terms, size_t> maps;
  size_t numApplied = 0;
};

} // namespace

std::string spyre::superdsc::printBundle(const Bundle &bundle) {
  return Printer(bundle).print();
}
