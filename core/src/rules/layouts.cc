#include "rules/layouts.h"

#include <cstddef>

namespace quantd::rules {
namespace {

// Point k of n from 0.1 to 1, counted from the nearer end.
float Linspace(int k, int n) {
  const float step = (1.0f - 0.1f) / static_cast<float>(n - 1);
  if (k < n / 2) return std::fma(step, static_cast<float>(k), 0.1f);
  return std::fma(-step, static_cast<float>(n - 1 - k), 1.0f);
}

}  // namespace

std::array<float, 256> MakeNestedMap() {
  constexpr float kPowers[] = {1e-6f, 1e-5f, 1e-4f, 1e-3f, 1e-2f, 1e-1f, 1.0f};
  std::array<float, 256> map = {0, 1};
  size_t size = 2;
  for (int i = 0; i < 7; ++i) {
    const int points = (1 << i) + 1;
    for (int k = 0; k + 1 < points; ++k) {
      const float mean = (Linspace(k, points) + Linspace(k + 1, points)) / 2;
      map[size++] = kPowers[i] * mean;
      map[size++] = -kPowers[i] * mean;
    }
  }
  std::sort(map.begin(), map.end());
  return map;
}

uint8_t NestedCode(const std::array<float, 256>& map, int step) {
  const float value = static_cast<float>(step) / 32767.5f - 1;
  size_t best = 0;
  for (size_t i = 1; i < map.size(); ++i) {
    if (std::fabs(map[i] - value) < std::fabs(map[best] - value)) best = i;
  }
  return static_cast<uint8_t>(best);
}

}  // namespace quantd::rules
