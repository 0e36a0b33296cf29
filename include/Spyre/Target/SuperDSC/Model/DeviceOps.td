// SPDX-License-Identifier: Apache-2.0
//
// The table of device operations: what the operations of spyre_graph execute,
// and published names that nothing here does.
//
#ifndef SPYRE_TARGET_SUPERDSC_DEVICEOPS_TD
#define SPYRE_TARGET_SUPERDSC_DEVICEOPS_TD

include "llvm/TableGen/SearchableTable.td"
include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphAllOps.td"

/// One device operation and what executes it.
class DeviceOp<DeviceName device, string defaultKind, int minOperands,
               int maxOperands, string op, string mask, string summary> {
  defvar own = !if(!empty(device.kind), defaultKind, device.kind);
  defvar least = !if(!lt(device.minInputs, 0), minOperands, device.minInputs);
  defvar most = !if(!lt(device.maxInputs, 0), maxOperands, device.maxInputs);
  bit isExtension = !not(device.isPublished);
  string name = device.name;
  string kind = "OpKind::" # own;
  bits<8> minInputs = least;
  bits<8> maxInputs = most;
  string graphOp = op;
  bit hasNonstick = !and(!eq(own, "Reduction"), device.hasNonstick);
  string attributes = device.attributes;
  bit swapsInputs = device.swapsInputs;
  string maskValue = mask;
  // For the documentation.
  string meaning = !if(!empty(device.meaning), summary, device.meaning);
  string basis = device.basis;
  list<DeviceConstant> constants = device.constants;
}

/// One of its constants.
class DeviceOpConstant<string name, int at, DeviceConstant constant> {
  string op = name;
  bits<8> position = at;
  string constantName = constant.name;
  string kind = constant.kind;
  string attribute = constant.attribute;
  bit isOptional = constant.isOptional;
  string number = !cast<string>(constant.number);
  string omitted = constant.omitted;
}

foreach op = !instances<SpyreGraph_DeviceOp>() in
  foreach device = op.deviceNames in {
    def : DeviceOp<device, op.deviceKind, op.minOperands, op.maxOperands,
                   op.opName, op.maskValue, op.summary>;
    foreach at = !range(device.constants) in
      def : DeviceOpConstant<device.name, at, device.constants[at]>;
  }

/// Names that nothing here executes.
class Unexecuted<string k, int least, int most, list<string> n,
                 list<DeviceConstant> c = []> {
  string kind = k;
  int minInputs = least;
  int maxInputs = most;
  list<string> names = n;
  list<DeviceConstant> constants = c;
}
def : Unexecuted<"Matmul", 2, 2,
    ["batchmatmulint4"]>;
def : Unexecuted<"Convolution", 2, 3,
    ["conv2dfp8", "conv2dint4", "conv2dint8"]>;
def : Unexecuted<"Pooling", 1, 2, ["avgpoolfwd"], [Unread<"nmap">]>;
def : Unexecuted<"Pooling", 1, 2, ["avgpoolnmapfwd", "maxpoolfwd"]>;
def : Unexecuted<"Pooling", 2, 3, ["depthwiseconv2dnative"]>;
def : Unexecuted<"TopK", 1, 2, ["maskbyindex"]>;
def : Unexecuted<"Quantization", 1, 3,
    ["csqint4", "csqint4wt", "csqint8mb"],
    [Unread<"scaleact", true>, Unread<"shiftact", true>]>;
def : Unexecuted<"Quantization", 1, 1, ["qfp8mb"]>;

foreach family = !instances<Unexecuted>() in
  foreach name = family.names in {
    def : DeviceOp<Published<name, family.constants, basis="">, family.kind,
                   family.minInputs, family.maxInputs, "", "0.0", "">;
    foreach at = !range(family.constants) in
      def : DeviceOpConstant<name, at, family.constants[at]>;
  }

// Sorted by their fields: published names first.
def DeviceOps : GenericTable {
  let FilterClass = "DeviceOp";
  let Fields = ["isExtension", "name", "kind", "minInputs", "maxInputs",
                "graphOp", "hasNonstick", "attributes", "swapsInputs",
                "maskValue"];
  string TypeOf_kind = "code";
  string TypeOf_maskValue = "code";
}
def lookupDeviceOp : SearchIndex {
  let Table = DeviceOps;
  let Key = ["name"];
}
def DeviceOpConstants : GenericTable {
  let FilterClass = "DeviceOpConstant";
  let Fields = ["op", "position", "constantName", "kind", "attribute",
                "isOptional", "number", "omitted"];
  string TypeOf_kind = "code";
  string TypeOf_number = "code";
  string TypeOf_omitted = "code";
}

#endif // SPYRE_TARGET_SUPERDSC_DEVICEOPS_TD
