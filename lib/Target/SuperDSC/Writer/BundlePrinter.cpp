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
    for (const auto &[strides, number] : orderedMaps())
      text += printMap(strides, number);
    text += "module {\n\tfunc.func @sdsc_bundle(";
    std::vector<std::string> names = parameterNames();
    for (size_t i = 0; i < names.size(); ++i)
      text += (i ? ", %" : "%") + names[i] +
              "_base_addr: !sdscbundle.input_arg<index>";
    text += ")" + segments() + " {\n";
    for (const std::string &name : names)
      text += "\t\t%" + name + " = sdscbundle.input_arg_extract value from %" +
              name + "_base_addr : !sdscbundle.input_arg<index> -> index\n";
    if (!loopCounts.empty()) {
      text += constant("c0", 0) + constant("c1", 1);
      for (size_t i = 0; i < loopCounts.size(); ++i)
        text += constant("loop_bound_" + std::to_string(i), loopCounts[i]);
    }
    for (const Address &address : sums)
      text += printSum(address);
    return text + body + "\t\treturn\n\t}\n}\n";
  }

private:
  static std::string constant(const std::string &name, int64_t value) {
    return "\t\t%" + name + " = arith.constant " + std::to_string(value) +
           " : index\n";
  }

  static std::string argumentName(int64_t number) {
    return "arg_" + std::to_string(number);
  }

  std::vector<std::string> parameterNames() const {
    std::vector<std::string> names;
    if (bundle.hasPoolParameter)
      names.push_back("pool");
    for (int64_t argument : bundle.arguments)
      names.push_back(argumentName(argument));
    return names;
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

  /// The address without its loop terms.
  static Address start(const Address &address) {
    Address result = address;
    result.strides.clear();
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
        loopNumbers[&step] = loopCounts.size();
        loopCounts.push_back(step.count);
        collect(step.body);
        continue;
      }
      for (const Address &address : step.operands) {
        Address own = start(address);
        bool isPlain = own.base == Address::Argument && own.offset == 0;
        std::string name = startName(own);
        if (!isPlain && sumNames.emplace(name, true).second)
          sums.push_back(own);
      }
    }
  }

  static bool moves(const Address &address) {
    return std::any_of(address.strides.begin(), address.strides.end(),
                       [](int64_t stride) { return stride != 0; });
  }

  void printStep(const Step &step, std::vector<int> &loops, std::string &text) {
    std::string indent(loops.size() + 2, '\t');
    if (step.isLoop()) {
      int number = loopNumbers[&step];
      std::string name = std::to_string(number);
      text += indent + "scf.for %i_" + name + " = %c0 to %loop_bound_" + name +
              " step %c1 {\n";
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
      if (moves(address)) {
        std::string own = "addr_" + std::to_string(numApplied++);
        text += indent + "%" + own + " = affine.apply #map_" +
                std::to_string(mapNumber(address.strides)) + "(";
        for (size_t loop = 0; loop < loops.size(); ++loop)
          text += (loop ? ", %i_" : "%i_") + std::to_string(loops[loop]);
        text += ")[%" + name + "]\n";
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

  size_t mapNumber(const std::vector<int64_t> &strides) {
    return maps.emplace(strides, maps.size()).first->second;
  }

  std::vector<std::pair<std::vector<int64_t>, size_t>> orderedMaps() const {
    std::vector<std::pair<std::vector<int64_t>, size_t>> list(maps.begin(),
                                                              maps.end());
    std::sort(list.begin(), list.end(),
              [](const auto &a, const auto &b) { return a.second < b.second; });
    return list;
  }

  static std::string printMap(const std::vector<int64_t> &strides,
                              size_t number) {
    std::string dims, terms;
    for (size_t i = 0; i < strides.size(); ++i) {
      std::string dim = "d" + std::to_string(i);
      dims += (i ? ", " : "") + dim;
      terms += " + " + std::to_string(strides[i]) + "*" + dim;
    }
    return "#map_" + std::to_string(number) + " = affine_map<(" + dims +
           ")[s0] -> (s0" + terms + ")>\n";
  }

  const Bundle &bundle;
  std::map<const Step *, int> loopNumbers;
  std::vector<int64_t> loopCounts;
  std::vector<Address> sums;
  std::map<std::string, bool> sumNames;
  std::map<std::vector<int64_t>, size_t> maps;
  size_t numApplied = 0;
};

} // namespace

std::string spyre::superdsc::printBundle(const Bundle &bundle) {
  return Printer(bundle).print();
}
