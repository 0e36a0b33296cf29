// SPDX-License-Identifier: Apache-2.0
//===- Schema.h - JSON schema of sdsc_<i>.json ------------------*- C++ -*-===//

#ifndef SPYRE_TARGET_SUPERDSC_WRITER_SCHEMA_H
#define SPYRE_TARGET_SUPERDSC_WRITER_SCHEMA_H

#include "Spyre/Support/Json.h"

namespace spyre::superdsc {

/// A JSON schema (draft 2020-12) of sdsc_<i>.json in both flavours.
Json makeSchema();

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_WRITER_SCHEMA_H
