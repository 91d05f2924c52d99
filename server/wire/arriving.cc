#include "server/wire/arriving.h"

#include "absl/strings/str_cat.h"
#include "quantd/v1/quantization.pb.h"
#include "server/wire/decode.h"
#include "server/wire/writer.h"

namespace quantd::wire {
namespace {

constexpr uint32_t kX = v1::QuantizeRequest::kXFieldNumber;
static_assert(kX == v1::DynamicQuantizeRequest::kXFieldNumber);

// The last field of the message, if it is the wanted one. `each` is called for those before it.
template <typename Each>
std::optional<Field> CutOffField(Scanner scanner, uint32_t wanted, uint64_t& size, Each each) {
  Field field;
  while (scanner.Next(field)) each(field);
  if (!scanner.IsCutOff(field, size) || field.number != wanted) return std::nullopt;
  return field;
}

}  // namespace

std::optional<ArrivingTensor> FindArrivingX(BytesView so_far) {
  uint64_t tensor_size = 0;
  const std::optional<Field> x = CutOffField(Scanner(so_far), kX, tensor_size, [](Field&) {});
  if (!x.has_value()) return std::nullopt;
  uint64_t size = 0;
  const DataTypeInfo* type = nullptr;
  const std::optional<Field> raw = CutOffField(
      Scanner(x->payload, 1), v1::Tensor::kRawDataFieldNumber, size, [&](const Field& field) {
        if (!field.Is(v1::Tensor::kDataTypeFieldNumber, WireType::kVarint)) return;
        type = FindDataType(static_cast<int>(field.varint));
      });
  if (!raw.has_value() || type == nullptr) return std::nullopt;
  const auto offset = [&](BytesView bytes) {
    return static_cast<size_t>(bytes.data() - so_far.data());
  };
  ArrivingTensor found{type->type,       offset(raw->payload), size,
                       offset(x->whole), offset(x->payload),   offset(raw->whole)};
  found.is_last = found.tensor + tensor_size == found.end();
  return found;
}

std::string WithoutElements(BytesView so_far, const ArrivingTensor& x, absl::string_view behind) {
  const absl::string_view head(reinterpret_cast<const char*>(so_far.data()), x.begin);
  std::string tensor(head.substr(x.tensor, x.raw_data - x.tensor));
  AppendBytesHeader(v1::Tensor::kRawDataFieldNumber, 0, tensor);
  std::string request(head.substr(0, x.field));
  AppendBytesField(kX, tensor, request);
  absl::StrAppend(&request, behind);
  return request;
}

absl::StatusOr<Request> DecodeWithoutElements(const ArrivingTensor& x, absl::string_view message) {
  absl::StatusOr<Request> request = DecodeRequest(
      Method::kQuantize, {reinterpret_cast<const uint8_t*>(message.data()), message.size()});
  if (!request.ok()) return request;
  const TensorView& found = TensorOf(*request, TensorField::kX);
  const bool same = found.data_type == x.data_type && found.bytes.empty();
  const bool raw = request->packed.empty() && request->shared.empty() &&
                   !request->output.has_value() && request->output_encoding == Encoding::kRaw;
  if (!same || !raw) return absl::UnimplementedError("it must be complete before it is computed");
  return request;
}

}  // namespace quantd::wire
