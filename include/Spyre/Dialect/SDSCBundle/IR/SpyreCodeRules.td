// SPDX-License-Identifier: Apache-2.0
//
// The rules that spyrecode.json, its program images and launches obey,
// numbered (docs/internals/spyrecode.md). Appended to the description of the
// dialect.

#ifndef SPYRE_DIALECT_SDSCBUNDLE_IR_SPYRECODERULES_TD
#define SPYRE_DIALECT_SDSCBUNDLE_IR_SPYRECODERULES_TD

defvar kSpyreCodeRules = [{
    SpyreCode, files:
    - SPYRECODE-FILE-C1: `spyrecode.json` and images are regular files in the
      folder, by plain names, not reached through a link, and not larger than is
      read.
    - SPYRECODE-FILE-C2: `spyrecode.json` is JSON with distinct keys, 64-bit
      integers and bounded nesting.

    SpyreCode, form:
    - SPYRECODE-FORM-C1: the top object holds the lists `JobPreparationPlan` and
      `JobExecPlan` of objects with `command` and `properties`.
    - SPYRECODE-FORM-C2: a command has every property that it needs, of the
      right type.
    - SPYRECODE-FORM-C3: a command has no other properties, and all commands
      have those of one flavour.
    - SPYRECODE-FORM-C4: numbers are integers, or strings of decimal or
      hexadecimal ones, not negative, below 2^63.

    SpyreCode, preparation:
    - SPYRECODE-PREP-C1: one Allocate comes first, at least one InitTransfer
      follows, and nothing else.
    - SPYRECODE-PREP-C2: the allocation is a positive multiple of 128 bytes that
      fits the segment.
    - SPYRECODE-PREP-C3: the regions of InitTransfers lie in the allocation and
      do not overlap.
    - SPYRECODE-PREP-C4: a file has as many bytes as its InitTransfer says.
    - SPYRECODE-ADDRESS-C1: addresses are multiples of 128 in segment 7, which
      is 16 GiB from 0x1C00000000.

    SpyreCode, execution:
    - SPYRECODE-EXEC-C1: the plan holds ComputeOnHost, DataTransfer and
      ComputeOnDevice, at least one of the last.
    - SPYRECODE-EXEC-C2: a program starts where an InitTransfer put an image.
    - SPYRECODE-EXEC-C3: a handle is made before it is used, once; `iargs` are
      the launch's arguments.
    - SPYRECODE-EXEC-C4: a DataTransfer moves a whole handle to or from the
      allocation, and writes no image.
    - SPYRECODE-EXEC-C5: after a ComputeOnHost at the start comes its transfer to
      the device, then nothing but ComputeOnDevice.
    - SPYRECODE-EXEC-C6: all programs take the same arguments.
    - SPYRECODE-HOST-C1: `ishape` is one number: the values in the input handle,
      for `iargs` as many as programs have arguments, or 0 for none of them.
    - SPYRECODE-HOST-C2: the output has 128 bytes for each row that `hcm`
      describes.
    - SPYRECODE-HOST-C3: `hcm` holds `vdci`, a list of rows, and `senConstants`,
      an object of constant rows; every row is said once and refers to what
      there is.

    SpyreCode, images:
    - SPYRECODE-IMAGE-C1: an image has the header and sizes of
      docs/internals/spyrecode.md.
    - SPYRECODE-IMAGE-C2: the checksum of an image is right.
    - SPYRECODE-IMAGE-C3: the program of an image can be loaded, and the header
      agrees with its arguments.
    - SPYRECODE-IMAGE-C4: the correction tensor and the pool of an image lie in
      the allocation, apart from images and each other.
    - SPYRECODE-IMAGE-C5: a program that takes a correction tensor runs after the
      tensor has been transferred, and its rows are the tag and the arguments.

    SpyreCode, launches:
    - SPYRECODE-LAUNCH-C1: a launch has one argument per argument of the program.
    - SPYRECODE-LAUNCH-C2: tensors and numbers are of the kinds, types and ranks
      of the program's; a number keeps granularity and bounds.
    - SPYRECODE-LAUNCH-C3: the sizes of a tensor are the program's, or multiples
      of them where no size that is given says how long a dimension is.
    - SPYRECODE-LAUNCH-C4: the dimensions of one tile group are larger by the
      same factor.
    - SPYRECODE-LAUNCH-C5: larger tensors need tiled launches to be allowed.
    - SPYRECODE-LAUNCH-C6: the dimensions that are tiled are tile groups of
      the program, each all of it; of several programs, every tensor has a
      dimension in each of them.
    - SPYRECODE-LAUNCH-C7: tensors, and tiles of larger ones, are stored as the
      program expects.
  }];

#endif // SPYRE_DIALECT_SDSCBUNDLE_IR_SPYRECODERULES_TD
