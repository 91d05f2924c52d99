// See peers_operations.h.
#include "peers_operations.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "quantd/dequantize.h"
#include "quantd/dynamic_quantize.h"
#include "quantd/quantize.h"

namespace quantd::bench {
namespace {

bool Never() { return false; }

ByteChunks Bytes(const void* data, size_t size) {
  return ByteChunks({static_cast<const uint8_t*>(data), size});
}

absl::Span<uint8_t> Room(void* data, size_t size) { return {static_cast<uint8_t*>(data), size}; }

// -3 to 3, well mixed.
float Value(size_t index) {
  const auto mixed = static_cast<uint32_t>(index * 2654435761u) >> 8;
  return (static_cast<float>(mixed) / (1 << 24) - 0.5f) * 6;
}

}  // namespace

Operations::Buffer Operations::Allocate(size_t bytes) {
  Buffer buffer(static_cast<uint8_t*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)),
                std::free);
  std::memset(buffer.get(), 0, bytes);  // the pages are there before anything is measured
  return buffer;
}

Operations::Operations(const OnnxRuntime& library, const std::string& models, size_t bytes,
                       const Executor& executor)
    : library_(library),
      models_(models),
      size_(bytes / sizeof(float)),
      executor_(executor),
      floats_(Allocate(bytes)),
      codes_(Allocate(size_)),
      ours_(Allocate(bytes)),
      theirs_(Allocate(bytes)) {
  auto* floats = reinterpret_cast<float*>(floats_.get());
  for (size_t i = 0; i < size_; ++i) floats[i] = Value(i);
  for (size_t i = 0; i < size_; ++i) codes_.get()[i] = static_cast<uint8_t>(i * 37);
}

OrtTensor Operations::Floats(const char* name, void* data) const {
  return {name, data, size_ * sizeof(float), {static_cast<int64_t>(size_)}, OrtElementType::kFloat};
}

OrtTensor Operations::Codes(const char* name, void* data) const {
  return {name, data, size_, {static_cast<int64_t>(size_)}, OrtElementType::kUint8};
}

absl::StatusOr<std::function<absl::Status()>> Operations::Bind(
    const std::string& model, const std::vector<OrtTensor>& inputs,
    const std::vector<OrtTensor>& outputs) {
  auto opened = library_.Open(absl::StrCat(models_, "/", model, ".onnx"), executor_.threads());
  if (!opened.ok()) return opened.status();
  sessions_.push_back(*std::move(opened));
  auto bound = sessions_.back()->Bind(inputs, outputs);
  if (!bound.ok()) return bound.status();
  return [shared = std::shared_ptr<OrtBound>(*std::move(bound))] { return shared->Run(); };
}

void Operations::Limit(bench::Limit limit, int tasks, bool stream) {
  const bool widens = limit == bench::Limit::kWiden8;
  const uint8_t* from = widens ? codes_.get() : floats_.get();
  const size_t in = widens ? 1 : sizeof(float), out = widens ? sizeof(float) : 1;
  const size_t piece = (size_ / tasks + 1023) / 1024 * 1024;
  executor_.ParallelFor(tasks, [&](size_t task) {
    const size_t begin = std::min(size_, task * piece);
    const size_t size = std::min(size_ - begin, piece);
    if (size > 0) {
      RunLimit(limit, from + begin * in, size, ours_.get() + begin * out, stream);
    }
  });
}

absl::StatusOr<Operation> Operations::Quantize() {
  QuantizeParameters parameters;
  parameters.x = {
      DataType::kFloat, {static_cast<int64_t>(size_)}, Bytes(floats_.get(), size_ * sizeof(float))};
  parameters.scale = {DataType::kFloat, {}, Bytes(&scale_, sizeof(scale_))};
  parameters.zero_point = {DataType::kUint8, {}, Bytes(&zero_point_, 1)};
  auto plan = PlanQuantize(parameters);
  if (!plan.ok()) return plan.status();
  auto theirs = Bind("quantize",
                     {Floats("x", floats_.get()),
                      {"scale", &scale_, sizeof(scale_), {}, OrtElementType::kFloat},
                      {"zero_point", &zero_point_, 1, {}, OrtElementType::kUint8}},
                     {Codes("y", theirs_.get())});
  if (!theirs.ok()) return theirs.status();
  return Operation{"Quantize",
                   [this, plan = *std::move(plan), x = parameters.x.bytes] {
                     return quantd::Quantize(plan, x, executor_, Never, Room(ours_.get(), size_),
                                             nullptr);
                   },
                   *std::move(theirs),
                   [this](int tasks, bool stream) { Limit(bench::Limit::kNarrow8, tasks, stream); },
                   [this] { return std::memcmp(ours_.get(), theirs_.get(), size_) == 0; }};
}

absl::StatusOr<Operation> Operations::DynamicQuantize() {
  DynamicQuantizeParameters parameters;
  parameters.x = {
      DataType::kFloat, {static_cast<int64_t>(size_)}, Bytes(floats_.get(), size_ * sizeof(float))};
  auto plan = PlanDynamicQuantize(parameters);
  if (!plan.ok()) return plan.status();
  auto theirs =
      Bind("dynamic_quantize", {Floats("x", floats_.get())},
           {Codes("y", theirs_.get()),
            {"y_scale", &their_parameters_.scale, sizeof(float), {}, OrtElementType::kFloat},
            {"y_zero_point", &their_parameters_.zero_point, 1, {}, OrtElementType::kUint8}});
  if (!theirs.ok()) return theirs.status();
  return Operation{
      "DynamicQuantize",
      [this, plan = *std::move(plan), x = parameters.x.bytes] {
        const DynamicQuantizeOutput output = {Room(ours_.get(), size_),
                                              Room(&our_parameters_.scale, sizeof(float)),
                                              Room(&our_parameters_.zero_point, 1),
                                              {}};
        return quantd::DynamicQuantize(plan, x, executor_, Never, output, nullptr);
      },
      *std::move(theirs),
      // Finds the range, then writes: one after the other, since the second needs the first.
      [this](int tasks, bool stream) {
        Limit(bench::Limit::kRead, tasks, false);
        Limit(bench::Limit::kNarrow8, tasks, stream);
      },
      [this] {
        return std::memcmp(ours_.get(), theirs_.get(), size_) == 0 &&
               our_parameters_.scale == their_parameters_.scale &&
               our_parameters_.zero_point == their_parameters_.zero_point;
      }};
}

absl::StatusOr<Operation> Operations::Dequantize() {
  const size_t bytes = size_ * sizeof(float);
  DequantizeParameters parameters;
  parameters.x = {DataType::kUint8, {static_cast<int64_t>(size_)}, Bytes(codes_.get(), size_)};
  parameters.scale = {DataType::kFloat, {}, Bytes(&scale_, sizeof(scale_))};
  parameters.zero_point = {DataType::kUint8, {}, Bytes(&zero_point_, 1)};
  auto plan = PlanDequantize(parameters);
  if (!plan.ok()) return plan.status();
  auto theirs = Bind("dequantize",
                     {Codes("x", codes_.get()),
                      {"scale", &scale_, sizeof(scale_), {}, OrtElementType::kFloat},
                      {"zero_point", &zero_point_, 1, {}, OrtElementType::kUint8}},
                     {Floats("y", theirs_.get())});
  if (!theirs.ok()) return theirs.status();
  return Operation{"Dequantize",
                   [this, bytes, plan = *std::move(plan), x = parameters.x.bytes] {
                     return quantd::Dequantize(plan, x, executor_, Never, Room(ours_.get(), bytes));
                   },
                   *std::move(theirs),
                   [this](int tasks, bool stream) { Limit(bench::Limit::kWiden8, tasks, stream); },
                   [this, bytes] { return std::memcmp(ours_.get(), theirs_.get(), bytes) == 0; }};
}

absl::StatusOr<std::vector<Operation>> Operations::Make() {
  std::vector<Operation> all;
  for (const auto make :
       {&Operations::Quantize, &Operations::DynamicQuantize, &Operations::Dequantize}) {
    absl::StatusOr<Operation> operation = (this->*make)();
    if (!operation.ok()) return operation.status();
    all.push_back(*std::move(operation));
  }
  return all;
}

}  // namespace quantd::bench
