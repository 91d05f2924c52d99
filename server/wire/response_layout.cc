#include "server/wire/response_layout.h"

#include <limits>

#include "server/memory/buffer.h"
#include "server/wire/response_parts.h"
#include "server/wire/writer.h"

namespace quantd::wire {
namespace {

constexpr uint64_t kTooMuch = std::numeric_limits<uint64_t>::max();

uint64_t Add(uint64_t a, uint64_t b) { return a > kTooMuch - b ? kTooMuch : a + b; }
uint64_t Multiply(uint64_t a, uint64_t b) { return b != 0 && a > kTooMuch / b ? kTooMuch : a * b; }

// The most bytes of one value in a message.
uint64_t ValueBytes(DataType type) {
  const DataTypeInfo& info = Info(type);
  if (info.kind != DataTypeKind::kInteger) return sizeof(float);
  return info.minimum < 0 ? kMaxVarintSize : VarintSize(info.maximum);
}

}  // namespace

uint64_t MaxEncodedBytes(const ResponseLayout& layout) {
  uint64_t bytes = kEnvelopeBytes + (layout.report_error ? kMaxErrorBytes : 0);
  for (const ResponsePart& part : PartsOf(layout)) {
    uint64_t payload = part.tensor->bytes;
    if (part.place != nullptr) {
      payload = MaxReferenceBytes(*part.place);
    } else if (layout.encoding == Encoding::kValues) {
      payload = Multiply(static_cast<uint64_t>(part.tensor->elements),
                         ValueBytes(part.tensor->data_type));
    }
    bytes = Add(bytes, Add(payload, MaxTensorHeaderBytes(*part.tensor)));
  }
  return bytes;
}

uint64_t ResponseMemoryBytes(const ResponseLayout& layout) {
  uint64_t bytes = memory::Pool::Footprint(Add(MaxEncodedBytes(layout), kAlignment));
  if (layout.encoding == Encoding::kRaw) return bytes;
  // The packed bytes (once more while the core unpacks them), and each value twice: as the core
  // unpacks it, and in the generated message.
  for (const ResponsePart& part : PartsOf(layout)) {
    bytes = Add(bytes, Multiply(part.tensor->bytes, 2));
    bytes = Add(bytes, Multiply(static_cast<uint64_t>(part.tensor->elements), 2 * sizeof(int64_t)));
  }
  return bytes;
}

}  // namespace quantd::wire
