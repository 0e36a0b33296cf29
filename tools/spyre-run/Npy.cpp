// SPDX-License-Identifier: Apache-2.0
//===- Npy.cpp - Reading and writing .npy files ---------------------------===//

#include "Npy.h"

#include "Spyre/Support/Error.h"

#include "llvm/Support/Endian.h"

#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <set>

using namespace spyre;

int64_t NpyArray::numElements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

namespace {
struct TypeName {
  const char *descriptor;
  HostDtype dtype;
};
} // namespace

/// Type names that are read: those that are written, then those of files with
/// types that numpy lacks.
static const TypeName kTypes[] = {
#define SPYRE_HOST_DTYPE(name, pytorchName, bytes, format, elementType, npy,   \
                         scalarType)                                           \
  {npy, HostDtype::name},
#include "Spyre/Device/NumberFormats.def"
    {"|V2", HostDtype::BFloat16},
    {"<u2", HostDtype::BFloat16},
    {"<V1", HostDtype::UInt8},
    {"|V1", HostDtype::UInt8},
    {"<f1", HostDtype::UInt8}};

namespace {
/// The header is a Python dict literal of three known keys.
class HeaderParser {
public:
  HeaderParser(const std::string &path, const std::string &text)
      : path(path), text(text) {}

  [[noreturn]] void fail(const std::string &message) const {
    throw Error(path + ": error: " + message);
  }
  void parse(std::string &descriptor, bool &fortranOrder,
             std::vector<int64_t> &shape) {
    std::set<std::string> seen;
    expect('{');
    while (peek() != '}') {
      std::string key = string();
      expect(':');
      if (!seen.insert(key).second)
        fail("header key '" + key + "' is there twice");
      if (key == "descr") {
        if (peek() != '\'' && peek() != '"')
          fail("structured types are not supported");
        descriptor = string();
      } else if (key == "fortran_order") {
        std::string value = word();
        if (value != "True" && value != "False")
          fail("expected True or False as fortran_order, found '" + value +
               "'");
        fortranOrder = value == "True";
      } else if (key == "shape") {
        expect('(');
        while (peek() != ')') {
          shape.push_back(number());
          if (peek() == ',')
            ++at;
          else if (peek() != ')')
            fail("malformed shape in header");
        }
        expect(')');
      } else {
        fail("unknown header key '" + key + "'");
      }
      if (peek() == ',')
        ++at;
      else if (peek() != '}')
        fail("malformed header");
    }
    if (seen.size() != 3)
      fail("header lacks descr, fortran_order or shape");
  }

private:
  char peek() {
    while (at < text.size() &&
           std::isspace(static_cast<unsigned char>(text[at])))
      ++at;
    return at < text.size() ? text[at] : '\0';
  }
  void expect(char c) {
    if (peek() != c)
      fail(std::string("expected '") + c + "' in header");
    ++at;
  }
  std::string string() {
    char quote = peek();
    if (quote != '\'' && quote != '"')
      fail("expected a string in header");
    size_t end = text.find(quote, ++at);
    if (end == std::string::npos)
      fail("unterminated string in header");
    std::string result = text.substr(at, end - at);
    at = end + 1;
    return result;
  }
  std::string word() {
    peek();
    size_t start = at;
    while (at < text.size() &&
           std::isalpha(static_cast<unsigned char>(text[at])))
      ++at;
    return text.substr(start, at - start);
  }
  int64_t number() {
    peek();
    int64_t value = 0;
    size_t start = at;
    while (at < text.size() &&
           std::isdigit(static_cast<unsigned char>(text[at]))) {
      if (__builtin_mul_overflow(value, int64_t(10), &value) ||
          __builtin_add_overflow(value, int64_t(text[at] - '0'), &value))
        fail("size in shape overflows");
      ++at;
    }
    if (at == start)
      fail("expected a number in shape");
    return value;
  }

  const std::string &path;
  const std::string &text;
  size_t at = 0;
};
} // namespace

/// The data of an array whose first dimension is the fastest, the last one
/// being so.
static std::vector<uint8_t> toRowMajor(const NpyArray &array) {
  std::vector<uint8_t> rowMajor(array.data.size());
  size_t rank = array.shape.size();
  int64_t elemSize = hostBytes(array.dtype), count = array.numElements();
  std::vector<int64_t> index(rank, 0), strides(rank);
  int64_t step = 1;
  for (size_t d = 0; d < rank; ++d) {
    strides[d] = step;
    step *= array.shape[d];
  }
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    for (size_t d = 0; d < rank; ++d)
      offset += index[d] * strides[d];
    std::memcpy(&rowMajor[i * elemSize], &array.data[offset * elemSize],
                elemSize);
    for (size_t d = rank; d-- > 0;) {
      if (++index[d] < array.shape[d])
        break;
      index[d] = 0;
    }
  }
  return rowMajor;
}

NpyArray spyre::readNpy(const std::string &path) {
  auto fail = [&](const std::string &message) {
    throw Error(path + ": error: " + message);
  };
  std::ifstream file(path, std::ios::binary);
  if (!file)
    fail(std::strerror(errno));
  file.seekg(0, std::ios::end);
  std::streamoff fileSize = file.tellg();
  file.seekg(0);
  char magic[8];
  if (!file.read(magic, 8) || std::memcmp(magic, "\x93NUMPY", 6) != 0)
    fail("not a .npy file");
  int version = magic[6];
  if (version < 1 || version > 3)
    fail("unknown .npy version " + std::to_string(version));
  uint8_t lengthBytes[4] = {};
  int lengthSize = version == 1 ? 2 : 4;
  if (!file.read(reinterpret_cast<char *>(lengthBytes), lengthSize))
    fail("file ends within its header");
  int64_t length = llvm::support::endian::read32le(lengthBytes);
  if (length > fileSize)
    fail("file ends within its header");
  std::string header(static_cast<size_t>(length), '\0');
  if (!file.read(header.data(), length))
    fail("file ends within its header");

  NpyArray array;
  bool fortranOrder = false;
  HeaderParser(path, header).parse(array.descriptor, fortranOrder, array.shape);
  const TypeName *type = nullptr;
  for (const TypeName &t : kTypes)
    if (array.descriptor == t.descriptor)
      type = &t;
  if (!type) {
    std::string message = "type '";
    message += array.descriptor;
    fail(message + "' is not supported");
  }
  array.dtype = type->dtype;
  int64_t count = 1;
  for (int64_t size : array.shape)
    if (__builtin_mul_overflow(count, size, &count))
      fail("shape overflows");
  int64_t elemSize = hostBytes(array.dtype), bytes;
  if (__builtin_mul_overflow(count, elemSize, &bytes))
    fail("shape overflows");
  int64_t available = fileSize - file.tellg();
  if (available < bytes)
    fail("expected " + std::to_string(bytes) + " bytes of data, found " +
         std::to_string(available));
  array.data.resize(static_cast<size_t>(bytes));
  if (bytes && !file.read(reinterpret_cast<char *>(array.data.data()), bytes))
    fail("cannot read data");

  if (fortranOrder && array.shape.size() > 1 && count > 0)
    array.data = toRowMajor(array);
  return array;
}

void spyre::writeNpy(const std::string &path, const NpyArray &array) {
  std::string descriptor = array.descriptor;
  for (const TypeName &t : kTypes)
    if (t.dtype == array.dtype && descriptor.empty())
      descriptor = t.descriptor;
  std::string header =
      "{'descr': '" + descriptor + "', 'fortran_order': False, 'shape': (";
  for (size_t d = 0; d < array.shape.size(); ++d) {
    header += std::to_string(array.shape[d]);
    if (d + 1 < array.shape.size() || array.shape.size() == 1)
      header += ",";
    if (d + 1 < array.shape.size())
      header += " ";
  }
  header += "), }";
  size_t total = (10 + header.size() + 1 + 63) / 64 * 64;
  header.append(total - 10 - header.size() - 1, ' ');
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  const char magic[8] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0};
  uint8_t length[2] = {uint8_t(header.size() & 255),
                       uint8_t(header.size() >> 8)};
  file.write(magic, 8);
  file.write(reinterpret_cast<const char *>(length), 2);
  file.write(header.data(), static_cast<std::streamsize>(header.size()));
  file.write(reinterpret_cast<const char *>(array.data.data()),
             static_cast<std::streamsize>(array.data.size()));
  file.flush();
  if (!file)
    throw Error(path + ": error: cannot write: " + std::strerror(errno));
}
