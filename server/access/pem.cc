#include "server/access/pem.h"

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/net/unique_fd.h"

namespace quantd::access {
namespace {

using BioPointer = std::unique_ptr<BIO, Free<BIO_free_all>>;

BioPointer Memory(const std::string& text) {
  return BioPointer(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Whether an errno of open, fstat or read says nothing about the file, which may be readable later.
bool MayPass(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO || error == ESTALE ||
         error == ETIMEDOUT || error == EAGAIN;
}

absl::Status CannotRead(absl::string_view path, absl::string_view flag, int error) {
  const absl::StatusCode code =
      MayPass(error) ? absl::StatusCode::kUnavailable : absl::StatusCode::kInvalidArgument;
  return {code, absl::StrCat(path, ": cannot be read: ", std::strerror(error), " (", flag, ")")};
}

}  // namespace

absl::Status Wrong(absl::string_view path, absl::string_view why, absl::string_view flag) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", why, " (", flag, ")"));
}

std::string TakeError() {
  const unsigned long error = ERR_peek_last_error();  // NOLINT(google-runtime-int): OpenSSL's
  const char* const reason = ERR_reason_error_string(error);
  ERR_clear_error();
  return reason == nullptr ? "unknown error" : reason;
}

absl::StatusOr<std::string> ReadFile(const std::string& path, absl::string_view flag) {
  // Without O_NONBLOCK, open would wait for a pipe.
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return CannotRead(path, flag, errno);
  struct stat info{};
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return Wrong(path, "is not a regular file", flag);
  }
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t count = read(file.get(), buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return CannotRead(path, flag, errno);
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > kMostFileBytes) {
      return Wrong(path, absl::StrCat("has more than ", kMostFileBytes, " bytes"), flag);
    }
  }
}

absl::StatusOr<std::vector<X509Pointer>> ReadCertificates(const std::string& path,
                                                          absl::string_view flag) {
  const absl::StatusOr<std::string> text = ReadFile(path, flag);
  if (!text.ok()) return text.status();
  const BioPointer bio = Memory(*text);
  std::vector<X509Pointer> certificates;
  while (X509* const next = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    certificates.emplace_back(next);
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (certificates.empty() && at_end) {
    ERR_clear_error();
    return Wrong(path, "contains no PEM certificate", flag);
  }
  if (!at_end) {
    return Wrong(path, absl::StrCat("certificate ", certificates.size() + 1, ": ", TakeError()),
                 flag);
  }
  ERR_clear_error();
  return certificates;
}

absl::StatusOr<KeyPointer> ReadKey(const std::string& path, absl::string_view flag) {
  absl::StatusOr<std::string> text = ReadFile(path, flag);
  if (!text.ok()) return text.status();
  const auto cleanse = absl::MakeCleanup([&] { OPENSSL_cleanse(text->data(), text->size()); });
  const BioPointer bio = Memory(*text);
  bool asked = false;
  const auto no_password = [](char*, int, int, void* was_asked) {
    *static_cast<bool*>(was_asked) = true;
    return -1;
  };
  KeyPointer key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, &asked));
  if (key != nullptr) return key;
  const bool none = !absl::StrContains(*text, "PRIVATE KEY-----");
  const std::string why = TakeError();
  if (asked) return Wrong(path, "the key is encrypted, must be without a password", flag);
  return Wrong(path, none ? "contains no PEM key" : absl::StrCat("the key: ", why), flag);
}

}  // namespace quantd::access
