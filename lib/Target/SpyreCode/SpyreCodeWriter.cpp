// SPDX-License-Identifier: Apache-2.0
//===- SpyreCodeWriter.cpp - spyrecode.json and its image -----------------===//

#include "Spyre/Runtime/Loader/ImageFile.h"
#include "Spyre/Target/SpyreCode/SpyreCode.h"

using namespace spyre;
using namespace spyre::spyrecode;
using spyre::runtime::ProgramImage;

static constexpr const char *kImageFile = "program.bin";
static constexpr const char *kCorrectionHandle = "correction";

namespace {
class CodeWriter {
public:
  CodeWriter(const ProgramImage &image, Flavor flavor)
      : image(image), isAsBuilt(flavor == Flavor::AsBuilt) {}

  Json write() {
    uint64_t size = image.sizeInBytes + image.correctionBytes();
    if (image.poolBytes != 0)
      size =
          image.poolOffset + (image.poolBytes + kBlock - 1) / kBlock * kBlock;
    Json preparation = Json::array(
        {command("Allocate", {{"size", number(size)}}),
         command("InitTransfer",
                 {{isAsBuilt ? "init_bin_file" : "file_path", kImageFile},
                  {"size", number(image.sizeInBytes)},
                  {"dev_ptr", number(kSegmentStart)}})});
    Json execution = Json::array();
    if (image.numCorrectionRows != 0)
      addCorrection(execution);
    execution.push_back(
        command("ComputeOnDevice", {{"job_bin_ptr", number(kSegmentStart)}}));
    return {{"JobPreparationPlan", preparation}, {"JobExecPlan", execution}};
  }

private:
  static constexpr uint64_t kBlock = runtime::DeviceMemory::kBlockInBytes;

  Json number(uint64_t value) const {
    if (isAsBuilt)
      return std::to_string(value);
    return value;
  }

  static Json command(const char *name, Json properties) {
    return {{"command", name}, {"properties", std::move(properties)}};
  }

  /// Row 0 is the image's tag, row i + 1 argument i of the program.
  Json describeRows() const {
    Json rows = Json::array();
    const auto &arguments = image.program->arguments();
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].kind == runtime::ArgumentInfo::Pool)
        rows.push_back(
            {{"row", i + 1}, {"from", "job"}, {"offset", image.poolOffset}});
      else
        rows.push_back(
            {{"row", i + 1},
             {"from", "input"},
             {"index", i},
             {"divisor", arguments[i].kind == runtime::ArgumentInfo::Array
                             ? arguments[i].elementSizeInBytes
                             : 1}});
    }
    return {{"vdci", rows}, {"senConstants", {{"0", image.correctionTag}}}};
  }

  void addCorrection(Json &execution) const {
    size_t numInputs =
        image.program->arguments().size() - (image.poolBytes != 0);
    Json properties = {{"ihandle", "iargs"},
                       {"ishape", Json::array({number(numInputs)})},
                       {"ohandle", kCorrectionHandle}};
    if (isAsBuilt)
      properties["size"] = number(image.correctionBytes());
    else
      properties["oshape"] =
          Json::array({number(image.numCorrectionRows), number(kBlock)});
    properties["hcm"] = describeRows();
    execution.push_back(command("ComputeOnHost", std::move(properties)));
    Json transfer = Json::object();
    if (isAsBuilt)
      transfer["dirn"] = "false";
    else
      transfer["direction"] = 0;
    transfer["host_handle"] = kCorrectionHandle;
    transfer["size"] = number(image.correctionBytes());
    transfer["dev_ptr"] = number(kSegmentStart + image.correctionOffset);
    execution.push_back(command("DataTransfer", std::move(transfer)));
  }

  const ProgramImage &image;
  bool isAsBuilt;
};
} // namespace

std::vector<std::pair<std::string, std::string>>
spyre::spyrecode::writeSpyreCode(const std::string &ktirBytecode,
                                 const runtime::TileGroups &tileGroups,
                                 const WriteOptions &options) {
  std::string bytes =
      runtime::encodeImage(ktirBytecode, tileGroups, options.symbolicArguments);
  ProgramImage image = runtime::decodeImage(bytes, kImageFile);
  Json json = CodeWriter(image, options.flavor).write();
  return {{kCodeFile, dumpJson(json) + "\n"}, {kImageFile, bytes}};
}
