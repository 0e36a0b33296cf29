// SPDX-License-Identifier: Apache-2.0
//===- Manifest.cpp - What SuperDSC leaves out ------------------*- C++ -*-===//

#include "Spyre/Target/SuperDSC/Model/Manifest.h"
#include "Spyre/Support/OpenDirectory.h"
#include "Spyre/Target/SuperDSC/Model/Model.h"

#include "llvm/Support/MathExtras.h"

#include <set>

using namespace spyre::superdsc;

static constexpr int64_t kVersion = 1;

std::vector<int64_t>
spyre::superdsc::getSegments(const ManifestBundle &bundle) {
  std::vector<int64_t> segments;
  if (bundle.hasPool)
    segments.push_back(kPoolSegment);
  segments.insert(segments.end(), bundle.arguments.begin(),
                  bundle.arguments.end());
  return segments;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static Json writeTensor(const ManifestTensor &tensor, bool isArgument) {
  Json json = Json::object();
  if (isArgument)
    json["name"] = tensor.name;
  json["dtype"] = spyre::toString(tensor.dtype);
  json["shape"] = tensor.shape;
  if (isArgument)
    json["strides"] = tensor.strides;
  if (tensor.order) {
    json["order"] = *tensor.order;
    json["sparse"] = tensor.sparse;
    if (tensor.packed != 1)
      json["packed"] = tensor.packed;
  } else {
    json["device_size"] = tensor.deviceSize;
    json["stride_map"] = tensor.strideMap;
  }
  for (const auto &[dim, name] : tensor.sizes)
    json["sizes"][std::to_string(dim)] = name;
  return json;
}

Json spyre::superdsc::writeManifest(const Manifest &manifest) {
  Json json;
  json["version"] = kVersion;
  json["pool_bytes"] = manifest.poolBytes;
  for (const SizeParameter &size : manifest.sizes)
    json["sizes"].push_back({{"name", size.name},
                             {"granularity", size.granularity},
                             {"maximum", size.maximum}});
  json["arguments"] = Json::array();
  for (const ManifestTensor &tensor : manifest.arguments)
    json["arguments"].push_back(writeTensor(tensor, true));
  json["buffers"] = Json::array();
  for (const ManifestTensor &tensor : manifest.buffers)
    json["buffers"].push_back(writeTensor(tensor, false));
  json["bundles"] = Json::array();
  for (const ManifestBundle &bundle : manifest.bundles) {
    Json own;
    own["folder"] = bundle.folder;
    own["pool"] = bundle.hasPool;
    own["arguments"] = bundle.arguments;
    own["files"] = Json::array();
    for (const ManifestFile &file : bundle.files) {
      Json extents = Json::object();
      for (const auto &[dim, extent] : file.extents)
        extents[dim] = extent;
      own["files"].push_back({{"file", file.file},
                              {"extents", std::move(extents)},
                              {"tensors", file.tensors},
                              {"offsets", file.offsets}});
    }
    json["bundles"].push_back(std::move(own));
  }
  return json;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

class ManifestReader {
public:
  explicit ManifestReader(Report &report) : report(report) {}

  std::optional<Manifest> read(const Json &json) {
    if (!checkKeys(json, "",
                   {"version", "pool_bytes", "arguments", "buffers", "bundles",
                    "sizes"},
                   5))
      return std::nullopt;
    int64_t version = integer(json["version"], "/version", 0, 1 << 20);
    if (!failed && version != kVersion)
      violate("/version", "SDSC-MANIFEST-C1",
              "version " + std::to_string(version) +
                  " is not known, expected " + std::to_string(kVersion));
    manifest.poolBytes =
        integer(json["pool_bytes"], "/pool_bytes", 0, int64_t(16) << 30);
    if (json.contains("sizes"))
      readSizes(json["sizes"]);
    readTensors(json["arguments"], "/arguments", true, manifest.arguments);
    readTensors(json["buffers"], "/buffers", false, manifest.buffers);
    if (isArray(json["bundles"], "/bundles"))
      for (size_t i = 0; i < json["bundles"].size(); ++i)
        readBundle(json["bundles"][i], appendPath("/bundles", i));
    // SDSC-MANIFEST-C2
    if (!failed && manifest.bundles.empty())
      violate("/bundles", "SDSC-MANIFEST-C2", "expected at least one bundle");
    std::set<std::string> folders;
    for (const ManifestBundle &bundle : manifest.bundles)
      if (!folders.insert(bundle.folder).second)
        violate("/bundles", "SDSC-MANIFEST-C2",
                "the folder '" + bundle.folder + "' is named twice");
    if (failed)
      return std::nullopt;
    return std::move(manifest);
  }

private:
  static constexpr size_t kMaxEntries = 1 << 20, kMaxRank = 16;

  void violate(const std::string &path, const char *rule, std::string message) {
    failed = true;
    report.add(kManifestFile, path, rule, std::move(message));
  }
  // SDSC-MANIFEST-C1
  void malformed(const std::string &path, std::string message) {
    violate(path, "SDSC-MANIFEST-C1", std::move(message));
  }

  /// The first `required` keys must be there, and no others than `keys`.
  bool checkKeys(const Json &json, const std::string &path,
                 const std::vector<std::string> &keys, size_t required) {
    if (!json.is_object()) {
      malformed(path, "expected an object");
      return false;
    }
    bool ok = true;
    for (size_t i = 0; i < required; ++i)
      if (!json.contains(keys[i])) {
        malformed(path, "the key '" + keys[i] + "' is missing");
        ok = false;
      }
    for (auto &[key, value] : json.items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
        malformed(appendPath(path, key), "unknown key");
        ok = false;
      }
    return ok;
  }

  bool isArray(const Json &json, const std::string &path,
               size_t limit = kMaxEntries) {
    if (json.is_array() && json.size() <= limit)
      return true;
    malformed(path, "expected an array of at most " + std::to_string(limit) +
                        " elements");
    return false;
  }

  int64_t integer(const Json &json, const std::string &path, int64_t low,
                  int64_t high) {
    if (json.is_number_integer()) {
      int64_t value = json.get<int64_t>();
      if (value >= low && value <= high)
        return value;
    }
    malformed(path, "expected an integer from " + std::to_string(low) + " to " +
                        std::to_string(high));
    return low;
  }

  std::string string(const Json &json, const std::string &path) {
    if (json.is_string())
      return json.get<std::string>();
    malformed(path, "expected a string");
    return {};
  }

  bool boolean(const Json &json, const std::string &path) {
    if (json.is_boolean())
      return json.get<bool>();
    malformed(path, "expected true or false");
    return false;
  }

  std::vector<int64_t> integers(const Json &json, const std::string &path,
                                int64_t low, size_t limit) {
    std::vector<int64_t> values;
    if (isArray(json, path, limit))
      for (size_t i = 0; i < json.size(); ++i)
        values.push_back(
            integer(json[i], appendPath(path, i), low, int64_t(1) << 40));
    return values;
  }

  void readSizes(const Json &json) {
    if (!isArray(json, "/sizes", kMaxRank))
      return;
    for (size_t i = 0; i < json.size(); ++i) {
      std::string path = appendPath("/sizes", i);
      if (!checkKeys(json[i], path, {"name", "granularity", "maximum"}, 3))
        continue;
      SizeParameter size;
      size.name = string(json[i]["name"], path + "/name");
      size.maximum =
          integer(json[i]["maximum"], path + "/maximum", 1, int64_t(1) << 40);
      size.granularity = integer(json[i]["granularity"], path + "/granularity",
                                 1, size.maximum);
      // SDSC-MANIFEST-C2
      if (size.maximum % size.granularity != 0 || !isSizeName(size.name) ||
          findSize(size.name))
        violate(path, "SDSC-MANIFEST-C2",
                "a size has a name of its own, of letters, digits and '_', and "
                "a granularity that divides the maximum");
      manifest.sizes.push_back(std::move(size));
    }
  }

  const SizeParameter *findSize(const std::string &name) const {
    for (const SizeParameter &size : manifest.sizes)
      if (size.name == name)
        return &size;
    return nullptr;
  }

  void readSizesOf(const Json &json, const std::string &path,
                   ManifestTensor &tensor) {
    if (!json.is_object()) {
      malformed(path, "expected an object");
      return;
    }
    for (auto &[key, value] : json.items()) {
      std::string own = appendPath(path, key);
      std::string name = string(value, own);
      const SizeParameter *size = findSize(name);
      size_t dim = 0;
      while (dim < tensor.shape.size() && std::to_string(dim) != key)
        ++dim;
      // SDSC-MANIFEST-C2
      if (!size || dim == tensor.shape.size() ||
          tensor.shape[dim] != size->maximum)
        violate(own, "SDSC-MANIFEST-C2",
                "is not a dimension whose extent is the maximum of the size '" +
                    name.substr(0, 80) + "'");
      else
        tensor.sizes[static_cast<int64_t>(dim)] = name;
    }
  }

  void readTensors(const Json &json, const std::string &path, bool isArgument,
                   std::vector<ManifestTensor> &tensors) {
    if (!isArray(json, path))
      return;
    for (size_t i = 0; i < json.size() && !report.isFull(); ++i)
      tensors.push_back(readTensor(json[i], appendPath(path, i), isArgument));
  }

  ManifestTensor readTensor(const Json &json, const std::string &path,
                            bool isArgument) {
    ManifestTensor tensor;
    std::vector<std::string> keys = {"dtype", "shape"};
    bool hasOrder = json.is_object() && json.contains("order");
    if (isArgument)
      keys.insert(keys.end(), {"name", "strides"});
    keys.push_back(hasOrder ? "order" : "device_size");
    keys.push_back(hasOrder ? "sparse" : "stride_map");
    size_t numRequired = keys.size();
    if (hasOrder)
      keys.push_back(isArgument ? "sizes" : "packed");
    if (!checkKeys(json, path, keys, numRequired))
      return tensor;
    std::string name = string(json["dtype"], path + "/dtype");
    if (auto dtype = spyre::parseHostDtype(name))
      tensor.dtype = *dtype;
    else
      malformed(path + "/dtype", "unknown type '" + name.substr(0, 40) + "'");
    tensor.shape = integers(json["shape"], path + "/shape", 0, kMaxRank);
    if (isArgument) {
      tensor.name = string(json["name"], path + "/name");
      if (tensor.name.empty())
        malformed(path + "/name", "expected a name");
      tensor.strides =
          integers(json["strides"], path + "/strides", 0, kMaxRank);
      if (tensor.strides.size() != tensor.shape.size())
        malformed(path + "/strides", "expected one stride per dimension");
    }
    int64_t elements = 1;
    for (int64_t size : tensor.shape)
      if (llvm::MulOverflow(elements, std::max<int64_t>(size, 1), elements) ||
          elements > int64_t(1) << 40) {
        malformed(path + "/shape", "the tensor is too large");
        break;
      }
    if (hasOrder) {
      tensor.order = integers(json["order"], path + "/order", 0, kMaxRank);
      tensor.sparse = boolean(json["sparse"], path + "/sparse");
      if (json.contains("packed"))
        tensor.packed =
            integer(json["packed"], path + "/packed", 2, spyre::kStickBytes);
      std::set<int64_t> seen(tensor.order->begin(), tensor.order->end());
      if (tensor.order->size() != tensor.shape.size() ||
          seen.size() != tensor.shape.size() ||
          (!seen.empty() &&
           *seen.rbegin() >= static_cast<int64_t>(seen.size())))
        malformed(path + "/order", "expected a permutation of the dimensions");
      if (isArgument && json.contains("sizes"))
        readSizesOf(json["sizes"], path + "/sizes", tensor);
    } else {
      tensor.deviceSize =
          integers(json["device_size"], path + "/device_size", 1, kMaxRank);
      tensor.strideMap =
          integers(json["stride_map"], path + "/stride_map", -1, kMaxRank);
      if (!isArgument || tensor.deviceSize.size() != tensor.strideMap.size())
        malformed(path, isArgument
                            ? "device_size and stride_map differ in length"
                            : "a buffer's layout is an order");
    }
    return tensor;
  }

  void readBundle(const Json &json, const std::string &path) {
    if (!checkKeys(json, path, {"folder", "pool", "arguments", "files"}, 4))
      return;
    ManifestBundle bundle;
    bundle.folder = string(json["folder"], path + "/folder");
    // SDSC-MANIFEST-C2
    if (bundle.folder != "." && !spyre::isPlainName(bundle.folder))
      violate(path + "/folder", "SDSC-MANIFEST-C2",
              "'" + bundle.folder.substr(0, 80) +
                  "' is not a folder inside this one");
    bundle.hasPool = boolean(json["pool"], path + "/pool");
    if (bundle.hasPool && manifest.poolBytes == 0)
      violate(path + "/pool", "SDSC-MANIFEST-C2",
              "there is no pool: pool_bytes is 0");
    bundle.arguments =
        integers(json["arguments"], path + "/arguments", 0, kMaxEntries);
    int64_t numArguments = manifest.arguments.size();
    int64_t numBuffers = manifest.buffers.size();
    std::set<int64_t> seen;
    for (int64_t argument : bundle.arguments)
      if (argument >= numArguments)
        violate(path + "/arguments", "SDSC-MANIFEST-C2",
                "there is no argument " + std::to_string(argument));
      else if (!seen.insert(argument).second)
        violate(path + "/arguments", "SDSC-MANIFEST-C2",
                "argument " + std::to_string(argument) + " is listed twice");
    const Json &files = json["files"];
    if (!isArray(files, path + "/files"))
      return;
    std::set<std::string> names;
    for (size_t i = 0; i < files.size() && !report.isFull(); ++i) {
      std::string own = appendPath(path + "/files", i);
      if (!checkKeys(files[i], own, {"file", "extents", "tensors", "offsets"},
                     4))
        continue;
      ManifestFile file;
      file.file = string(files[i]["file"], own + "/file");
      if (!names.insert(file.file).second)
        violate(own + "/file", "SDSC-MANIFEST-C2",
                "'" + file.file.substr(0, 80) + "' is listed twice");
      const Json &extents = files[i]["extents"];
      if (!extents.is_object() || extents.size() > kMaxRank) {
        malformed(own + "/extents", "expected an object");
        continue;
      }
      for (auto &[dim, extent] : extents.items())
        file.extents[dim] = integer(extent, appendPath(own + "/extents", dim),
                                    1, int64_t(1) << 40);
      file.tensors =
          integers(files[i]["tensors"], own + "/tensors", -numBuffers, 64);
      file.offsets = integers(files[i]["offsets"], own + "/offsets", 0, 64);
      if (file.offsets.size() != file.tensors.size())
        malformed(own + "/offsets", "expected one offset per tensor");
      for (int64_t tensor : file.tensors)
        if (tensor >= numArguments)
          violate(own + "/tensors", "SDSC-MANIFEST-C2",
                  "there is no argument " + std::to_string(tensor));
      bundle.files.push_back(std::move(file));
    }
    manifest.bundles.push_back(std::move(bundle));
  }

  Report &report;
  bool failed = false;
  Manifest manifest;
};

} // namespace

std::optional<Manifest> spyre::superdsc::readManifest(const Json &json,
                                                      Report &report) {
  return ManifestReader(report).read(json);
}
