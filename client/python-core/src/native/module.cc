// The module quantd_core._native.

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#define QUANTD_LOADS_NUMPY
#include "calibration.h"
#include "checkpoints.h"
#include "dtypes.h"
#include "engine.h"
#include "numpy_api.h"
#include "quantd/shared_executor.h"
#include "quantd/targets.h"

namespace quantd::python {
namespace {

nb::list Targets() {
  nb::list names;
  for (const std::string& name : SupportedTargets()) names.append(nb::str(name.c_str()));
  return names;
}

std::string Target() { return std::string(CurrentTarget()); }

// Why QUANTD_SIMD can't be used; empty if it can.
std::string TargetError() { return std::string(CheckEnvironmentTarget().message()); }

void Define(nb::module_& module) {
  if (_import_array() < 0) throw nb::python_error();
  SharedExecutor(1);  // before a fork is possible
  module.attr("MOST_THREADS") = kMostSharedThreads;
  module.def("default_threads", &Executor::DefaultThreads);
  module.def("targets", &Targets);
  module.def("target", &Target);
  module.def("target_error", &TargetError);
  module.def("set_dtypes", &SetDtypes);
  using namespace nanobind::literals;
  // An argument that may be None.
  const auto any = [](const char* name) { return nb::arg(name).none(); };
  nb::class_<Engine>(module, "Engine")
      .def(nb::init<nb::object, nb::object, nb::object>())
      .def("quantize", &Engine::Quantize, any("x"), any("scale"), any("zero_point"),
           "output_type"_a, any("axis"), any("block_size"), any("block_shape"), any("saturate"),
           "precision"_a, "before_rounding"_a, any("report_error"), any("out"), any("timeout"),
           "threads"_a)
      .def("dequantize", &Engine::Dequantize, any("x"), any("scale"), any("zero_point"),
           "output_type"_a, any("axis"), any("block_size"), any("block_shape"), any("tensor_scale"),
           any("out"), any("timeout"), "threads"_a)
      .def("dynamic_quantize", &Engine::DynamicQuantize, any("x"), "output_type"_a, any("axis"),
           any("block_size"), any("block_shape"), any("saturate"), "scale_type"_a, "symmetry"_a,
           "ignore_non_finite"_a, any("report_error"), any("out"), any("timeout"), "threads"_a)
      .def("quantize_embeddings", &Engine::QuantizeEmbeddings, any("x"), any("ranges"), "recipe"_a,
           "output_type"_a, any("dimensions"), any("normalize"), "bit_order"_a, "bit_threshold"_a,
           "signed_bits"_a, "ignore_non_finite"_a, any("report_error"), any("out"), any("timeout"),
           "threads"_a);
  nb::class_<checkpoints::ConvertOptions>(module, "ConvertOptions")
      .def(nb::init<>())
      .def_rw("model", &checkpoints::ConvertOptions::model)
      .def_rw("out", &checkpoints::ConvertOptions::out)
      .def_rw("to", &checkpoints::ConvertOptions::to)
      .def_rw("only", &checkpoints::ConvertOptions::only)
      .def_rw("skip", &checkpoints::ConvertOptions::skip)
      .def_rw("all", &checkpoints::ConvertOptions::all)
      .def_rw("resume", &checkpoints::ConvertOptions::resume)
      .def_rw("force", &checkpoints::ConvertOptions::force)
      .def_rw("shards", &checkpoints::ConvertOptions::shards);
  module.def("convert_checkpoint", &ConvertCheckpoint, "options"_a, "dry_run"_a, "threads"_a,
             any("progress"), "fail"_a);
  module.def("shards_of_checkpoint", &ShardsOfCheckpoint, "model"_a, "fail"_a);
  nb::class_<Calibration>(module, "Calibration")
      .def(nb::init<nb::object, nb::object, int, int, int, nb::handle, double, bool>(), "convert"_a,
           "fail"_a, "method"_a, "output_type"_a, "symmetry"_a, any("axis"), "percentile"_a,
           "ignore_non_finite"_a)
      .def("add", &Calibration::Add, any("x"), any("timeout"), "threads"_a)
      .def("merge", &Calibration::Merge, "state"_a, any("timeout"))
      .def("result", &Calibration::Result, any("timeout"), "threads"_a)
      .def("state", &Calibration::State);
}

}  // namespace
}  // namespace quantd::python

NB_MODULE(_native, module) { quantd::python::Define(module); }
