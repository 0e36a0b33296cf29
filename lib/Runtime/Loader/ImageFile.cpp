// SPDX-License-Identifier: Apache-2.0
//===- ImageFile.cpp - The bytes of program images ------------------------===//

#include "Spyre/Runtime/Loader/ImageFile.h"
#include "Spyre/Runtime/Loader/LoaderFile.h"
#include "Spyre/Support/BrokenRule.h"
#include "Spyre/Support/MLIRText.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SHA256.h"

#include <algorithm>

using namespace spyre;
using namespace spyre::runtime;
namespace endian = llvm::support::endian;

static constexpr char kMagic[] = "SPYREIMG";
static constexpr uint32_t kVersion = 1;
static constexpr uint64_t kAlignment = DeviceMemory::kBlockInBytes;
/// Above what any kernel has.
static constexpr uint32_t kMaxArguments = 1 << 16, kMaxRank = 64;

// Byte offsets of the fields.
static constexpr size_t kVersionAt = 8, kPayloadAt = 12, kSizeAt = 16,
                        kPayloadSizeAt = 24, kCorrectionAt = 32,
                        kCorrectionRowsAt = 40, kNumArgumentsAt = 44,
                        kPoolAt = 48, kPoolSizeAt = 56, kDigestAt = 64,
                        kDigestBytes = 32, kHeaderBytes = 128;

/// SHA-256 of all bytes, those of the digest taken as zero.
static std::array<uint8_t, kDigestBytes> digestOf(llvm::StringRef bytes) {
  llvm::SHA256 hash;
  hash.update(bytes.take_front(kDigestAt));
  hash.update(std::string(kDigestBytes, '\0'));
  hash.update(bytes.drop_front(kDigestAt + kDigestBytes));
  return hash.result();
}

void spyre::runtime::sealImage(std::string &bytes) {
  if (bytes.size() < kHeaderBytes)
    return;
  auto digest = digestOf(bytes);
  std::copy(digest.begin(), digest.end(), bytes.begin() + kDigestAt);
}

static uint64_t alignUp(uint64_t size) {
  return llvm::alignTo(size, kAlignment);
}

std::string spyre::runtime::encodeImage(const std::string &ktirBytecode,
                                        const TileGroups &tileGroups,
                                        bool isCorrected) {
  std::shared_ptr<Program> program = loadProgramBytes(ktirBytecode);
  const std::vector<ArgumentInfo> &arguments = program->arguments();
  if (tileGroups.size() != arguments.size())
    throw Error("there are " + std::to_string(tileGroups.size()) +
                " lists of tile groups for " +
                std::to_string(arguments.size()) + " arguments");
  uint64_t poolBytes = 0;
  std::string table;
  auto append = [&](uint32_t value) {
    char word[4];
    endian::write32le(word, value);
    table.append(word, sizeof(word));
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ArgumentInfo &argument = arguments[i];
    if (argument.kind == ArgumentInfo::Array && !argument.layout)
      throw Error(
          "array argument '" + argument.name +
          "' has no ktdp.layout: SpyreCode cannot express how it is stored");
    if (argument.kind == ArgumentInfo::Pool) {
      if (i + 1 != arguments.size())
        throw Error("the pool '" + argument.name +
                    "' must be the last argument");
      poolBytes = std::max<uint64_t>(argument.poolBytes, 1);
    }
    append(static_cast<uint32_t>(tileGroups[i].size()));
    for (int32_t group : tileGroups[i])
      append(static_cast<uint32_t>(group));
  }

  std::string image(kHeaderBytes, '\0');
  image += table;
  image.resize(alignUp(image.size()));
  uint64_t payload = image.size();
  image += ktirBytecode;
  image.resize(alignUp(image.size()));
  uint64_t rows = isCorrected ? 1 + arguments.size() : 0;
  uint64_t size = image.size(), pool = size + rows * kCorrectionRowBytes;
  std::copy_n(kMagic, kVersionAt, image.begin());
  char *header = image.data();
  endian::write32le(header + kVersionAt, kVersion);
  endian::write32le(header + kPayloadAt, static_cast<uint32_t>(payload));
  endian::write64le(header + kSizeAt, size);
  endian::write64le(header + kPayloadSizeAt, ktirBytecode.size());
  endian::write64le(header + kCorrectionAt, rows ? size : 0);
  endian::write32le(header + kCorrectionRowsAt, static_cast<uint32_t>(rows));
  endian::write32le(header + kNumArgumentsAt,
                    static_cast<uint32_t>(arguments.size()));
  endian::write64le(header + kPoolAt, poolBytes ? pool : 0);
  endian::write64le(header + kPoolSizeAt, poolBytes);
  sealImage(image);
  return image;
}

namespace {
/// Reads the header and the table of an image.
class ImageReader {
public:
  explicit ImageReader(llvm::StringRef bytes) : bytes(bytes) {}

  ProgramImage read(const std::string &name) {
    readHeader();
    readTable();
    readProgram(name);
    return std::move(image);
  }

private:
  // SPYRECODE-IMAGE-C1
  [[noreturn]] static void fail(const std::string &what) {
    throw BrokenRule("SPYRECODE-IMAGE-C1", what);
  }

  uint32_t word(size_t at) const { return endian::read32le(bytes.data() + at); }
  uint64_t wide(size_t at) const { return endian::read64le(bytes.data() + at); }

  void readHeader() {
    if (bytes.size() < kHeaderBytes)
      fail("an image has a header of " + std::to_string(kHeaderBytes) +
           " bytes, found " + std::to_string(bytes.size()) + " bytes");
    if (!bytes.starts_with(kMagic))
      fail(std::string("an image starts with ") + kMagic);
    if (word(kVersionAt) != kVersion)
      fail("images of version " + std::to_string(kVersion) +
           " are read, found version " + std::to_string(word(kVersionAt)));
    image.sizeInBytes = wide(kSizeAt);
    if (image.sizeInBytes != bytes.size() || bytes.size() % kAlignment != 0)
      fail("the header says " + std::to_string(image.sizeInBytes) +
           " bytes, a multiple of 128, but there are " +
           std::to_string(bytes.size()));
    // SPYRECODE-IMAGE-C2
    auto digest = digestOf(bytes);
    if (!std::equal(digest.begin(), digest.end(),
                    bytes.bytes_begin() + kDigestAt))
      throw BrokenRule("SPYRECODE-IMAGE-C2",
                       "the image is damaged: its checksum does not match");
    payload = word(kPayloadAt);
    payloadSize = wide(kPayloadSizeAt);
    if (payload < kHeaderBytes || payload > bytes.size() ||
        payloadSize > bytes.size() - payload)
      fail("the program of " + std::to_string(payloadSize) + " bytes at " +
           std::to_string(payload) + " does not lie in the image");
    image.correctionOffset = wide(kCorrectionAt);
    image.numCorrectionRows = word(kCorrectionRowsAt);
    image.correctionTag = static_cast<int64_t>(wide(kDigestAt) >> 1);
    image.poolOffset = wide(kPoolAt);
    image.poolBytes = wide(kPoolSizeAt);
    checkRegion("correction tensor", image.correctionOffset,
                image.correctionBytes());
    checkRegion("pool", image.poolOffset, image.poolBytes);
  }

  /// Checks a region that a program needs beside its image: it must lie behind
  /// the image.
  void checkRegion(const char *what, uint64_t offset, uint64_t size) {
    constexpr uint64_t kLimit = uint64_t(16) << 30;
    if (size == 0 && offset == 0)
      return;
    if (size == 0 || size > kLimit || offset > kLimit ||
        offset < bytes.size() || offset % kAlignment != 0)
      fail(std::string("the ") + what + " of " + std::to_string(size) +
           " bytes at " + std::to_string(offset) +
           " is not a region of a segment behind the image");
  }

  void readTable() {
    uint32_t count = word(kNumArgumentsAt);
    if (count > kMaxArguments)
      fail("there are " + std::to_string(count) + " arguments, at most " +
           std::to_string(kMaxArguments) + " are read");
    size_t at = kHeaderBytes;
    auto next = [&] {
      if (payload - at < 4)
        fail("the table of arguments reaches into the program");
      at += 4;
      return word(at - 4);
    };
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t rank = next();
      if (rank > kMaxRank)
        fail("argument " + std::to_string(i) + " has " + std::to_string(rank) +
             " dimensions, at most " + std::to_string(kMaxRank) + " are read");
      std::vector<int32_t> &groups = image.tileGroups.emplace_back();
      for (uint32_t d = 0; d < rank; ++d) {
        auto group = static_cast<int32_t>(next());
        if (group < -1)
          fail("the tile group " + std::to_string(group) + " is not one");
        groups.push_back(group);
      }
    }
  }

  // SPYRECODE-IMAGE-C3
  void readProgram(const std::string &name) {
    auto invalid = [](const std::string &what) {
      return BrokenRule("SPYRECODE-IMAGE-C3", what);
    };
    // Text is for people: its parser is not made for hostile input.
    if (!bytes.substr(payload, payloadSize).starts_with("ML\xefR"))
      throw invalid("the program is not MLIR bytecode");
    // Attributes such as affine maps are text in bytecode.
    if (std::string fault =
            findFaultInBinary(bytes.substr(payload, payloadSize));
        !fault.empty())
      throw invalid("the program's attributes cannot be read: " + fault);
    try {
      image.program =
          loadProgramBytes(bytes.substr(payload, payloadSize).str(), {}, name);
    } catch (const Error &error) {
      std::string text = error.what();
      while (!text.empty() && text.back() == '\n')
        text.pop_back();
      throw invalid("the program cannot be loaded: " + text);
    }
    const std::vector<ArgumentInfo> &arguments = image.program->arguments();
    if (arguments.size() != image.tileGroups.size())
      throw invalid("the program has " + std::to_string(arguments.size()) +
                    " arguments, the header says " +
                    std::to_string(image.tileGroups.size()));
    if (image.numCorrectionRows != 0 &&
        image.numCorrectionRows != arguments.size() + 1)
      throw invalid("the correction tensor has " +
                    std::to_string(image.numCorrectionRows) +
                    " rows, but the program needs " +
                    std::to_string(arguments.size() + 1));
    uint64_t numPools = 0;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const ArgumentInfo &argument = arguments[i];
      size_t rank = argument.shape.size();
      if (argument.kind == ArgumentInfo::Array && !argument.layout)
        throw invalid("array argument '" + argument.name +
                      "' has no ktdp.layout");
      if (image.tileGroups[i].size() != rank)
        throw invalid("argument '" + argument.name + "' has " +
                      std::to_string(rank) + " dimensions, the header says " +
                      std::to_string(image.tileGroups[i].size()));
      if (argument.kind != ArgumentInfo::Pool)
        continue;
      ++numPools;
      if (i + 1 != arguments.size())
        throw invalid("the pool is not the last argument");
      if (image.poolBytes != std::max<uint64_t>(argument.poolBytes, 1))
        throw invalid("the pool has " + std::to_string(argument.poolBytes) +
                      " bytes, the header says " +
                      std::to_string(image.poolBytes));
    }
    if (numPools != (image.poolBytes != 0))
      throw invalid("the program has " + std::to_string(numPools) +
                    " pools, the header says " +
                    std::to_string(image.poolBytes) + " bytes");
  }

  llvm::StringRef bytes;
  ProgramImage image;
  uint64_t payload = 0, payloadSize = 0;
};
} // namespace

ProgramImage spyre::runtime::decodeImage(const std::string &bytes,
                                         const std::string &name) {
  return ImageReader(bytes).read(name);
}
