// SPDX-License-Identifier: Apache-2.0
// Corrupt bytecode, on which upstream's reader crashes, is an error in every tool
// that reads it, and so is bytecode that is not complete.
// RUN: rm -rf %t && split-file %s %t
// RUN: %python -c "import base64; open(r'%t/corrupt.mlirbc', 'wb').write(base64.b64decode(open(r'%t/corrupt.txt').read()))"
// RUN: not spyre-opt %t/corrupt.mlirbc 2>&1 | FileCheck %s --check-prefix=CORRUPT
// RUN: not spyre-run %t/corrupt.mlirbc 2>&1 | FileCheck %s --check-prefix=CORRUPT
// RUN: not spyre-translate --ktir-to-text %t/corrupt.mlirbc 2>&1 | FileCheck %s --check-prefix=CORRUPT
// CORRUPT: corrupt.mlirbc:0:0: error: expected bytecode of MLIR, found a corrupt file: reading it ends with signal 11
// RUN: spyre-opt --emit-bytecode %t/fine.mlir -o %t/fine.mlirbc
// RUN: spyre-opt %t/fine.mlirbc | FileCheck %s --check-prefix=FINE
// FINE: return %{{.*}} : i32
// RUN: %python -c "open(r'%t/part.mlirbc', 'wb').write(open(r'%t/fine.mlirbc', 'rb').read()[:100])"
// RUN: not spyre-opt %t/part.mlirbc 2>&1 | FileCheck %s --check-prefix=PART
// RUN: not spyre-run %t/part.mlirbc 2>&1 | FileCheck %s --check-prefix=PART
// PART: part.mlirbc:0:0: error: attempting to parse

//--- fine.mlir
func.func @f(%x: i32) -> i32 {
  return %x : i32
}
//--- corrupt.txt
TUzvUg1NTElSMjIuMS44AAEXBQEFBwEDCwMFBw8DHw8FAQ8LEwsLExMTAQUPFwI9BQkXAQEBDQMF
CxcBAwMXAQMdFwEFBwECAgUDAQMBBD0AAVADAQcELQMBBQNQCQMHBBkDAwcDAwsABQQNAwEGAwEF
AQBvDQUnDw8LEWJ1aWx0aW4AZnVuYwBtb2R1bGUAcmV0dXJuAC90bXAvaDIvc21hbGwubWxpcgBm
AAgXBQUBAQ0BBQEBBwE=
