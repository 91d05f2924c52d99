// Calibration in plain loops, with which every other target is compared.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/simd_targets.h"
#include "rules/bins.h"

namespace quantd {
namespace {

float Load(const uint8_t* x, size_t index) {
  float value;
  std::memcpy(&value, x + index * sizeof(float), sizeof(float));
  return value;
}

size_t FindExtremes(const uint8_t* x, size_t size, float* low, float* high) {
  size_t non_finite = 0;
  for (size_t i = 0; i < size; ++i) {
    const float value = Load(x, i);
    if (!std::isfinite(value)) {
      ++non_finite;
      continue;
    }
    *low = std::min(*low, value);
    *high = std::max(*high, value);
  }
  return non_finite;
}

bool FindExtremesEach(const uint8_t* x, size_t size, float* low, float* high) {
  size_t non_finite = 0;
  for (size_t i = 0; i < size; ++i) {
    non_finite += FindExtremes(x + i * sizeof(float), 1, low + i, high + i);
  }
  return non_finite > 0;
}

void FindSlots(const uint8_t* x, size_t size, uint16_t floor, uint16_t* slots) {
  for (size_t i = 0; i < size; ++i) {
    slots[i] = rules::SlotOf(std::bit_cast<uint32_t>(Load(x, i)), floor);
  }
}

void FindSlotsEach(const uint8_t* x, size_t size, const uint16_t* floors, uint16_t* slots) {
  for (size_t i = 0; i < size; ++i) {
    slots[i] = rules::SlotOf(std::bit_cast<uint32_t>(Load(x, i)), floors[i]);
  }
}

}  // namespace

void FillScalarBins(KernelTable& table) {
  table.find_extremes = FindExtremes;
  table.find_extremes_each = FindExtremesEach;
  table.find_slots = FindSlots;
  table.find_slots_each = FindSlotsEach;
}

}  // namespace quantd
