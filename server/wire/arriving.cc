#include "server/wire/arriving.h"

#include "quantd/v1/quantization.pb.h"

namespace quantd::wire {
namespace {

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
  uint64_t size = 0;
  const std::optional<Field> x =
      CutOffField(Scanner(so_far), v1::DynamicQuantizeRequest::kXFieldNumber, size, [](Field&) {});
  if (!x.has_value()) return std::nullopt;
  const DataTypeInfo* type = nullptr;
  const std::optional<Field> raw = CutOffField(
      Scanner(x->payload, 1), v1::Tensor::kRawDataFieldNumber, size, [&](const Field& field) {
        if (!field.Is(v1::Tensor::kDataTypeFieldNumber, WireType::kVarint)) return;
        type = FindDataType(static_cast<int>(field.varint));
      });
  if (!raw.has_value() || type == nullptr) return std::nullopt;
  return ArrivingTensor{type->type, static_cast<size_t>(raw->payload.data() - so_far.data()), size};
}

}  // namespace quantd::wire
