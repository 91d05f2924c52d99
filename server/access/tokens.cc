#include "server/access/tokens.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/access/pem.h"

namespace quantd::access {
namespace {

constexpr absl::string_view kFlag = "--auth_token_file";

// RFC 6750, 2.1: letters, digits and -._~+/, and = at the end.
bool IsToken(absl::string_view text) {
  absl::string_view body = text;
  while (absl::ConsumeSuffix(&body, "=")) {
  }
  return !body.empty() && std::all_of(body.begin(), body.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("-._~+/", c);
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokens>> Tokens::Load(std::string path) {
  std::unique_ptr<Tokens> tokens(new Tokens(std::move(path)));
  if (absl::Status status = tokens->Reload(); !status.ok()) return status;
  return tokens;
}

absl::Status Tokens::Reload() {
  absl::StatusOr<Digests> digests = Read(path_);
  if (!digests.ok()) return digests.status();
  auto shared = std::make_shared<const Digests>(*std::move(digests));
  const std::lock_guard lock(mutex_);
  digests_ = std::move(shared);
  return absl::OkStatus();
}

absl::StatusOr<Tokens::Digests> Tokens::Read(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path, kFlag);
  if (!text.ok()) return text.status();
  const auto cleanse = absl::MakeCleanup([&] { OPENSSL_cleanse(text->data(), text->size()); });
  const auto wrong = [&](const auto&... why) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", why..., " (", kFlag, ")"));
  };
  Digests digests;
  size_t number = 0;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    if (line.size() > kMostBytes) {
      return wrong("line ", number, " has ", line.size(), " bytes, a token may have at most ",
                   kMostBytes);
    }
    if (!IsToken(line)) {
      return wrong("line ", number,
                   " is not a token: letters, digits, - . _ ~ + / and = at the end");
    }
    if (digests.size() == kMostTokens) return wrong("it has more than ", kMostTokens, " tokens");
    const std::optional<Digest> digest = DigestOf(line);
    if (!digest.has_value()) return wrong("OpenSSL has no SHA-256 for its tokens");
    digests.push_back(*digest);
  }
  if (digests.empty()) return wrong("it contains no token");
  return digests;
}

std::optional<Tokens::Digest> Tokens::DigestOf(absl::string_view token) {
  // Looked up only once, because that costs more than the digest.
  static EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  Digest digest{};
  unsigned size = 0;
  // On failure no digest may be used: a digest of zeros would match for every token.
  if (sha256 == nullptr ||
      EVP_Digest(token.data(), token.size(), digest.data(), &size, sha256, nullptr) != 1 ||
      size != digest.size()) {
    ERR_clear_error();
    return std::nullopt;
  }
  return digest;
}

bool Tokens::Contains(absl::string_view token) const {
  const std::optional<Digest> digest = DigestOf(token);
  if (!digest.has_value()) return false;
  int found = 0;
  const std::shared_ptr<const Digests> all = digests();  // valid while the tokens change
  for (const Digest& one : *all) {
    found |= static_cast<int>(CRYPTO_memcmp(one.data(), digest->data(), digest->size()) == 0);
  }
  return found != 0;
}

absl::Status Tokens::Check(absl::string_view authorization, absl::string_view where) const {
  if (authorization.empty()) {
    return absl::UnauthenticatedError(
        absl::StrCat("a token is required: 'authorization: Bearer TOKEN' in the ", where));
  }
  constexpr absl::string_view kScheme = "bearer ";
  if (!absl::StartsWithIgnoreCase(authorization, kScheme)) {
    return absl::UnauthenticatedError("authorization is not 'Bearer TOKEN'");
  }
  if (!Contains(absl::StripAsciiWhitespace(authorization.substr(kScheme.size())))) {
    return absl::UnauthenticatedError("the token is not one of this server's");
  }
  return absl::OkStatus();
}

}  // namespace quantd::access
