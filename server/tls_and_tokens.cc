#include "server/tls_and_tokens.h"

#include <utility>

#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "server/access/session.h"

namespace quantd::server {

absl::Status TlsAndTokens::Open() {
  if (!tls_.certificate.empty()) {
    watch_.Add({tls_.certificate, tls_.key, tls_.client_ca},
               [this] { return ReloadCertificates(); });
    auto loaded = access::Certificates::Load(tls_);
    if (!loaded.ok()) return loaded.status();
    certificates = *std::move(loaded);
    log::Info("certificate", InUse());
    Warn();
  }
  if (!token_file_.empty()) {
    watch_.Add({token_file_}, [this] { return ReloadTokens(); });
    auto loaded = access::Tokens::Load(token_file_);
    if (!loaded.ok()) return loaded.status();
    tokens = *std::move(loaded);
  }
  return absl::OkStatus();
}

log::Fields TlsAndTokens::InUse() const {
  const access::Certificates::Validity now = certificates->validity();
  return {
      {"serial", now.serial},
      {"not_after", absl::FormatTime("%Y-%m-%d%ET%H:%M:%SZ", now.not_after, absl::UTCTimeZone())}};
}

void TlsAndTokens::Warn() const {
  for (const std::string& warning : certificates->Warnings()) {
    log::Warn("certificate", {{"warning", warning}});
  }
}

bool TlsAndTokens::ReloadCertificates() {
  const absl::Status status = certificates->Reload();
  metrics_->CountReload(0, status.ok());
  if (!status.ok()) {
    log::Error("certificates not reloaded, the old ones stay in use",
               {{"error", status.message()}});
    return !absl::IsUnavailable(status);
  }
  log::Info("certificates reloaded", InUse());
  Warn();
  return true;
}

bool TlsAndTokens::ReloadTokens() {
  const absl::Status status = tokens->Reload();
  metrics_->CountReload(1, status.ok());
  if (status.ok()) {
    log::Info("tokens reloaded", {{"number", tokens->size()}});
  } else {
    log::Error("tokens not reloaded, the old ones stay in use", {{"error", status.message()}});
  }
  return !absl::IsUnavailable(status);
}

void TlsAndTokens::Look(metrics::Metrics& metrics) {
  metrics_ = &metrics;
  watch_.Look();
}

bool TlsAndTokens::Reread() {
  watch_.Reread();
  return certificates != nullptr || tokens != nullptr;
}

double TlsAndTokens::CertificateEnd() const {
  if (certificates == nullptr) return 0;
  return static_cast<double>(absl::ToUnixSeconds(certificates->validity().not_after));
}

void TlsAndTokens::WarnOfPlainText(const std::vector<std::string>& addresses) const {
  if (certificates != nullptr) return;
  log::Warn(
      "other machines can reach this server without TLS: anyone on the network path can read and "
      "change "
      "tensors and tokens (--tls_cert, --tls_key, --tls_client_ca)",
      {{"grpc", absl::StrJoin(addresses, ",")}});
}

}  // namespace quantd::server
