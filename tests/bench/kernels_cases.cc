#include "kernels_cases.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "kernels/find_kernel.h"
#include "kernels/kernel_table.h"

namespace quantd::bench {
namespace {

constexpr size_t kCodeTile = 4096;  // codes between a kernel and packing
constexpr size_t kMaxRuns = size_t{64} << 20;
constexpr float kScale = 0.0234375f;

// Scales for the largest number of runs or elements of any case. All are equal, but kernels cannot
// know that.
struct Scales {
  std::vector<float> scale, reciprocal, correction, zero_point;
  std::vector<int32_t> integer_zero_point;

  explicit Scales(size_t count)
      : scale(count, kScale),
        reciprocal(count),
        correction(count),
        zero_point(count, 3.0f),
        integer_zero_point(count, 3) {
    Kernels().make_reciprocals(scale.data(), count, reciprocal.data(), correction.data());
  }
};

// Enough for runs of 32 in 256 MiB; a scale for each element is used in rows of 4,096.
const Scales& SharedScales() {
  static const Scales scales(kMaxRuns / 32 + 4096);
  return scales;
}

struct Row {
  const char* name;
  Division division;
  Encoder encoder;
};
constexpr Row kRows[] = {
#define QUANTD_QUANTIZE(division, encoder) \
  {#division " " #encoder, Division::division, Encoder::encoder},
#include "kernels/kernels.inc"
};

// "kDivideFloat16 kFloat8E4M3Fn" -> "DivideFloat16 Float8E4M3Fn"
std::string Plain(std::string_view name) {
  std::string plain;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == 'k' && (i == 0 || name[i - 1] == ' ')) continue;
    plain += name[i];
  }
  return plain;
}

QuantizeTile MakeTile(const Row& row, ScaleMode mode, size_t run) {
  const Scales& scales = SharedScales();
  QuantizeTile tile;
  tile.scale = scales.scale.data();
  tile.reciprocal = scales.reciprocal.data();
  tile.correction = scales.correction.data();
  if (row.encoder == Encoder::kInteger8 || row.encoder == Encoder::kInteger16) {
    tile.zero_point = scales.zero_point.data();
  }
  tile.maximum = row.encoder == Encoder::kInteger16 ? 65535 : 255;
  if (mode == ScaleMode::kRuns) tile.run = run;
  return tile;
}

// For a scale per element: rows of 4,096, as in a tensor with a scale for each column.
template <typename Kernel, typename Tile>
void ByRows(Kernel kernel, Tile tile, size_t size, size_t in, size_t out) {
  const uint8_t* x = tile.x;
  uint8_t* y = tile.y;
  for (size_t i = 0; i < size; i += 4096) {
    tile.x = x + i * in;
    tile.y = y + i * out;
    tile.size = std::min<size_t>(4096, size - i);
    kernel(tile);
  }
}

Kernel QuantizeCase(const Row& row, ScaleMode mode, size_t run, std::string_view suffix) {
  const size_t out = row.encoder == Encoder::kInteger16 ? 2 : 1;
  return {absl::StrCat("quantize ", Plain(row.name), std::string(suffix)),
          out == 2 ? Limit::kNarrow16 : Limit::kNarrow8,
          [=](const uint8_t* x, size_t size, uint8_t* y, bool stream) {
            const QuantizeKernel kernel =
                Kernels().quantize[static_cast<size_t>(row.division)]
                                  [static_cast<size_t>(row.encoder)][static_cast<size_t>(mode)];
            QuantizeTile tile = MakeTile(row, mode, run);
            tile.x = x;
            tile.y = y;
            tile.size = size;
            tile.stream = stream;
            if (mode == ScaleMode::kPerElement) {
              ByRows(kernel, tile, size, sizeof(float), out);
            } else {
              kernel(tile);
            }
          }};
}

using Convert = void (*KernelTable::*)(const uint8_t*, size_t, uint8_t*);

// One-byte codes, packed to 4 or 2 bits.
Kernel PackedCase(const Row& row, std::string_view type, Convert pack, size_t bits) {
  return {
      absl::StrCat("quantize ", Plain(row.name), " to ", std::string(type)), Limit::kNarrow8,
      [=](const uint8_t* x, size_t size, uint8_t* y, bool) {
        const KernelTable& kernels = Kernels();
        alignas(64) uint8_t codes[kCodeTile];
        QuantizeTile tile = MakeTile(row, ScaleMode::kRuns, SIZE_MAX);
        tile.maximum = (1 << bits) - 1;
        tile.y = codes;
        for (size_t i = 0; i < size; i += kCodeTile) {
          tile.size = std::min(kCodeTile, size - i);
          tile.x = x + i * sizeof(float);
          kernels.quantize[static_cast<size_t>(row.division)][static_cast<size_t>(row.encoder)][0](
              tile);
          (kernels.*pack)(codes, tile.size, y + i * bits / 8);
        }
      }};
}

struct DequantizeRow {
  const char* name;
  Decoder decoder;
};
constexpr DequantizeRow kDequantizeRows[] = {
#define QUANTD_DEQUANTIZE(decoder) {#decoder, Decoder::decoder},
#include "kernels/kernels.inc"
};

Kernel DequantizeCase(const DequantizeRow& row, ScaleMode mode, size_t run,
                      std::string_view suffix) {
  const bool wide = row.decoder == Decoder::kUint16 || row.decoder == Decoder::kInt16;
  const size_t in = row.decoder == Decoder::kInt32 ? 4 : wide ? 2 : 1;
  return {absl::StrCat("dequantize ", Plain(row.name), std::string(suffix)),
          in == 4   ? Limit::kCopy32
          : in == 2 ? Limit::kWiden16
                    : Limit::kWiden8,
          [=](const uint8_t* x, size_t size, uint8_t* y, bool stream) {
            const DequantizeKernel kernel =
                Kernels().dequantize[static_cast<size_t>(row.decoder)][static_cast<size_t>(mode)];
            const Scales& scales = SharedScales();
            DequantizeTile tile;
            tile.x = x;
            tile.y = y;
            tile.size = size;
            tile.scale = scales.scale.data();
            const bool is_float = row.decoder >= Decoder::kFloat8E4M3Fn;
            if (!is_float) tile.zero_point = scales.integer_zero_point.data();
            tile.run = run;
            tile.stream = stream;
            if (mode == ScaleMode::kPerElement) {
              ByRows(kernel, tile, size, in, sizeof(float));
            } else {
              kernel(tile);
            }
          }};
}

Kernel RangeCase(std::string_view name, NonFinite non_finite, ScaleMode mode, size_t run) {
  return {absl::StrCat("range ", std::string(name)), Limit::kRead,
          [=](const uint8_t* x, size_t size, uint8_t*, bool) {
            static thread_local std::vector<float> minima(kMaxRuns / 32 + 4096),
                maxima(kMaxRuns / 32 + 4096);
            RangeTile tile;
            tile.size = size;
            tile.run = run;
            tile.min = minima.data();
            tile.max = maxima.data();
            const RangeKernel kernel = FindRange(Kernels(), non_finite, mode);
            const size_t rows = mode == ScaleMode::kPerElement ? 4096 : size;
            for (size_t i = 0; i < size; i += rows) {
              tile.x = x + i * sizeof(float);
              tile.size = std::min(rows, size - i);
              kernel(tile);
            }
          }};
}

// The error report that follows Quantize.
Kernel ErrorsCase(const Row& row, size_t run, std::string_view suffix) {
  return {absl::StrCat("errors of ", Plain(row.name), std::string(suffix)), Limit::kRead,
          [=](const uint8_t* x, size_t size, uint8_t* y, bool) {
            const Scales& scales = SharedScales();
            ErrorTile tile;
            tile.x = x;
            tile.codes = y;
            tile.size = size;
            tile.run = run;
            tile.division = row.division;
            tile.encoder = row.encoder;
            tile.scale = scales.scale.data();
            tile.dequantize_scale = scales.scale.data();
            tile.maximum = 255;
            ErrorSums sums;
            AddErrors(tile, sums);
          }};
}

struct EmbedRow {
  const char* name;
  Embedder embedder;
};
constexpr EmbedRow kEmbedRows[] = {
#define QUANTD_EMBED(embedder) {#embedder, Embedder::embedder},
#include "kernels/kernels.inc"
};

// Embeddings of 1,024 values, each with its own range and length.
Kernel EmbedCase(const EmbedRow& row) {
  constexpr size_t kWidth = 1024;
  struct Ranges {
    alignas(64) float low[kWidth], step[kWidth], factor[kWidth];  // as in a plan
    std::vector<double> length = std::vector<double>(kMaxRuns / kWidth, 55.0);
    Ranges() {
      for (size_t i = 0; i < kWidth; ++i) {
        low[i] = -3 + static_cast<float>(i) * 1e-5f;
        step[i] = (3 - low[i]) / 255;
        factor[i] = MakeFactor(step[i]);
      }
    }
  };
  static const Ranges ranges;
  const bool bits = row.embedder == Embedder::kBits;
  return {absl::StrCat("embed ", Plain(row.name)), bits ? Limit::kRead : Limit::kNarrow8,
          [=](const uint8_t* x, size_t size, uint8_t* y, bool) {
            EmbedTile tile;
            tile.x = x;
            tile.y = y;
            tile.rows = std::max<size_t>(size / kWidth, 1);
            tile.size = std::min(size, kWidth);
            tile.stride = tile.size;
            tile.y_stride = bits ? tile.size / 8 : tile.size;
            tile.low = ranges.low;
            tile.step = ranges.step;
            tile.factor = ranges.factor;
            tile.length = ranges.length.data();
            Kernels().embed[static_cast<size_t>(row.embedder)](tile);
          }};
}

// Blocks of layouts: 32 or 64 floats.
struct GgufRow {
  const char* name;
  GgufBlock block;
};
constexpr GgufRow kGgufRows[] = {
#define QUANTD_GGUF(block, bytes) {#block, GgufBlock::block},
#include "kernels/kernels.inc"
};
struct BnbRow {
  const char* name;
  BnbTable table;
};
constexpr BnbRow kBnbRows[] = {
#define QUANTD_BNB(table) {#table, BnbTable::table},
#include "kernels/kernels.inc"
};

Kernel GgufCase(const GgufRow& row) {
  return {absl::StrCat("gguf ", Plain(row.name)), Limit::kNarrow8,
          [=](const uint8_t* x, size_t size, uint8_t* y, bool) {
            Kernels().gguf[static_cast<size_t>(row.block)](x, size / 32, y);
          }};
}
Kernel BnbCase(const BnbRow& row) {
  return {absl::StrCat("bnb ", Plain(row.name)), Limit::kNarrow8,
          [=](const uint8_t* x, size_t size, uint8_t* y, bool) {
            static thread_local std::vector<float> absmax(kMaxRuns / 64);
            Kernels().bnb[static_cast<size_t>(row.table)](x, size / 64, absmax.data(), y);
          }};
}
Kernel LargestCase(std::string_view name, size_t width) {
  return {absl::StrCat("largest of ", std::string(name)), Limit::kRead,
          [=](const uint8_t* x, size_t size, uint8_t* y, bool) {
            const KernelTable& kernels = Kernels();
            const uint32_t found = (width == 2 ? kernels.largest16 : kernels.largest32)(
                x, 1, size * sizeof(float) / width, 0);
            std::memcpy(y, &found, sizeof(found));
          }};
}

struct ConvertRow {
  const char* name;
  Convert convert;
  size_t in;
  size_t out;
};
constexpr ConvertRow kConvertRows[] = {
#define QUANTD_CONVERT(name, input_bits, output_bits) \
  {#name, &KernelTable::name, input_bits, output_bits},
#include "kernels/kernels.inc"
};

}  // namespace

std::vector<Kernel> AllKernels() {
  std::vector<Kernel> cases;
  const Row& u8 = kRows[0];  // Reciprocal Integer8
  cases.push_back(QuantizeCase(u8, ScaleMode::kRuns, SIZE_MAX, " (f32 to u8)"));
  cases.push_back(QuantizeCase(u8, ScaleMode::kRuns, 128, " runs of 128"));
  cases.push_back(QuantizeCase(u8, ScaleMode::kRuns, 32, " runs of 32"));
  cases.push_back(QuantizeCase(u8, ScaleMode::kRuns, 49, " runs of 49"));
  cases.push_back(QuantizeCase(u8, ScaleMode::kPerElement, 0, " per column"));
  cases.push_back(PackedCase(u8, "6 bits", &KernelTable::pack6, 6));
  cases.push_back(PackedCase(u8, "4 bits", &KernelTable::pack4, 4));
  cases.push_back(PackedCase(u8, "2 bits", &KernelTable::pack2, 2));
  for (const Row& row : kRows) {
    if (&row == &u8) continue;
    cases.push_back(QuantizeCase(row, ScaleMode::kRuns, SIZE_MAX, ""));
    if (row.division == Division::kDivide && row.encoder >= Encoder::kFloat8E4M3Fn) {
      cases.push_back(QuantizeCase(row, ScaleMode::kRuns, 32, " runs of 32"));
      cases.push_back(QuantizeCase(row, ScaleMode::kPerElement, 0, " per column"));
    }
  }
  for (const DequantizeRow& row : kDequantizeRows) {
    cases.push_back(DequantizeCase(row, ScaleMode::kRuns, SIZE_MAX, ""));
    if (row.decoder == Decoder::kUint8 || IsMiniFloat(row.decoder)) {
      cases.push_back(DequantizeCase(row, ScaleMode::kRuns, 128, " runs of 128"));
      cases.push_back(DequantizeCase(row, ScaleMode::kRuns, 32, " runs of 32"));
      cases.push_back(DequantizeCase(row, ScaleMode::kPerElement, 0, " per column"));
    }
  }
  cases.push_back(RangeCase("of the tensor", NonFinite::kReject, ScaleMode::kRuns, SIZE_MAX));
  cases.push_back(
      RangeCase("of the tensor, ignoring", NonFinite::kIgnore, ScaleMode::kRuns, SIZE_MAX));
  cases.push_back(RangeCase("runs of 128", NonFinite::kReject, ScaleMode::kRuns, 128));
  cases.push_back(RangeCase("runs of 32", NonFinite::kReject, ScaleMode::kRuns, 32));
  cases.push_back(RangeCase("per column", NonFinite::kReject, ScaleMode::kPerElement, 0));
  for (const Row& row : kRows) {
    if (row.division >= Division::kMultiply) continue;  // no request has these
    cases.push_back(ErrorsCase(row, SIZE_MAX, ""));
    if (&row == &u8) cases.push_back(ErrorsCase(row, 32, " runs of 32"));
  }
  for (const EmbedRow& row : kEmbedRows) cases.push_back(EmbedCase(row));
  for (const GgufRow& row : kGgufRows) cases.push_back(GgufCase(row));
  for (const BnbRow& row : kBnbRows) cases.push_back(BnbCase(row));
  cases.push_back(LargestCase("FLOAT", 4));
  cases.push_back(LargestCase("BFLOAT16", 2));
  for (const ConvertRow& row : kConvertRows) {
    cases.push_back({absl::StrCat("convert ", row.name),
                     row.in == 32    ? (row.out == 32 ? Limit::kCopy32 : Limit::kNarrow16)
                     : row.out == 32 ? Limit::kWiden16
                                     : Limit::kNarrow8,
                     [row](const uint8_t* x, size_t size, uint8_t* y, bool) {
                       (Kernels().*row.convert)(x, size, y);
                     }});
  }
  return cases;
}

}  // namespace quantd::bench
