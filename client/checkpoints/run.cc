#include "checkpoints/run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/substitute.h"
#include "checkpoints/errors.h"
#include "status_macros.h"

namespace quantd::checkpoints {
namespace {

// Smaller weights are processed by one thread each, so that threads do not wait at the end of each.
constexpr uint64_t kSmall = 4 << 20;
// The bytes of weights that are measured, then encoded while they are in the page cache.
constexpr uint64_t kBatch = 64 << 20;
constexpr uint64_t kCopyPiece = 8 << 20;
// The bytes of a tensor that are prefetched.
constexpr uint64_t kAhead = 8 << 20;

// A tensor of the model.
class TensorSource final : public ByteSource {
 public:
  static absl::StatusOr<std::unique_ptr<TensorSource>> Open(const Model& model, Place place,
                                                            Counter* counter) {
    QUANTD_ASSIGN_OR_RETURN(std::unique_ptr<OpenFile> file,
                            OpenFile::Open(model.shards[place.shard].file));
    const Tensor& tensor = model.tensor(place);
    file->Expect(tensor.offset, std::min(tensor.bytes, kAhead));
    return std::make_unique<TensorSource>(std::move(file), tensor.offset, counter);
  }
  TensorSource(std::unique_ptr<OpenFile> file, uint64_t begin, Counter* counter)
      : file_(std::move(file)), begin_(begin), counter_(*counter) {}

  absl::Status Read(uint64_t offset, absl::Span<uint8_t> to) const override {
    absl::Status status = file_->Read(begin_ + offset, to);
    counter_.fetch_add(to.size(), std::memory_order_relaxed);
    return status;
  }
  const OpenFile& file() const { return *file_; }

 private:
  const std::unique_ptr<OpenFile> file_;
  const uint64_t begin_;
  Counter& counter_;
};

// F64 as FLOAT.
class DoublesSource final : public ByteSource {
 public:
  explicit DoublesSource(const ByteSource& doubles) : doubles_(doubles) {}
  absl::Status Read(uint64_t offset, absl::Span<uint8_t> to) const override {
    std::vector<double> doubles(to.size() / sizeof(float));
    QUANTD_RETURN_IF_ERROR(doubles_.Read(
        2 * offset, {reinterpret_cast<uint8_t*>(doubles.data()), doubles.size() * sizeof(double)}));
    for (size_t i = 0; i < doubles.size(); ++i) {
      const auto value = static_cast<float>(doubles[i]);
      if (std::isinf(value) && !std::isinf(doubles[i])) {
        return absl::InvalidArgumentError(
            absl::Substitute("its value $0 is too large for FLOAT", doubles[i]));
      }
      std::memcpy(to.data() + i * sizeof(value), &value, sizeof(value));
    }
    return absl::OkStatus();
  }

 private:
  const ByteSource& doubles_;
};

class FileSink final : public ByteSink {
 public:
  FileSink(PartialFile* file, uint64_t begin) : file_(*file), begin_(begin) {}
  absl::Status Write(uint64_t offset, absl::Span<const uint8_t> from) override {
    return file_.Write(begin_ + offset, from);
  }

 private:
  PartialFile& file_;
  const uint64_t begin_;
};

// The columns from `begin` on of equal matrices, as one matrix: a rectangle of a tensor's bytes.
class ColumnsSource final : public ByteSource {
 public:
  ColumnsSource(const ByteSource& tensor, uint64_t begin, uint64_t row_bytes, uint64_t pitch)
      : tensor_(tensor), begin_(begin), row_bytes_(row_bytes), pitch_(pitch) {}
  absl::Status Read(uint64_t offset, absl::Span<uint8_t> to) const override {
    while (!to.empty()) {
      const uint64_t row = offset / row_bytes_, in_row = offset % row_bytes_;
      const auto some = static_cast<size_t>(std::min<uint64_t>(row_bytes_ - in_row, to.size()));
      QUANTD_RETURN_IF_ERROR(tensor_.Read(begin_ + row * pitch_ + in_row, to.first(some)));
      to.remove_prefix(some);
      offset += some;
    }
    return absl::OkStatus();
  }

 private:
  const ByteSource& tensor_;
  const uint64_t begin_, row_bytes_, pitch_;
};

// The first element of `bytes` that is NaN or infinite; nullopt: there is none.
std::optional<uint64_t> FindNonFinite(DataType type, absl::Span<const uint8_t> bytes) {
  const auto find = [bytes](auto mask) -> std::optional<uint64_t> {
    using Bits = decltype(mask);
    const size_t count = bytes.size() / sizeof(Bits);
    Bits value;
    for (size_t begin = 0; begin < count; begin += 256) {
      const size_t end = std::min(count, begin + 256);
      bool found = false;
      for (size_t i = begin; i < end; ++i) {
        std::memcpy(&value, bytes.data() + i * sizeof(Bits), sizeof(Bits));
        found |= (value & mask) == mask;
      }
      for (size_t i = begin; found && i < end; ++i) {
        std::memcpy(&value, bytes.data() + i * sizeof(Bits), sizeof(Bits));
        if ((value & mask) == mask) return i;
      }
    }
    return std::nullopt;
  };
  if (type == DataType::kFloat) return find(uint32_t{0x7F800000});
  return find(static_cast<uint16_t>(type == DataType::kFloat16 ? 0x7C00 : 0x7F80));
}

void Transpose(const uint8_t* from, size_t rows, size_t columns, size_t width, uint8_t* to) {
  constexpr size_t kTile = 32;
  for (size_t i = 0; i < rows; i += kTile) {
    for (size_t j = 0; j < columns; j += kTile) {
      for (size_t row = i; row < std::min(rows, i + kTile); ++row) {
        for (size_t column = j; column < std::min(columns, j + kTile); ++column) {
          std::memcpy(to + (column * rows + row) * width, from + (row * columns + column) * width,
                      width);
        }
      }
    }
  }
}

std::string PositionText(const Shape& shape, uint64_t element) {
  Shape position(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    const auto length = static_cast<uint64_t>(std::max<int64_t>(shape[i], 1));
    position[i] = static_cast<int64_t>(element % length);
    element /= length;
  }
  return ShapeString(position);
}

// Writes decoded values, and refuses those that are not finite, unless they were not before.
class DecodedSink final : public ByteSink {
 public:
  // `original`: the floats from which the values are cast; null: they are decoded from codes.
  DecodedSink(PartialFile* file, uint64_t begin, DataType type, const Shape& shape,
              const ByteSource* original, DataType original_type)
      : file_(*file),
        begin_(begin),
        type_(type),
        shape_(shape),
        original_(original),
        original_type_(original_type) {}
  absl::Status Write(uint64_t offset, absl::Span<const uint8_t> from) override {
    QUANTD_RETURN_IF_ERROR(Check(offset, from));
    return file_.Write(begin_ + offset, from);
  }

 private:
  absl::Status Check(uint64_t offset, absl::Span<const uint8_t> from) const {
    const auto width = static_cast<uint64_t>(Info(type_).bits / 8);
    for (absl::Span<const uint8_t> rest = from;;) {
      const std::optional<uint64_t> found = FindNonFinite(type_, rest);
      if (!found.has_value()) return absl::OkStatus();
      const uint64_t element = (offset + (from.size() - rest.size())) / width + *found;
      if (original_ == nullptr || !WasNonFinite(element)) {
        return absl::InvalidArgumentError(
            absl::Substitute("its value at $0 is NaN, infinite, or too large for $1",
                             PositionText(shape_, element), Name(type_)));
      }
      rest.remove_prefix(static_cast<size_t>((*found + 1) * width));
    }
  }
  bool WasNonFinite(uint64_t element) const {
    const auto width = static_cast<uint64_t>(Info(original_type_).bits / 8);
    std::array<uint8_t, 4> bytes{};
    const absl::Span<uint8_t> value = absl::MakeSpan(bytes).first(width);
    return original_->Read(element * width, value).ok() &&
           FindNonFinite(original_type_, value).has_value();
  }

  PartialFile& file_;
  const uint64_t begin_;
  const DataType type_;
  const Shape& shape_;
  const ByteSource* const original_;
  const DataType original_type_;
};

// Calls task(0) to task(count - 1) in parallel, until one of them fails. Returns the error of the
// first that failed, in the order of the tasks.
absl::Status ForAll(const Executor& executor, size_t count, Interrupted interrupted,
                    absl::FunctionRef<absl::Status(size_t)> task) {
  std::mutex guard;
  size_t failed = count;
  absl::Status first;
  executor.ParallelFor(count, [&](size_t index) {
    {
      const std::lock_guard<std::mutex> lock(guard);
      if (failed < index) return;
    }
    absl::Status status = interrupted() ? absl::CancelledError("interrupted") : task(index);
    if (status.ok()) return;
    const std::lock_guard<std::mutex> lock(guard);
    if (index >= failed) return;
    failed = index;
    first = std::move(status);
  });
  return first;
}

}  // namespace

absl::Status Runner::RunTasks(absl::Span<const uint64_t> bytes, const Task& task) const {
  for (size_t begin = 0; begin < bytes.size();) {
    if (interrupted_()) return absl::CancelledError("interrupted");
    size_t end = begin;
    while (end < bytes.size() && bytes[end] < kSmall) ++end;
    if (end == begin) {
      QUANTD_RETURN_IF_ERROR(task(begin++, executor_));
      continue;
    }
    QUANTD_RETURN_IF_ERROR(ForAll(executor_, end - begin, interrupted_,
                                  [&](size_t i) { return task(begin + i, alone_); }));
    begin = end;
  }
  return absl::OkStatus();
}

bool Runner::IsMeasured(const Job& job) const {
  const Decision& decision = conversion_.at(job.source);
  return decision.fate == Fate::kConverted && decision.weight < 0 && NeedsFacts(decision.layout);
}

uint64_t Runner::BytesToRead(const OutputFile& plan) const {
  uint64_t total = 0;
  for (const Job& job : plan.jobs) total += job.bytes_before * (IsMeasured(job) ? 2 : 1);
  return total;
}

absl::Status Runner::MeasureFor(absl::Span<const Job> jobs) {
  facts_.clear();
  std::vector<Place> places;
  absl::flat_hash_set<int32_t> sets;
  for (const Job& job : jobs) {
    if (!IsMeasured(job)) continue;
    const int32_t set = conversion_.at(job.source).set;
    if (set < 0) {
      places.push_back(job.source);
    } else if (!largest_[static_cast<size_t>(set)].has_value() && sets.insert(set).second) {
      const std::vector<Place>& members = conversion_.sets[static_cast<size_t>(set)];
      places.insert(places.end(), members.begin(), members.end());
    }
  }
  std::vector<uint64_t> bytes;
  for (const Place& place : places) {
    bytes.push_back(model_.tensor(place).bytes);
    facts_[&model_.tensor(place)] = {};
  }
  absl::Status status = RunTasks(bytes, [&](size_t index, const Executor& executor) {
    const Tensor& tensor = model_.tensor(places[index]);
    const absl::StatusOr<WeightPlan> plan =
        PlanWeight({conversion_.at(places[index]).layout, tensor.type, tensor.shape});
    if (!plan.ok()) return WeightError(plan.status(), tensor.name);
    QUANTD_ASSIGN_OR_RETURN(const auto source,
                            TensorSource::Open(model_, places[index], &counter_));
    const absl::StatusOr<WeightFacts> facts = MeasureWeight(*plan, *source, executor, interrupted_);
    if (!facts.ok()) return WeightError(facts.status(), tensor.name);
    facts_.find(&tensor)->second = *facts;
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  for (const Place& place : places) {
    const int32_t set = conversion_.at(place).set;
    if (set < 0) continue;
    std::optional<float>& largest = largest_[static_cast<size_t>(set)];
    largest = std::max(largest.value_or(0), facts_[&model_.tensor(place)].largest);
  }
  return absl::OkStatus();
}

absl::Status Runner::Run(OutputFile* plan, PartialFile* file) {
  for (size_t begin = 0; begin < plan->jobs.size();) {
    size_t end = begin;
    std::vector<uint64_t> bytes;
    for (uint64_t total = 0; end < plan->jobs.size() && (end == begin || total < kBatch); ++end) {
      bytes.push_back(plan->jobs[end].bytes_before);
      total += bytes.back();
    }
    const absl::Span<const Job> jobs = absl::MakeSpan(plan->jobs).subspan(begin, end - begin);
    QUANTD_RETURN_IF_ERROR(MeasureFor(jobs));
    absl::Status status = RunTasks(bytes, [&](size_t index, const Executor& executor) {
      return RunJob(jobs[index], plan, file, executor);
    });
    if (!status.ok()) return status;
    begin = end;
  }
  return absl::OkStatus();
}

absl::Status Runner::RunJob(const Job& job, OutputFile* plan, PartialFile* file,
                            const Executor& executor) const {
  const Tensor& tensor = model_.tensor(job.source);
  const Decision& decision = conversion_.at(job.source);
  if (decision.fate == Fate::kCopied) return Copy(job, *plan, file, executor);
  if (decision.fate == Fate::kConverted) {
    const bool decodes = decision.weight >= 0;
    absl::Status status = decodes ? Decode(job, *plan, file, executor)
                                  : Encode(job, decision.layout, plan, file, executor);
    return WeightError(status, decodes ? conversion_.weights[decision.weight].name : tensor.name);
  }
  if (tensor.bytes == 0) return absl::OkStatus();
  if (decision.fate == Fate::kCast || tensor.dtype == "F64") {
    return WeightError(Cast(job, *plan, file, executor), tensor.name);
  }
  return WeightError(Encode(job, Layout::kGgufF32, plan, file, executor), tensor.name);
}

absl::Status Runner::Encode(const Job& job, Layout layout, OutputFile* plan, PartialFile* file,
                            const Executor& executor) const {
  const Tensor& from = model_.tensor(job.source);
  QUANTD_ASSIGN_OR_RETURN(const WeightPlan weight, PlanWeight({layout, from.type, from.shape}));
  WeightFacts facts;
  if (const auto found = facts_.find(&from); found != facts_.end()) {
    facts = found->second;
  }
  if (const int32_t set = conversion_.at(job.source).set; set >= 0) {
    facts.largest = *largest_[static_cast<size_t>(set)];
  }
  QUANTD_ASSIGN_OR_RETURN(const auto source, TensorSource::Open(model_, job.source, &counter_));
  const std::vector<LayoutPart> parts = WeightParts(weight, facts);
  std::vector<std::unique_ptr<ByteSink>> sinks;
  std::vector<ByteSink*> pointers;
  for (size_t i = 0; i < parts.size(); ++i) {
    OutputTensor& tensor = plan->tensors[job.first + i];
    if (tensor.is_text) {
      tensor.bytes = parts[i].bytes;
      tensor.shape = parts[i].shape;
      std::string& text = plan->texts.find(job.first + i)->second;
      text.resize(tensor.bytes);
      sinks.push_back(std::make_unique<MemorySink>(
          absl::MakeSpan(reinterpret_cast<uint8_t*>(text.data()), text.size())));
    } else {
      sinks.push_back(std::make_unique<FileSink>(file, tensor.offset));
    }
    pointers.push_back(sinks.back().get());
  }
  return EncodeWeight(weight, facts, *source, pointers, executor, interrupted_);
}

absl::Status Runner::Decode(const Job& job, const OutputFile& plan, PartialFile* file,
                            const Executor& executor) const {
  const QuantizedWeight& weight =
      conversion_.weights[static_cast<size_t>(conversion_.at(job.source).weight)];
  std::vector<std::unique_ptr<ByteSource>> sources;
  std::vector<const ByteSource*> pointers;
  for (const std::optional<Place>& part : weight.parts) {
    if (part.has_value()) {
      QUANTD_ASSIGN_OR_RETURN(auto source, TensorSource::Open(model_, *part, &counter_));
      sources.push_back(std::move(source));
    } else {
      sources.push_back(std::make_unique<MemorySource>(absl::Span<const uint8_t>()));
    }
    pointers.push_back(sources.back().get());
  }
  const uint64_t offset = plan.tensors[job.first].offset;
  if (weight.transposed) return DecodeTransposed(weight, offset, file, executor);
  const DataType output = conversion_.target.output;
  DecodedSink sink(file, offset, output, weight.shape, nullptr, output);
  if (!weight.grid.has_value()) {
    return DecodeWeight(weight.plan, weight.facts, pointers, output, sink, executor, interrupted_);
  }
  return DecodeGrid(*weight.grid, *pointers[0], *pointers[1], pointers[2], output, sink, executor,
                    interrupted_);
}

absl::Status Runner::DecodeTransposed(const QuantizedWeight& weight, uint64_t offset,
                                      PartialFile* file, const Executor& executor) const {
  constexpr int64_t kMostElements = 4 << 20;
  const DataType output = conversion_.target.output;
  const auto width = static_cast<uint64_t>(Info(output).bits / 8);
  const int64_t matrices = weight.shape[0], columns = weight.shape[1], rows = weight.shape[2];
  QUANTD_ASSIGN_OR_RETURN(const auto codes,
                          TensorSource::Open(model_, *weight.parts[0], &counter_));
  QUANTD_ASSIGN_OR_RETURN(const auto scales,
                          TensorSource::Open(model_, *weight.parts[1], &counter_));
  const int64_t group = weight.grid->block_columns;
  const int64_t some =
      std::min(std::max(kMostElements / rows / group, int64_t{1}) * group, columns);
  std::vector<uint8_t> decoded, turned;
  DecodedSink sink(file, offset, output, weight.shape, nullptr, output);
  for (int64_t i = 0; i < matrices; ++i) {
    for (int64_t begin = 0; begin < columns; begin += some) {
      Grid grid = *weight.grid;
      grid.rows = rows;
      grid.columns = std::min(some, columns - begin);
      const auto cut = [&](const ByteSource& source, int64_t per_byte) {
        const auto pitch = static_cast<uint64_t>(columns / per_byte);
        return ColumnsSource(
            source,
            static_cast<uint64_t>(i * rows) * pitch + static_cast<uint64_t>(begin / per_byte),
            static_cast<uint64_t>(grid.columns / per_byte), pitch);
      };
      const auto elements = static_cast<size_t>(rows * grid.columns);
      decoded.resize(elements * width);
      turned.resize(elements * width);
      MemorySink memory(absl::MakeSpan(decoded));
      QUANTD_RETURN_IF_ERROR(DecodeGrid(grid, cut(*codes, 2), cut(*scales, group), nullptr, output,
                                        memory, executor, interrupted_));
      Transpose(decoded.data(), static_cast<size_t>(rows), static_cast<size_t>(grid.columns), width,
                turned.data());
      QUANTD_RETURN_IF_ERROR(
          sink.Write(static_cast<uint64_t>((i * columns + begin) * rows) * width, turned));
    }
  }
  return absl::OkStatus();
}

absl::Status Runner::Cast(const Job& job, const OutputFile& plan, PartialFile* file,
                          const Executor& executor) const {
  const Tensor& tensor = model_.tensor(job.source);
  const bool doubles = tensor.dtype == "F64";
  const DataType type = doubles ? DataType::kFloat : tensor.type;
  const Layout layout = type == DataType::kFloat     ? Layout::kGgufF32
                        : type == DataType::kFloat16 ? Layout::kGgufF16
                                                     : Layout::kGgufBf16;
  QUANTD_ASSIGN_OR_RETURN(const WeightPlan cast, PlanWeight({layout, type, tensor.shape}));
  QUANTD_ASSIGN_OR_RETURN(const auto stored, TensorSource::Open(model_, job.source, &counter_));
  const DoublesSource floats(*stored);
  const ByteSource* const source = doubles ? static_cast<const ByteSource*>(&floats) : stored.get();
  const bool casts = conversion_.at(job.source).fate == Fate::kCast;
  const DataType output = casts ? conversion_.target.output : DataType::kFloat;
  DecodedSink sink(file, plan.tensors[job.first].offset, output, tensor.shape, source, type);
  return DecodeWeight(cast, {}, {&source, 1}, output, sink, executor, interrupted_);
}

absl::Status Runner::Copy(const Job& job, const OutputFile& plan, PartialFile* file,
                          const Executor& executor) const {
  const Tensor& tensor = model_.tensor(job.source);
  const uint64_t to = plan.tensors[job.first].offset;
  QUANTD_ASSIGN_OR_RETURN(const auto source, TensorSource::Open(model_, job.source, &counter_));
  const uint64_t pieces = (tensor.bytes + kCopyPiece - 1) / kCopyPiece;
  return ForAll(executor, pieces, interrupted_, [&](size_t piece) {
    const uint64_t begin = piece * kCopyPiece, bytes = std::min(kCopyPiece, tensor.bytes - begin);
    counter_.fetch_add(bytes, std::memory_order_relaxed);
    return file->Copy(source->file(), tensor.offset + begin, to + begin, bytes);
  });
}

absl::Status FinishFile(const Model& model, OutputFile* plan, PartialFile* file) {
  absl::Status status;
  if (plan->header.empty()) {
    const uint64_t room = plan->header_bytes;
    const std::string begin = SafetensorsBegin(plan);
    if (begin.size() != room) return absl::InternalError("a header has no room");
    status = file->Write(0, begin);
    for (const auto& [index, text] : plan->texts) {
      if (status.ok()) status = file->Write(plan->tensors[index].offset, text);
    }
    return status.ok() ? file->Finish(plan->bytes) : status;
  }
  uint64_t at = 0;
  for (const HeaderPiece& piece : plan->header) {
    if (piece.text.empty() && piece.bytes > 0) {
      QUANTD_ASSIGN_OR_RETURN(const auto source, OpenFile::Open(model.shards[0].file));
      status = file->Copy(*source, piece.from, at, piece.bytes);
    } else {
      status = file->Write(at, piece.text);
    }
    if (!status.ok()) return status;
    at += piece.text.empty() ? piece.bytes : piece.text.size();
  }
  return file->Finish(plan->bytes);
}

}  // namespace quantd::checkpoints
