// See names.h.
#include "server/options/names.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace quantd::server {
namespace {

// Letters to put in, leave out, replace, or swap with their neighbour.
size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        table[i][j] = i + j;
        continue;
      }
      table[i][j] = std::min({table[i - 1][j] + 1, table[i][j - 1] + 1,
                              table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
      }
    }
  }
  return table[a.size()][b.size()];
}

bool IsNumber(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

// [SOMETHING_]SERVICE_HOST, [SOMETHING_]SERVICE_PORT[_NAME], [SOMETHING_]PORT,
// [SOMETHING_]PORT_50051_TCP[_PROTO|_PORT|_ADDR].
bool IsOfKubernetes(absl::string_view name, absl::string_view value) {
  const std::vector<absl::string_view> words = absl::StrSplit(name, '_');
  for (size_t i = 0; i < words.size(); ++i) {
    const bool last = i + 1 == words.size();
    if (words[i] == "SERVICE" && !last && (words[i + 1] == "HOST" || words[i + 1] == "PORT")) {
      return true;
    }
    if (words[i] != "PORT") continue;
    if (!last && IsNumber(words[i + 1])) return true;
    // Of other Services only with what Kubernetes writes: QUANTD_HTTP_PORT=9464 is a mistake.
    if (last && (i == 0 || absl::StrContains(value, "://"))) return true;
  }
  return false;
}

}  // namespace

std::string MostLike(absl::string_view wrong, absl::Span<const absl::string_view> names) {
  constexpr size_t kLongest = 64;  // so that a long argument costs nothing
  wrong = wrong.substr(0, kLongest);
  const std::string lower = absl::AsciiStrToLower(wrong);
  size_t least = std::max<size_t>(lower.size() / 3, 1) + 1;
  std::string best;
  for (const absl::string_view name : names) {
    const size_t distance = Distance(lower, name);
    if (distance < least) {
      least = distance;
      best = std::string(name);
    }
  }
  return best;
}

bool IsOthersVariable(absl::string_view name, absl::string_view value) {
  constexpr absl::string_view kClients[] = {
      "ADDRESS", "AUTH_TOKEN", "AUTH_TOKEN_FILE", "TLS_CA", "TLS_CERT", "TLS_CLIENT_CERT",
      "TLS_KEY", "SIMD",       "TLS_CLIENT_KEY",  "THREADS"};
  constexpr absl::string_view kProject[] = {
      "BINARY", "CLIENTS",  "INDEX", "LOGS",         "PROTO_DIR", "REGISTRY",      "RANDOM_SECONDS",
      "ROOT",   "SANITIZE", "SEED",  "SOAK_SECONDS", "SOURCE",    "STRESS_SECONDS"};
  constexpr absl::string_view kProjectPrefixes[] = {"BUILD", "FUZZ_", "TEST_"};
  const auto is_name = [name](absl::string_view known) { return known == name; };
  const auto begins = [name](absl::string_view prefix) { return absl::StartsWith(name, prefix); };
  return std::any_of(std::begin(kClients), std::end(kClients), is_name) ||
         std::any_of(std::begin(kProject), std::end(kProject), is_name) ||
         std::any_of(std::begin(kProjectPrefixes), std::end(kProjectPrefixes), begins) ||
         IsOfKubernetes(name, value);
}

}  // namespace quantd::server
