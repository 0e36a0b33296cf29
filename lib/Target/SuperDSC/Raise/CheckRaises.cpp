// SPDX-License-Identifier: Apache-2.0
//===- CheckRaises.cpp - Whether a program can be raised --------*- C++ -*-===//

#include "Spyre/Target/SuperDSC/Raise/RaiseGraph.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;

void spyre::superdsc::checkRaises(const BundleProgram &program,
                                  const RaiseOptions &options, Report &report) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    auto place = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>();
    std::string file = place ? place.getFilename().str() : kManifestFile;
    std::string message = diagnostic.str();
    StringRef text = message;
    text.consume_front(file + ": ");
    // SDSC-MANIFEST-C3
    report.add(file, "", "SDSC-MANIFEST-C3", text.str(),
               place ? place.getLine() : 0, place ? place.getColumn() : 0);
  });
  (void)raiseProgram(program, options, &context);
}
