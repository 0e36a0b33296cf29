// SPDX-License-Identifier: Apache-2.0
//===- SpyreCodeReader.cpp - Checking spyrecode.json and its images -------===//

#include "Commands.h"

#include "Spyre/Runtime/Loader/ImageFile.h"
#include "Spyre/Support/BrokenRule.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <map>
#include <set>

using namespace spyre;
using namespace spyre::spyrecode;
using runtime::ArgumentInfo;
using runtime::CorrectionRow;
using runtime::Job;
using runtime::JobStep;
using runtime::ProgramImage;
using superdsc::Report;

static constexpr uint64_t kBlock = runtime::DeviceMemory::kBlockInBytes;
/// All images together: one file may be named more than once.
static constexpr size_t kMaxImageBytes = size_t(256) << 20;
/// All handles together: their buffers are made when a plan is prepared.
static constexpr uint64_t kMaxBufferBytes = uint64_t(16) << 20;
static constexpr const char *kInputs = "iargs";

namespace {
/// [begin, end) in the allocation.
struct Region {
  uint64_t begin, end;
  bool overlaps(const Region &other) const {
    return begin < other.end && other.begin < end;
  }
  bool operator==(const Region &other) const {
    return begin == other.begin && end == other.end;
  }
};

class CodeReader {
public:
  CodeReader(const FileReader &readFile, Report &report)
      : readFile(readFile), report(report) {}

  std::optional<Job> read(const std::string &text) {
    JsonError error;
    std::optional<Json> json = parseJson(text, error);
    if (!json) {
      // SPYRECODE-FILE-C2
      report.add(kCodeFile, error.path, "SPYRECODE-FILE-C2", error.message,
                 error.line, error.column);
      return std::nullopt;
    }
    std::optional<Commands> commands = readCommands(*json, report);
    if (!commands)
      return std::nullopt;
    readPreparation(commands->preparation);
    if (report.ok())
      readExecution(commands->execution);
    if (report.ok())
      checkImages();
    if (report.ok())
      checkCorrections();
    if (!report.ok())
      return std::nullopt;
    return std::move(job);
  }

private:
  void fail(const std::string &path, const char *rule, std::string message) {
    report.add(kCodeFile, path, rule, std::move(message));
  }

  //===--------------------------------------------------------------------===//
  // Preparation
  //===--------------------------------------------------------------------===//

  void readPreparation(const std::vector<Command> &commands) {
    // SPYRECODE-PREP-C1
    bool isRight =
        commands.size() >= 2 && commands.front().kind == Command::Allocate;
    for (size_t i = 1; i < commands.size(); ++i)
      isRight &= commands[i].kind == Command::InitTransfer;
    if (!isRight) {
      fail("/JobPreparationPlan", "SPYRECODE-PREP-C1",
           "expected one Allocate, then at least one InitTransfer");
      return;
    }
    const Command &allocate = commands.front();
    // SPYRECODE-PREP-C2
    if (allocate.size == 0 || allocate.size % kBlock != 0 ||
        allocate.size > kSegmentBytes)
      fail(allocate.at("size"), "SPYRECODE-PREP-C2",
           std::to_string(allocate.size) +
               " is not a positive multiple of 128 of at most 16 GiB");
    job.sizeInBytes = allocate.size;
    for (size_t i = 1; i < commands.size() && !report.isFull(); ++i)
      readTransfer(commands[i]);
  }

  /// The region of `size` bytes at the command's address, or nothing.
  std::optional<Region> getRegion(const Command &command, const char *rule) {
    // SPYRECODE-ADDRESS-C1
    if (command.address < kSegmentStart ||
        command.address - kSegmentStart >= kSegmentBytes ||
        command.address % kBlock != 0) {
      fail(command.at("dev_ptr"), "SPYRECODE-ADDRESS-C1",
           "0x" + llvm::utohexstr(command.address) +
               " is not a multiple of 128 from 0x1C00000000 to 0x1FFFFFFF80");
      return std::nullopt;
    }
    uint64_t begin = command.address - kSegmentStart;
    if (begin > job.sizeInBytes || command.size > job.sizeInBytes - begin) {
      fail(command.at("size"), rule,
           std::to_string(command.size) + " bytes from byte " +
               std::to_string(begin) + " of the allocation of " +
               std::to_string(job.sizeInBytes));
      return std::nullopt;
    }
    return Region{begin, begin + command.size};
  }

  void readTransfer(const Command &command) {
    // SPYRECODE-PREP-C3
    std::optional<Region> region = getRegion(command, "SPYRECODE-PREP-C3");
    if (!region)
      return;
    // A transfer of nothing would meet no other.
    Region covered{region->begin,
                   std::max(region->end, region->begin + kBlock)};
    for (const Region &other : imageRegions)
      if (covered.overlaps(other)) {
        fail(command.at("dev_ptr"), "SPYRECODE-PREP-C3",
             "the regions of two InitTransfers overlap");
        return;
      }
    std::string message;
    std::optional<std::string> bytes =
        readFile(command.file, kMaxImageBytes - imageBytes, message);
    if (!bytes) {
      // SPYRECODE-FILE-C1
      fail(command.at("file"), "SPYRECODE-FILE-C1",
           "'" + command.file.substr(0, 80) + "': " + message);
      return;
    }
    // SPYRECODE-PREP-C4
    if (bytes->size() != command.size) {
      fail(command.at("size"), "SPYRECODE-PREP-C4",
           "'" + command.file + "' has " + std::to_string(bytes->size()) +
               " bytes, not " + std::to_string(command.size));
      return;
    }
    imageBytes += bytes->size();
    imageRegions.push_back(covered);
    fileNames.push_back(command.file);
    job.transfers.push_back({region->begin, std::move(*bytes)});
  }

  //===--------------------------------------------------------------------===//
  // Execution
  //===--------------------------------------------------------------------===//

  void readExecution(const std::vector<Command> &commands) {
    bool computes = false;
    for (const Command &command : commands) {
      if (report.isFull())
        return;
      switch (command.kind) {
      case Command::ComputeOnHost:
        readHostCompute(command);
        break;
      case Command::DataTransfer:
        readDataTransfer(command);
        break;
      case Command::ComputeOnDevice:
        computes = true;
        readCompute(command);
        break;
      default:
        // SPYRECODE-EXEC-C1
        fail(command.path, "SPYRECODE-EXEC-C1",
             "the command is not allowed in JobExecPlan");
      }
    }
    if (!computes)
      fail("/JobExecPlan", "SPYRECODE-EXEC-C1",
           "the plan has no ComputeOnDevice");
    if (report.ok())
      checkOrder();
  }

  // SPYRECODE-EXEC-C5
  void checkOrder() {
    const std::vector<JobStep> &steps = job.steps;
    if (steps.front().kind != JobStep::HostCompute)
      return;
    bool isRight = steps.size() >= 3 && steps[1].kind == JobStep::H2D &&
                   steps[1].buffer == steps[0].buffer;
    for (size_t i = 2; i < steps.size(); ++i)
      isRight &= steps[i].kind == JobStep::Compute;
    if (!isRight)
      fail("/JobExecPlan", "SPYRECODE-EXEC-C5",
           "after a ComputeOnHost at the start expected its DataTransfer to "
           "the device, then ComputeOnDevice only");
  }

  /// Defines a handle; nothing if it is there already.
  std::optional<size_t> defineHandle(const Command &command, const char *key,
                                     const std::string &name, uint64_t bytes) {
    // SPYRECODE-EXEC-C3
    if (name.empty() || name == kInputs ||
        !handles.emplace(name, job.bufferBytes.size()).second) {
      fail(command.at(key), "SPYRECODE-EXEC-C3",
           "'" + name.substr(0, 80) + "' is not the name of a new handle");
      return std::nullopt;
    }
    job.bufferBytes.push_back(bytes);
    // SPYRECODE-EXEC-C4
    if (bytes > kMaxBufferBytes - bufferBytes) {
      fail(command.at("size"), "SPYRECODE-EXEC-C4",
           "handles have at most " + std::to_string(kMaxBufferBytes) +
               " bytes together");
      return std::nullopt;
    }
    bufferBytes += bytes;
    return job.bufferBytes.size() - 1;
  }

  std::optional<size_t> findHandle(const Command &command, const char *key,
                                   const std::string &name) {
    auto found = handles.find(name);
    if (found != handles.end())
      return found->second;
    // SPYRECODE-EXEC-C3
    fail(command.at(key), "SPYRECODE-EXEC-C3",
         "there is no handle '" + name.substr(0, 80) + "' at this point");
    return std::nullopt;
  }

  void readHostCompute(const Command &command) {
    JobStep step;
    step.kind = JobStep::HostCompute;
    // SPYRECODE-HOST-C1
    if (command.inputShape.size() != 1) {
      fail(command.at("ishape"), "SPYRECODE-HOST-C1",
           "expected one number, found " +
               std::to_string(command.inputShape.size()));
      return;
    }
    uint64_t numInputs = command.inputShape.front();
    if (command.inputHandle != kInputs) {
      step.inputBuffer = findHandle(command, "ihandle", command.inputHandle);
      if (!step.inputBuffer)
        return;
      uint64_t bytes = job.bufferBytes[*step.inputBuffer];
      if (numInputs > bytes / 8) {
        fail(command.at("ishape"), "SPYRECODE-HOST-C1",
             std::to_string(numInputs) + " values are not in the " +
                 std::to_string(bytes) + " bytes of '" +
                 command.inputHandle.substr(0, 80) + "'");
        return;
      }
    } else if (numInputs != 0) {
      inputCounts.emplace_back(command.at("ishape"), numInputs);
    }
    // Whatever else is wrong, the handle is there for those who use it.
    auto buffer =
        defineHandle(command, "ohandle", command.outputHandle, command.size);
    step.rows = readRows(command, numInputs);
    // SPYRECODE-HOST-C2
    if (!step.rows.empty() &&
        command.size != step.rows.size() * runtime::kCorrectionRowBytes)
      fail(command.at("output"), "SPYRECODE-HOST-C2",
           "the output has " + std::to_string(command.size) +
               " bytes, but hcm describes " + std::to_string(step.rows.size()) +
               " rows of 128");
    if (!buffer)
      return;
    step.numInputs = static_cast<int64_t>(numInputs);
    step.buffer = *buffer;
    makers[*buffer] = job.steps.size();
    job.steps.push_back(std::move(step));
  }

  /// The rows that `hcm` describes, each once.
  std::vector<CorrectionRow> readRows(const Command &command,
                                      uint64_t numInputs) {
    // SPYRECODE-HOST-C3
    std::map<uint64_t, CorrectionRow> rows;
    size_t numErrors = report.get().size();
    for (const CommandRow &given : command.rows) {
      bool isRight = given.rule.source != CorrectionRow::Input ||
                     (static_cast<uint64_t>(given.rule.index) < numInputs &&
                      given.rule.divisor > 0);
      if (given.rule.source == CorrectionRow::Job)
        isRight &= given.rule.value >= 0 &&
                   static_cast<uint64_t>(given.rule.value) < job.sizeInBytes;
      if (!isRight)
        fail(given.path, "SPYRECODE-HOST-C3",
             "the row refers to an input or an offset that does not exist");
      else if (!rows.emplace(given.row, given.rule).second)
        fail(given.path, "SPYRECODE-HOST-C3",
             "row " + std::to_string(given.row) + " is described twice");
    }
    // Keys are distinct: the last is right if all of them are.
    if (report.get().size() == numErrors &&
        (rows.empty() || rows.rbegin()->first != rows.size() - 1))
      fail(command.at("hcm"), "SPYRECODE-HOST-C3",
           "expected at least one row, and rows from 0 without a gap");
    std::vector<CorrectionRow> result;
    // Nothing after an error.
    if (report.get().size() != numErrors)
      return result;
    for (auto &[number, row] : rows)
      result.push_back(row);
    return result;
  }

  void readDataTransfer(const Command &command) {
    // SPYRECODE-EXEC-C4
    std::optional<Region> region = getRegion(command, "SPYRECODE-EXEC-C4");
    if (!region)
      return;
    JobStep step;
    step.kind = command.toDevice ? JobStep::H2D : JobStep::D2H;
    step.offset = region->begin;
    step.sizeInBytes = command.size;
    auto buffer = command.toDevice
                      ? findHandle(command, "host_handle", command.hostHandle)
                      : defineHandle(command, "host_handle", command.hostHandle,
                                     command.size);
    if (!buffer)
      return;
    step.buffer = *buffer;
    if (job.bufferBytes[step.buffer] != command.size) {
      fail(command.at("size"), "SPYRECODE-EXEC-C4",
           "the handle has " + std::to_string(job.bufferBytes[step.buffer]) +
               " bytes, not " + std::to_string(command.size));
      return;
    }
    if (command.toDevice)
      for (const Region &image : imageRegions)
        if (region->overlaps(image)) {
          fail(command.at("dev_ptr"), "SPYRECODE-EXEC-C4",
               "the transfer writes over an image");
          return;
        }
    job.steps.push_back(std::move(step));
  }

  void readCompute(const Command &command) {
    // SPYRECODE-EXEC-C2
    auto found = std::find_if(
        job.transfers.begin(), job.transfers.end(), [&](const auto &transfer) {
          return kSegmentStart + transfer.offset == command.address;
        });
    if (found == job.transfers.end()) {
      fail(command.at("job_bin_ptr"), "SPYRECODE-EXEC-C2",
           "no InitTransfer put an image at 0x" +
               llvm::utohexstr(command.address));
      return;
    }
    size_t transfer = found - job.transfers.begin();
    auto [place, isNew] = imageNumbers.emplace(transfer, job.images.size());
    if (isNew) {
      try {
        job.images.push_back(
            {found->offset,
             runtime::decodeImage(found->bytes, fileNames[transfer])});
      } catch (const runtime::BrokenRule &broken) {
        report.add(fileNames[transfer], "", broken.rule, broken.message);
        imageNumbers.erase(place);
        return;
      }
    }
    JobStep step;
    step.kind = JobStep::Compute;
    step.image = place->second;
    job.steps.push_back(std::move(step));
    computePaths.emplace_back(job.steps.size() - 1, command.path);
  }

  //===--------------------------------------------------------------------===//
  // Images
  //===--------------------------------------------------------------------===//

  /// Returns the region of something that belongs to an image, or reports a
  /// violation.
  std::optional<Region> place(size_t image, uint64_t offset, uint64_t size,
                              const char *what) {
    // SPYRECODE-IMAGE-C4
    uint64_t begin = job.images[image].offset + offset;
    bool isRight = begin <= job.sizeInBytes && size <= job.sizeInBytes - begin;
    Region region{begin, begin + size};
    if (isRight)
      for (const Region &other : imageRegions)
        isRight &= !region.overlaps(other);
    if (isRight)
      return region;
    fail("", "SPYRECODE-IMAGE-C4",
         std::string("the ") + what + " of image " + std::to_string(image) +
             " overlaps an image or leaves the allocation");
    return std::nullopt;
  }

  void checkImages() {
    for (size_t i = 0; i < job.images.size(); ++i) {
      const ProgramImage &image = job.images[i].image;
      std::optional<Region> correction, pool;
      if (image.numCorrectionRows != 0)
        correction = place(i, image.correctionOffset, image.correctionBytes(),
                           "correction tensor");
      if (image.poolBytes != 0)
        pool = place(i, image.poolOffset, image.poolBytes, "pool");
      if (correction && pool && correction->overlaps(*pool))
        fail("", "SPYRECODE-IMAGE-C4",
             "the correction tensor and the pool of image " +
                 std::to_string(i) + " overlap");
      for (size_t other = 0; other < i; ++other)
        if (disturbs(i, other))
          fail("", "SPYRECODE-IMAGE-C4",
               "the memory that images " + std::to_string(other) + " and " +
                   std::to_string(i) + " need overlaps");
      if (i > 0 && !takesTheSame(image, job.images.front().image))
        // SPYRECODE-EXEC-C6
        fail("/JobExecPlan", "SPYRECODE-EXEC-C6",
             "image " + std::to_string(i) +
                 " must take the same arguments as the first program");
    }
    uint64_t expected = countInputs(job.images.front().image);
    for (auto &[path, count] : inputCounts)
      if (count != expected)
        // SPYRECODE-HOST-C1
        fail(path, "SPYRECODE-HOST-C1",
             "programs have " + std::to_string(expected) +
                 " arguments, found " + std::to_string(count));
  }

  std::vector<Region> regionsOf(size_t i) const {
    const ProgramImage &image = job.images[i].image;
    uint64_t start = job.images[i].offset;
    std::vector<Region> regions;
    if (image.numCorrectionRows != 0)
      regions.push_back(
          {start + image.correctionOffset,
           start + image.correctionOffset + image.correctionBytes()});
    if (image.poolBytes != 0)
      regions.push_back({start + image.poolOffset,
                         start + image.poolOffset + image.poolBytes});
    return regions;
  }

  /// Whether one image's pool or correction tensor lies on the other's
  /// correction tensor. Pools may be shared: programs run one after another.
  bool disturbs(size_t a, size_t b) const {
    for (const Region &left : regionsOf(a))
      for (const Region &right : regionsOf(b)) {
        bool arePools =
            left.begin == poolBegin(a) && right.begin == poolBegin(b);
        if (!arePools && left.overlaps(right))
          return true;
      }
    return false;
  }

  /// The first byte of the pool of an image; ~0 if it has none.
  uint64_t poolBegin(size_t i) const {
    const ProgramImage &image = job.images[i].image;
    return image.poolBytes ? job.images[i].offset + image.poolOffset
                           : ~uint64_t(0);
  }

  static uint64_t countInputs(const ProgramImage &image) {
    return image.program->arguments().size() - (image.poolBytes != 0);
  }

  static bool takesTheSame(const ProgramImage &a, const ProgramImage &b) {
    if (countInputs(a) != countInputs(b))
      return false;
    for (size_t i = 0; i < countInputs(a); ++i) {
      const ArgumentInfo &left = a.program->arguments()[i];
      const ArgumentInfo &right = b.program->arguments()[i];
      if (left.kind != right.kind || left.dtype != right.dtype ||
          left.shape != right.shape || left.strides != right.strides ||
          left.layout != right.layout || left.isFloat != right.isFloat)
        return false;
    }
    return true;
  }

  /// The rows that the correction tensor of a program must have.
  std::vector<CorrectionRow>
  expectedRows(const Job::PlacedImage &placed) const {
    std::vector<CorrectionRow> rows(1);
    rows[0].value = placed.image.correctionTag;
    int64_t index = 0;
    for (const ArgumentInfo &argument : placed.image.program->arguments()) {
      CorrectionRow row;
      if (argument.kind == ArgumentInfo::Pool) {
        row.source = CorrectionRow::Job;
        row.value =
            static_cast<int64_t>(placed.offset + placed.image.poolOffset);
      } else {
        row.source = CorrectionRow::Input;
        row.index = index++;
        if (argument.kind == ArgumentInfo::Array)
          row.divisor = argument.elementSizeInBytes;
      }
      rows.push_back(row);
    }
    return rows;
  }

  static bool isSame(const CorrectionRow &a, const CorrectionRow &b) {
    return a.source == b.source && a.index == b.index &&
           a.divisor == b.divisor && a.value == b.value;
  }

  // SPYRECODE-IMAGE-C5
  void checkCorrections() {
    for (auto &[number, path] : computePaths) {
      const Job::PlacedImage &placed = job.images[job.steps[number].image];
      if (placed.image.numCorrectionRows == 0)
        continue;
      auto violate = [&, &path = path](const std::string &what) {
        fail(path, "SPYRECODE-IMAGE-C5", what);
      };
      Region tensor = regionsOf(job.steps[number].image).front();
      const JobStep *last = nullptr;
      for (size_t i = 0; i < number; ++i) {
        const JobStep &step = job.steps[i];
        if (step.kind == JobStep::H2D &&
            tensor.overlaps({step.offset, step.offset + step.sizeInBytes}))
          last = &step;
      }
      if (!last ||
          !(tensor == Region{last->offset, last->offset + last->sizeInBytes})) {
        violate("no DataTransfer before it writes the program's correction "
                "tensor of " +
                std::to_string(tensor.end - tensor.begin) + " bytes at 0x" +
                llvm::utohexstr(kSegmentStart + tensor.begin));
        continue;
      }
      auto maker = makers.find(last->buffer);
      std::vector<CorrectionRow> expected = expectedRows(placed);
      if (maker == makers.end() || job.steps[maker->second].inputBuffer ||
          !std::equal(expected.begin(), expected.end(),
                      job.steps[maker->second].rows.begin(),
                      job.steps[maker->second].rows.end(), isSame))
        violate("the correction tensor is not the program's: a tag, then its "
                "arguments");
    }
  }

  const FileReader &readFile;
  Report &report;
  Job job;
  size_t imageBytes = 0;
  uint64_t bufferBytes = 0;
  std::vector<Region> imageRegions;
  std::vector<std::string> fileNames;
  std::map<std::string, size_t> handles;
  /// Step that makes a host buffer.
  std::map<size_t, size_t> makers;
  std::map<size_t, size_t> imageNumbers;
  std::vector<std::pair<std::string, uint64_t>> inputCounts;
  std::vector<std::pair<size_t, std::string>> computePaths;
};
} // namespace

std::optional<Job> spyre::spyrecode::readSpyreCode(const std::string &json,
                                                   const FileReader &readFile,
                                                   Report &report) {
  return CodeReader(readFile, report).read(json);
}
