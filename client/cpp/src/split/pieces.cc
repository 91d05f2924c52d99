#include "pieces.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace quantd::client::split {
namespace {

constexpr size_t kThreads = 3;  // one gathers while one is being sent and one is stored

uint64_t SizeOf(int64_t elements, int element_bits, int64_t blocks, int block_bits) {
  // Both counts are bounded by the bytes of a tensor in memory: 2^45 elements of 64 bits fit.
  return (static_cast<uint64_t>(elements) * static_cast<uint64_t>(element_bits) +
          static_cast<uint64_t>(blocks) * static_cast<uint64_t>(block_bits)) /
             8 +
         kEnvelopeBytes;
}

}  // namespace

bool MessageSizes::Fit(const ServerLimits& limits) const {
  return request <= limits.message_bytes && response <= limits.message_bytes &&
         request + response <= limits.budget_bytes;
}

MessageSizes PieceCost::Of(int64_t elements, int64_t blocks) const {
  return {SizeOf(elements, request_element_bits, blocks, request_block_bits),
          SizeOf(elements, response_element_bits, blocks, response_block_bits)};
}

absl::Status RunPieces(size_t count, const std::function<absl::Status(size_t index)>& work) {
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  size_t first_failed = count;  // guarded by mutex, like status
  absl::Status status;
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
  for (size_t i = 1; i < std::min(count, kThreads); ++i) {
    try {
      threads.emplace_back(run);
    } catch (const std::system_error&) {
      break;  // the system has no more; the existing threads do the rest
    }
  }
  run();
  for (std::thread& thread : threads) thread.join();
  return status;
}

absl::Status TooLarge(const Grid& grid, const ServerLimits& limits) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "no piece of x of shape [", absl::StrJoin(grid.shape, ", "), "] fits into a message of ",
      limits.message_bytes, " bytes; start the server with a larger --max_message_bytes"));
}

void SetMessage(v1::DataType type, const Dimensions& shape, std::string bytes, v1::Tensor* tensor) {
  tensor->set_data_type(type);
  tensor->clear_shape();
  tensor->mutable_shape()->Add(shape.begin(), shape.end());
  tensor->set_raw_data(std::move(bytes));
}

absl::Status CheckResponse(const v1::Tensor& tensor, absl::string_view field, v1::DataType type,
                           int64_t elements) {
  const int bits = BitsOf(tensor.data_type());
  const int64_t bytes = bits == 0 ? -1 : BytesOf(elements, bits);
  if (tensor.data_type() == type && static_cast<int64_t>(tensor.raw_data().size()) == bytes) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat("the server's ", field, " has ", tensor.raw_data().size(),
                                          " bytes of type ", tensor.data_type(), ", expected ",
                                          elements, " elements of ", v1::DataType_Name(type)));
}

v1::DataType OutputType(v1::DataType given, const std::optional<Tensor>& zero_point) {
  if (given != v1::DATA_TYPE_UNSPECIFIED) return given;
  // With BEFORE_ROUNDING zero points may be INT32, which is never the output type.
  if (zero_point.has_value() && zero_point->data_type != v1::DATA_TYPE_INT32) {
    return zero_point->data_type;
  }
  return v1::DATA_TYPE_UINT8;
}

absl::Status OfPiece(const absl::Status& status, const Grid& grid, const Box& box) {
  if (!absl::IsInvalidArgument(status)) return status;
  absl::Status result(status.code(),
                      absl::StrCat(status.message(), " (in the piece of x, of shape [",
                                   absl::StrJoin(grid.shape, ", "), "], that begins at [",
                                   absl::StrJoin(box.begin, ", "), "])"));
  status.ForEachPayload([&result](absl::string_view url, const absl::Cord& payload) {
    result.SetPayload(url, payload);
  });
  return result;
}

}  // namespace quantd::client::split
