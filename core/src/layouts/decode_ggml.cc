// Decodes gguf's blocks to FLOAT: first extracts codes, scales and minimums of a piece, then runs
// one kernel over all of them.
#include <algorithm>
#include <array>
#include <cstring>

#include "layouts/decode_region.h"
#include "rules/layouts.h"

namespace quantd {
namespace {

// The extracted blocks of a piece: one byte per code, and one entry for every `run` codes.
struct Apart {
  alignas(64) std::array<uint8_t, kPiece> codes;
  std::array<float, kPiece / 16> scale;
  std::array<float, kPiece / 16> minimum;  // added, if there is one
};

// Properties of a type besides its size.
struct GgmlForm {
  // Writes one block to codes, scale and minimum.
  void (*take)(const uint8_t* block, uint8_t* codes, float* scale, float* minimum);
  Decoder decoder;
  size_t run;
  int32_t zero_point;
  bool has_minimum;
};

float Half(const uint8_t* x) { return LoadElement(DataType::kFloat16, x); }

// Loops over 16 and 32 bytes, which compilers vectorise.
void Nibbles(const uint8_t* qs, uint8_t* codes) {
  for (int i = 0; i < 16; ++i) codes[i] = qs[i] & 15;
  for (int i = 0; i < 16; ++i) codes[16 + i] = qs[i] >> 4;
}
void AddFifthBits(const uint8_t* qh, uint8_t* codes) {
  for (int i = 0; i < 32; ++i) {
    codes[i] |= static_cast<uint8_t>((qh[i / 8] & 1 << i % 8) != 0 ? 16 : 0);
  }
}

void TakeQ8_0(const uint8_t* block, uint8_t* codes, float* scale, float*) {
  *scale = Half(block);
  std::memcpy(codes, block + 2, 32);
}
template <bool kMinimum, int kBits>
void TakeNibbles(const uint8_t* block, uint8_t* codes, float* scale, float* minimum) {
  *scale = Half(block);
  block += 2;
  if (kMinimum) {
    *minimum = Half(block);
    block += 2;
  }
  Nibbles(block + (kBits == 5 ? 4 : 0), codes);
  if (kBits == 5) AddFifthBits(block, codes);
}
void TakeMxfp4(const uint8_t* block, uint8_t* codes, float* scale, float*) {
  // The values of the codes are twice those of FLOAT4E2M1.
  *scale = rules::PowerOfCode(block[0]);
  Nibbles(block + 1, codes);
}

// Two bits of 256 elements: 128 of them are the four pairs of 32 bytes.
void Pairs(const uint8_t* qs, uint8_t* codes) {
  for (int i = 0; i < 256; i += 32) {
    const uint8_t* const from = qs + i / 128 * 32;
    const int shift = i / 32 % 4 * 2;
    for (int j = 0; j < 32; ++j) codes[i + j] = from[j] >> shift & 3;
  }
}
void TakeQ2K(const uint8_t* block, uint8_t* codes, float* scale, float* minimum) {
  const float d = Half(block + 80);
  const float dmin = Half(block + 82);
  for (int k = 0; k < 16; ++k) {
    scale[k] = d * static_cast<float>(block[k] & 15);
    minimum[k] = -(dmin * static_cast<float>(block[k] >> 4));
  }
  Pairs(block + 16, codes);
}
void TakeQ3K(const uint8_t* block, uint8_t* codes, float* scale, float*) {
  const float d = Half(block + 108);
  const uint8_t* const s = block + 96;
  for (int k = 0; k < 16; ++k) {
    const int six = (s[k % 8] >> (k < 8 ? 0 : 4) & 15) | (s[8 + k % 4] >> 2 * (k / 4) & 3) << 4;
    scale[k] = d * static_cast<float>(six - 32);
  }
  Pairs(block + 32, codes);
  // With 4 added, which is the zero point.
  for (int i = 0; i < 256; i += 32) {
    for (int j = 0; j < 32; ++j)
      codes[i + j] |= static_cast<uint8_t>((block[j] >> i / 32 & 1) << 2);
  }
}
template <int kBits>
void TakeQ45K(const uint8_t* block, uint8_t* codes, float* scale, float* minimum) {
  const float d = Half(block);
  const float dmin = Half(block + 2);
  const uint8_t* const s = block + 4;
  for (int j = 0; j < 8; ++j) {
    const int six = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
    const int least = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | s[j] >> 6 << 4;
    scale[j] = d * static_cast<float>(six);
    minimum[j] = -(dmin * static_cast<float>(least));
  }
  const uint8_t* const qh = block + 16;
  const uint8_t* const qs = block + (kBits == 5 ? 48 : 16);
  for (int i = 0; i < 256; i += 64) {
    for (int j = 0; j < 32; ++j) codes[i + j] = qs[i / 2 + j] & 15;
    for (int j = 0; j < 32; ++j) codes[i + 32 + j] = qs[i / 2 + j] >> 4;
  }
  if (kBits == 4) return;
  for (int i = 0; i < 256; i += 32) {
    for (int j = 0; j < 32; ++j) codes[i + j] |= static_cast<uint8_t>((qh[j] >> i / 32 & 1) << 4);
  }
}
void TakeQ6K(const uint8_t* block, uint8_t* codes, float* scale, float*) {
  const float d = Half(block + 208);
  for (int k = 0; k < 16; ++k) {
    scale[k] = d * static_cast<float>(static_cast<int8_t>(block[192 + k]));
  }
  for (int h = 0; h < 2; ++h) {
    const uint8_t* const low = block + 64 * h;
    const uint8_t* const high = block + 128 + 32 * h;
    for (int q = 0; q < 4; ++q) {
      const int nibble = q < 2 ? 0 : 4;
      for (int j = 0; j < 32; ++j) {
        codes[128 * h + 32 * q + j] = static_cast<uint8_t>((low[32 * (q % 2) + j] >> nibble & 15) |
                                                           (high[j] >> 2 * q & 3) << 4);
      }
    }
  }
}

GgmlForm FormOf(Layout layout) {
  switch (layout) {
    case Layout::kGgufQ8_0:
      return {TakeQ8_0, Decoder::kInt8, 32, 0, false};
    case Layout::kGgufQ4_0:
      return {TakeNibbles<false, 4>, Decoder::kUint8, 32, 8, false};
    case Layout::kGgufQ4_1:
      return {TakeNibbles<true, 4>, Decoder::kUint8, 32, 0, true};
    case Layout::kGgufQ5_0:
      return {TakeNibbles<false, 5>, Decoder::kUint8, 32, 16, false};
    case Layout::kGgufQ5_1:
      return {TakeNibbles<true, 5>, Decoder::kUint8, 32, 0, true};
    case Layout::kGgufMxfp4:
      // A zero point of -0 turns -0 into 0.
      return {TakeMxfp4, Decoder::kFloat4E2M1, 32, 8, false};
    case Layout::kGgufQ2K:
      return {TakeQ2K, Decoder::kUint8, 16, 0, true};
    case Layout::kGgufQ3K:
      return {TakeQ3K, Decoder::kUint8, 16, 4, false};
    case Layout::kGgufQ4K:
      return {TakeQ45K<4>, Decoder::kUint8, 32, 0, true};
    case Layout::kGgufQ5K:
      return {TakeQ45K<5>, Decoder::kUint8, 32, 0, true};
    default:
      return {TakeQ6K, Decoder::kUint8, 16, 32, false};
  }
}

}  // namespace

void DecodeGguf(const Decoding& decoding, const DecodeBytes& bytes) {
  const LayoutInfo& info = Info(decoding.plan.layout);
  const Region& region = bytes.region;
  const GgmlForm form = FormOf(decoding.plan.layout);
  const DequantizeKernel dequantize =
      decoding.kernels
          .dequantize[static_cast<size_t>(form.decoder)][static_cast<size_t>(ScaleMode::kRuns)];
  const auto block = static_cast<size_t>(info.columns_of);
  OutputPiece piece(decoding, DataType::kFloat);
  Apart apart;
  std::array<int32_t, kPiece / 16> zero_points;
  zero_points.fill(form.zero_point);
  const uint8_t* x = bytes[Role::kCodes].row(0);
  for (int64_t column = 0; column < region.columns; column += kPiece) {
    const auto size = static_cast<size_t>(std::min<int64_t>(region.columns - column, kPiece));
    bool twice_fits = true;
    const uint8_t* const first = x;
    for (size_t i = 0; i < size; i += block, x += info.block_bytes) {
      form.take(x, apart.codes.data() + i, apart.scale.data() + i / form.run,
                apart.minimum.data() + i / form.run);
      twice_fits &= decoding.plan.layout != Layout::kGgufMxfp4 || x[0] != 255;
    }
    DequantizeTile tile;
    tile.x = apart.codes.data();
    tile.y = piece.bytes();
    tile.size = size;
    tile.run = form.run;
    tile.scale = apart.scale.data();
    tile.zero_point = form.zero_point == 0 ? nullptr : zero_points.data();
    dequantize(tile);
    if (form.has_minimum) {
      for (size_t i = 0; i < size; i += form.run) {
        float* const values = piece.values() + i;
        const float minimum = apart.minimum[i / form.run];
        for (size_t j = 0; j < form.run; ++j) values[j] += minimum;
      }
    }
    if (!twice_fits) {
      // An MXFP4 scale that FLOAT can't represent when it is doubled.
      for (size_t i = 0; i < size; ++i) {
        const float unit =
            rules::GgufUnit(first[i / block * static_cast<size_t>(info.block_bytes)]);
        piece.values()[i] = unit * static_cast<float>(rules::kGgufValues[apart.codes[i]]);
      }
    }
    piece.Store(size, bytes.y.row(0) + static_cast<size_t>(column) * decoding.width());
  }
}

}  // namespace quantd
