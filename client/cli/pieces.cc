#include "pieces.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "element_type.h"

namespace quantd::cli {
namespace {

constexpr uint64_t kPieceBytes = 16 << 20;
constexpr uint64_t kEnvelopeBytes = 4096;  // everything in a message that is not elements or scales
constexpr int kThreads = 3;                // one gathers while one is on its way and one is written

struct Sizes {
  double request, answer;  // bytes; doubles do not overflow, and are exact as far as limits reach
};

Sizes SizesOf(const BlockGrid& grid, const Shape& size, const PieceCost& cost) {
  double elements = 1, blocks = 1;
  for (size_t d = 0; d < size.size(); ++d) {
    elements *= static_cast<double>(size[d]);
    if (grid.counts[d] != 1) {
      const int64_t started = (size[d] + grid.block[d] - 1) / grid.block[d];
      blocks *= static_cast<double>(started);
    }
  }
  return {(elements * cost.request_element_bits + blocks * cost.request_block_bits) / 8,
          (elements * cost.answer_element_bits + blocks * cost.answer_block_bits) / 8};
}

}  // namespace

absl::StatusOr<PiecePlan> CutTensor(const BlockGrid& grid, Cut cut, const PieceCost& cost,
                                    const PieceLimits& limits, bool stretch) {
  const auto within = [&](const Shape& size, uint64_t message_bytes) {
    const Sizes sizes = SizesOf(grid, size, cost);
    if (limits.budget_bytes > 0 &&
        sizes.request + sizes.answer > static_cast<double>(limits.budget_bytes)) {
      return false;
    }
    return std::max(sizes.request, sizes.answer) + kEnvelopeBytes <=
           static_cast<double>(message_bytes);
  };
  const uint64_t most = limits.message_bytes;
  const uint64_t wanted = limits.wanted_bytes == 0 ? most : std::min(most, limits.wanted_bytes);
  uint64_t piece = wanted;
  if (!within(grid.shape, wanted)) piece = std::min(wanted, kPieceBytes);
  for (const uint64_t message_bytes : {piece, wanted, stretch ? most : wanted}) {
    std::optional<PiecePlan> plan =
        PlanPieces(grid, cut, [&](const Shape& size) { return within(size, message_bytes); });
    if (plan.has_value()) return *std::move(plan);
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("a block of x ", ShapeString(grid.shape), " does not fit into a message of ",
                   most, " bytes; start the server with a larger --max_message_bytes"));
}

absl::Status RunPieces(size_t count, absl::FunctionRef<absl::Status(size_t index)> work) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  size_t first_failed = count;  // guarded by mutex, as is status
  absl::Status status;
  std::atomic<bool> failed = false;
  const auto run = [&] {
    while (!failed) {
      const size_t index = next++;
      if (index >= count) return;
      absl::Status result = work(index);
      if (result.ok()) continue;
      failed = true;
      const std::lock_guard<std::mutex> lock(mutex);
      if (index < first_failed) {
        first_failed = index;
        status = std::move(result);
      }
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min<size_t>(count, kThreads); ++i) threads.emplace_back(run);
  run();
  for (std::thread& thread : threads) thread.join();
  return status;
}

void SetTensor(DataType type, absl::Span<const int64_t> shape, std::string bytes,
               v1::Tensor* tensor) {
  tensor->set_data_type(static_cast<v1::DataType>(type));
  tensor->mutable_shape()->Clear();
  tensor->mutable_shape()->Add(shape.begin(), shape.end());
  tensor->set_raw_data(std::move(bytes));
}

std::string CutScales(const ScaleTensor& scales, const BlockGrid& grid, const Box& box) {
  if (grid.scales == 1) return scales.bytes;
  const auto* bytes = reinterpret_cast<const uint8_t*>(scales.bytes.data());
  return GatherBox({bytes, scales.bytes.size()}, Info(scales.type).bits,
                   RowMajorStrides(grid.counts), grid.BlocksOf(box));
}

void SetPieceScales(const ScaleTensor& scales, const BlockGrid& grid, const Box& box,
                    v1::Tensor* tensor) {
  const Shape shape = grid.scales == 1 ? Shape() : grid.BlocksOf(box).size;
  SetTensor(scales.type, shape, CutScales(scales, grid, box), tensor);
}

absl::StatusOr<std::string> TakeBytes(v1::Tensor* tensor, absl::string_view field, DataType type,
                                      int64_t elements) {
  const uint64_t expected = ByteSize(type, elements);
  if (tensor->data_type() != static_cast<v1::DataType>(type) ||
      tensor->raw_data().size() != expected) {
    return absl::InternalError(absl::StrCat(
        "the server's ", field, " has ", tensor->raw_data().size(), " bytes of type ",
        static_cast<int>(tensor->data_type()), "; expected ", expected, " of ", TypeName(type)));
  }
  return std::move(*tensor->mutable_raw_data());
}

}  // namespace quantd::cli
