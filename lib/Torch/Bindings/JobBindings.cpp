// SPDX-License-Identifier: Apache-2.0
// SpyreCode in torch_spyre._C: prepare_kernel, launch_jobplan, launch_kernel.
#include "../Launch/LoadedJob.h"
#include "Bindings.h"

#include "Spyre/Device/DL16.h"
#include "Spyre/Target/SpyreCode/SpyreCode.h"

#include <torch/csrc/autograd/python_variable.h>

#include <cstring>
#include <filesystem>
#include <map>

namespace py = pybind11;

namespace spyre::pytorch {

namespace {

using JobRef = std::shared_ptr<LoadedJob>;

JobRef prepareKernel(const std::string &folder, const py::object &stream) {
  c10::DeviceIndex index = currentDevice();
  if (!stream.is_none()) {
    auto type = stream.attr("device_type").cast<int>();
    TORCH_CHECK_VALUE(type == static_cast<int>(kSpyre),
                      "expected a spyre stream");
    index =
        static_cast<c10::DeviceIndex>(stream.attr("device_index").cast<int>());
  }
  py::gil_scoped_release release;
  return LoadedJob::load(folder, index);
}

std::vector<LoadedJob::Argument> toArguments(const py::sequence &given) {
  std::vector<LoadedJob::Argument> arguments;
  for (size_t i = 0; i < given.size(); ++i) {
    py::object argument = given[i];
    bool isTensor = THPVariable_Check(argument.ptr());
    // bool is a subclass of int.
    TORCH_CHECK_TYPE(isTensor || (py::isinstance<py::int_>(argument) &&
                                  !py::isinstance<py::bool_>(argument)),
                     "argument ", i, " must be a tensor or an integer, found ",
                     std::string(py::str(py::type::of(argument))));
    if (isTensor)
      arguments.emplace_back(argument.cast<at::Tensor>());
    else
      arguments.emplace_back(argument.cast<int64_t>());
  }
  return arguments;
}

void launchJobPlan(LoadedJob &job, const py::sequence &given) {
  std::vector<LoadedJob::Argument> arguments = toArguments(given);
  py::gil_scoped_release release;
  job.launch(arguments);
}

/// The folder itself, or the one that the reference's compiler leaves in it.
std::filesystem::path findCode(const std::string &folder) {
  std::filesystem::path path(folder);
  return spyrecode::isSpyreCode(folder) ? path : path / "spyreCodeDir";
}

/// Prepared once per card and folder, again when its spyrecode.json changes.
void launchKernel(const std::string &folder, const py::sequence &given) {
  namespace fs = std::filesystem;
  static std::mutex mutex;
  static auto *known = new std::map<std::pair<c10::DeviceIndex, std::string>,
                                    std::pair<fs::file_time_type, JobRef>>;
  std::vector<LoadedJob::Argument> arguments = toArguments(given);
  c10::DeviceIndex index = currentDevice();
  for (const LoadedJob::Argument &argument : arguments)
    if (const auto *tensor = std::get_if<at::Tensor>(&argument))
      if (tensor->device().type() == kSpyre)
        index = tensor->device().index();
  py::gil_scoped_release release;
  fs::path code = findCode(folder);
  std::error_code error;
  fs::file_time_type time =
      fs::last_write_time(code / spyrecode::kCodeFile, error);
  JobRef job;
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto &[knownTime, knownJob] = (*known)[{index, code.string()}];
    if (!knownJob || error || knownTime != time) {
      knownJob = LoadedJob::load(code.string(), index);
      knownTime = time;
    }
    job = knownJob;
  }
  job->launch(arguments);
}

int64_t encodeConstant(double value, DataFormat format) {
  auto single = static_cast<float>(value);
  if (format == DataFormat::IEEE_FP32) {
    uint32_t bits;
    std::memcpy(&bits, &single, sizeof(bits));
    return bits;
  }
  TORCH_CHECK_VALUE(format == DataFormat::SEN169_FP16,
                    "constants are IEEE_FP32 or SEN169_FP16, found ",
                    toString(format));
  return encodeDL16(single);
}

} // namespace

void initJobBindings(py::module &m) {
  py::class_<LoadedJob, JobRef>(
      m, "JobPlan", "SpyreCode in the memory of a card, ready to launch.")
      .def("num_steps",
           [](const LoadedJob &self) { return self.getPlan().numSteps(); })
      .def(
          "job_allocation_size",
          [](const LoadedJob &self) {
            return self.getPlan().allocationBytes();
          },
          "Bytes of device memory.")
      .def(
          "get_step_type",
          [](const LoadedJob &self, int64_t step) {
            auto count = static_cast<int64_t>(self.getPlan().numSteps());
            TORCH_CHECK(step >= 0 && step < count,
                        "Step index out of range: expected 0 to ", count - 1,
                        ", found ", step);
            return toString(self.getPlan().stepKind(step));
          },
          py::arg("step"), "H2D, D2H, Compute or HostCompute.");
  m.def("prepare_kernel", &prepareKernel, py::arg("spyrecode_dir"),
        py::arg("stream") = py::none(),
        "Validates a folder of SpyreCode and transfers its images to the "
        "stream's device, by default the current one. Synchronous.");
  m.def("launch_jobplan", &launchJobPlan, py::arg("job_plan"), py::arg("args"),
        "Queues a launch on the current stream: one tensor, or integer, per "
        "argument. Tensors larger than the program's run tile by tile.");
  m.def("launch_kernel", &launchKernel, py::arg("code_dir"), py::arg("tensors"),
        "prepare_kernel(), the first time, and launch_jobplan(); `code_dir` is "
        "a folder of SpyreCode or holds one named spyreCodeDir.");
  m.def("encode_constant", &encodeConstant, py::arg("value"), py::arg("format"),
        "Bits of a constant in IEEE_FP32 or SEN169_FP16.");
}

} // namespace spyre::pytorch
