// SPDX-License-Identifier: Apache-2.0
//===- PlanRules.h - Which rule a plan breaks -------------------*- C++ -*-===//
#ifndef SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_PLANRULES_H
#define SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_PLANRULES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"

namespace mlir::spyre_graph {

/// The rule of --spyre-verify-plan that plans of some graphs have to break,
/// such as of those larger than a card: no core can address what the plan lets
/// it.
inline constexpr llvm::StringLiteral kSpanRule = "SG-PLAN-C10";

/// An error of --spyre-verify-plan with a note of the rule that is broken,
/// which is not printed.
inline InFlightDiagnostic withPlanRule(InFlightDiagnostic &&error,
                                       StringRef rule) {
  Diagnostic &diagnostic = *error.getUnderlyingDiagnostic();
  MLIRContext *context = diagnostic.getLocation()->getContext();
  diagnostic.getMetadata().push_back(
      DiagnosticArgument(Attribute(StringAttr::get(context, rule))));
  return std::move(error);
}

/// Whether an error says that a plan breaks `rule`.
inline bool breaksPlanRule(Diagnostic &error, StringRef rule) {
  return llvm::any_of(
      error.getMetadata(), [&](const DiagnosticArgument &noted) {
        if (noted.getKind() !=
            DiagnosticArgument::DiagnosticArgumentKind::Attribute)
          return false;
        auto name = dyn_cast<StringAttr>(noted.getAsAttribute());
        return name && name.getValue() == rule;
      });
}

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_PLANRULES_H
