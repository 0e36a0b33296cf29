// SPDX-License-Identifier: Apache-2.0
//
// Names of device operations in SuperDSC bundles (spec/superdsc.md, "OpFunc
// strings"), and their constants. Each operation of the dialect lists those
// that it executes; Spyre/Target/SuperDSC/Model/DeviceOps.td makes a table of all.
//
#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_DEVICENAMES_TD
#define SPYRE_DIALECT_SPYREGRAPH_IR_DEVICENAMES_TD

/// A constant: `n`, its name in bundles, and `attr`, the attribute of the
/// operation that it is. One that is `optional` may be absent from a bundle.
class DeviceConstant<string n, string k, string attr, bit optional = false,
                     int limit = 0, string default = "std::nullopt"> {
  string name = n;
  string kind = "ConstantKind::" # k;
  string attribute = attr;
  bit isOptional = optional;
  /// Integer: the least one. Bound: the operand's position.
  int number = limit;
  /// The value that is not written; an expression.
  string omitted = default;
}
/// An F64Attr.
class Float<string n, string attr = n, bit optional = false>
    : DeviceConstant<n, "Float", attr, optional>;
/// An F64Attr that bundles have only if it is not 1.
class Factor<string n, string attr = n>
    : DeviceConstant<n, "Float", attr, true, 0, "1.0">;
/// A UnitAttr, written as 1 or 0 in a floating-point format.
class FloatFlag<string n, string attr>
    : DeviceConstant<n, "FloatFlag", attr, true>;
/// A UnitAttr, written as an integer.
class Flag<string n, string attr = n> : DeviceConstant<n, "Flag", attr>;
/// An I64Attr, which is at least `least`.
class Integer<string n, int least = -2147483647>
    : DeviceConstant<n, "Integer", n, false, least>;
/// An I64Attr that bundles have only if it is not 0.
class Count<string n, string attr>
    : DeviceConstant<n, "Integer", attr, true, 0, "0.0">;
/// The same, if it is not 1; at least 1.
class Length<string n, string attr = n>
    : DeviceConstant<n, "Integer", attr, true, 1, "1.0">;
/// A TypedAttr.
class Number<string n> : DeviceConstant<n, "Number", n>;
/// An I64Attr that names a loop dimension.
class LoopDim<string n> : DeviceConstant<n, "LoopDim", n>;
/// The immediate at a position.
class Bound<string n, int position>
    : DeviceConstant<n, "Bound", "", false, position>;
/// A constant that nothing here executes.
class Unread<string n, bit optional = false>
    : DeviceConstant<n, "Unread", "", optional>;

/// A device operation's name. What is not said here is as the operation that
/// lists it has it.
class DeviceName<string n, bit published, list<DeviceConstant> c, string k,
                 int least, int most, bit nonstick, string implied, bit swaps,
                 string what, string source> {
  string name = n;
  /// Not an extension of this project.
  bit isPublished = published;
  list<DeviceConstant> constants = c;
  /// Family: a case of OpKind.
  string kind = k;
  /// Number of operands that are not the result; immediates count.
  int minInputs = least;
  int maxInputs = most;
  /// Reductions have a variant that does not reduce the stick dimension.
  bit hasNonstick = nonstick;
  /// Attributes of the operation under this name, in MLIR's syntax.
  string attributes = implied;
  /// The operation takes its two inputs the other way round.
  bit swapsInputs = swaps;
  /// For the documentation: what it does, and where that is from: published (a
  /// name with one usual meaning), inferred (from the reference's lowering or
  /// the name), ours.
  string meaning = what;
  string basis = source;
}
/// A name of the public record.
class Published<string n, list<DeviceConstant> constants = [], string kind = "",
                int minInputs = -1, int maxInputs = minInputs,
                bit hasNonstick = true, string attributes = "",
                bit swapsInputs = false, string meaning = "",
                string basis = "published">
    : DeviceName<n, true, constants, kind, minInputs, maxInputs, hasNonstick,
                 attributes, swapsInputs, meaning, basis>;
/// A name that this project adds.
class Extension<string n, list<DeviceConstant> constants = [], string kind = "",
                int minInputs = -1, int maxInputs = minInputs,
                string meaning = "", string basis = "ours",
                string attributes = "">
    : DeviceName<n, false, constants, kind, minInputs, maxInputs, true,
                 attributes, false, meaning, basis>;

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_DEVICENAMES_TD
