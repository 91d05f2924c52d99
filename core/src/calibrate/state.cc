#include "calibrate/state.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "quantd/field_error.h"

namespace quantd::calibrate {
namespace {

constexpr absl::string_view kMagic = "QDC1";
constexpr uint8_t kHasBins = 1;
constexpr uint8_t kPerAxis = 2;
// The id of the lowest possible bin, minus one.
constexpr int64_t kBeforeFirst = -rules::kInfiniteMagnitude;
// A channel without values takes two numbers.
constexpr uint64_t kLeastChannelBytes = 2;

// Counts bytes instead of storing them.
struct Counted {
  uint64_t size = 0;
  void push_back(char) { ++size; }
};

template <typename Bytes>
void PutNumber(uint64_t number, Bytes& to) {
  for (; number >= 0x80; number >>= 7) to.push_back(static_cast<char>(number | 0x80));
  to.push_back(static_cast<char>(number));
}

template <typename Bytes>
void PutFloat(float value, Bytes& to) {
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int i = 0; i < 4; ++i) to.push_back(static_cast<char>(bits >> (8 * i)));
}

absl::Status Wrong(absl::string_view why) {
  return FieldError("state", absl::StrCat("state is not one that Calibrate has made: ", why));
}

// Reads numbers from the front. Keeps the first error.
class Reader {
 public:
  explicit Reader(absl::Span<const uint8_t> bytes) : bytes_(bytes) {}

  const absl::Status& status() const { return status_; }
  size_t left() const { return bytes_.size(); }
  void Fail(absl::string_view why) {
    if (status_.ok()) status_ = Wrong(why);
    bytes_ = {};
  }

  uint8_t Byte() {
    if (bytes_.empty()) {
      Fail("it ends in the middle");
      return 0;
    }
    const uint8_t byte = bytes_.front();
    bytes_.remove_prefix(1);
    return byte;
  }
  uint64_t Number() {
    uint64_t number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = Byte();
      if (!status_.ok()) return 0;
      const uint64_t bits = byte & 0x7F;
      if (bits << shift >> shift != bits) break;
      number |= bits << shift;
      if (byte >= 0x80) continue;
      if (byte == 0 && shift > 0) break;
      return number;
    }
    Fail("a number is not in its shortest form, or over 64 bits");
    return 0;
  }
  float Float() {
    uint32_t bits = 0;
    for (int i = 0; i < 4; ++i) bits |= uint32_t{Byte()} << (8 * i);
    return std::bit_cast<float>(bits);
  }

 private:
  absl::Span<const uint8_t> bytes_;
  absl::Status status_;
};

StateHead ReadHead(Reader& reader) {
  for (const char expected : kMagic) {
    if (reader.Byte() != static_cast<uint8_t>(expected)) reader.Fail("it does not begin with QDC1");
  }
  const uint8_t flags = reader.Byte();
  if (flags > (kHasBins | kPerAxis)) reader.Fail(absl::StrCat("its flags are ", flags));
  StateHead head{(flags & kHasBins) != 0, (flags & kPerAxis) != 0, reader.Number()};
  if (!head.per_axis && head.channels != 1) {
    reader.Fail(absl::StrCat("it has ", head.channels, " channels without an axis"));
  }
  if (head.channels > reader.left() / kLeastChannelBytes) {
    reader.Fail(
        absl::StrCat("it claims ", head.channels, " channels in ", reader.left(), " bytes"));
  }
  return head;
}

int IdOf(float value, int floor) {
  const int m = rules::Magnitude(value);
  if (m <= floor) return 0;
  return value < 0 ? -m : m;
}

// The bins of a channel with this range; added to `bins`, unless that is null.
void ReadBins(Reader& reader, float low, float high, uint64_t finite, Bins* bins) {
  const int top = rules::Magnitude(std::max(std::fabs(low), std::fabs(high)));
  const int floor = rules::Floor(top);
  if (bins != nullptr) bins->RaiseTop(top);
  const uint64_t size = reader.Number();
  if (size > rules::kSlots) return reader.Fail(absl::StrCat("a channel has ", size, " bins"));
  int64_t id = kBeforeFirst;
  uint64_t left = finite;
  for (uint64_t i = 0; i < size && reader.status().ok(); ++i) {
    const uint64_t step = reader.Number();
    const uint64_t count = reader.Number();
    if (step == 0 || step > 2 * uint64_t{rules::kInfiniteMagnitude}) {
      return reader.Fail("its bins are not in order");
    }
    id += static_cast<int64_t>(step);
    const int64_t m = std::abs(id);
    if (id != 0 && (m <= floor || m > top)) {
      return reader.Fail(
          absl::StrCat("bin ", id, " is not one of a channel whose largest is ", top));
    }
    if (i == 0 && id != IdOf(low, floor)) return reader.Fail("its lowest bin is not that of low");
    if (count == 0 || count > left) return reader.Fail("its counts do not add up");
    left -= count;
    if (bins != nullptr) bins->Add(static_cast<int>(id), count);
  }
  if (left != 0) return reader.Fail("its counts do not add up");
  if (id != IdOf(high, floor)) return reader.Fail("its highest bin is not that of high");
}

template <typename Bytes>
void Put(const Channels& channels, bool per_axis, Bytes& state) {
  for (const char letter : kMagic) state.push_back(letter);
  state.push_back(
      static_cast<char>((channels.has_bins() ? kHasBins : 0) | (per_axis ? kPerAxis : 0)));
  PutNumber(channels.size(), state);
  for (size_t i = 0; i < channels.size(); ++i) {
    PutNumber(channels.finite[i], state);
    PutNumber(channels.non_finite[i], state);
    if (channels.finite[i] == 0) continue;
    PutFloat(channels.LowOf(i), state);
    PutFloat(channels.HighOf(i), state);
    if (!channels.has_bins()) continue;
    uint64_t size = 0;
    const Bins& bins = *channels.FindBins(i);
    bins.ForEach([&](int, uint64_t) { ++size; });
    PutNumber(size, state);
    int64_t before = kBeforeFirst;
    bins.ForEach([&](int id, uint64_t count) {
      PutNumber(static_cast<uint64_t>(id - before), state);
      PutNumber(count, state);
      before = id;
    });
  }
}

}  // namespace

uint64_t StateBytes(const Channels& channels, bool per_axis) {
  Counted counted;
  Put(channels, per_axis, counted);
  return counted.size;
}

std::string WriteState(const Channels& channels, bool per_axis) {
  std::string state;
  state.reserve(StateBytes(channels, per_axis));
  Put(channels, per_axis, state);
  return state;
}

absl::StatusOr<StateHead> ReadStateHead(absl::Span<const uint8_t> state) {
  Reader reader(state);
  StateHead head = ReadHead(reader);
  if (!reader.status().ok()) return reader.status();
  return head;
}

absl::StatusOr<Channels> ReadState(absl::Span<const uint8_t> state, bool wants_bins) {
  Reader reader(state);
  const StateHead head = ReadHead(reader);
  if (!reader.status().ok()) return reader.status();
  if (wants_bins && !head.has_bins) {
    return FieldError("state", "state has no bins (it is of MIN_MAX), and the method needs them");
  }
  Channels channels(static_cast<size_t>(head.channels), wants_bins);
  for (size_t i = 0; i < channels.size() && reader.status().ok(); ++i) {
    channels.finite[i] = reader.Number();
    channels.non_finite[i] = reader.Number();
    if (channels.finite[i] > kMostValues || channels.non_finite[i] > kMostValues) {
      reader.Fail(absl::StrCat("channel ", i, " has over 2^62 elements"));
    }
    if (channels.finite[i] == 0) continue;
    const float low = reader.Float();
    const float high = reader.Float();
    const auto canonical = [](float value) {
      return std::isfinite(value) && std::bit_cast<uint32_t>(value) != 0x80000000u;
    };
    if (!reader.status().ok()) break;
    if (!canonical(low) || !canonical(high) || low > high ||
        (low < high && channels.finite[i] == 1)) {
      reader.Fail(absl::StrCat("channel ", i, " has the range [", low, ", ", high, "]"));
      break;
    }
    channels.low[i] = low;
    channels.high[i] = high;
    if (!head.has_bins) continue;
    ReadBins(reader, low, high, channels.finite[i], wants_bins ? &channels.BinsOf(i) : nullptr);
  }
  if (reader.status().ok() && reader.left() > 0) {
    reader.Fail(absl::StrCat(reader.left(), " bytes follow its end"));
  }
  if (!reader.status().ok()) return reader.status();
  return channels;
}

}  // namespace quantd::calibrate
