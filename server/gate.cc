// See gate.h.
#include "server/gate.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "server/access/session.h"

namespace quantd::server {

absl::Status Gate::Open() {
  if (!tls_.certificate.empty()) {
    watch_.Add({tls_.certificate, tls_.key, tls_.client_ca}, [this] { ReloadCertificates(); });
    auto loaded = access::Certificates::Load(tls_);
    if (!loaded.ok()) return loaded.status();
    certificates = *std::move(loaded);
    log::Info("certificate", InUse());
    Warn();
  }
  if (!token_file_.empty()) {
    watch_.Add({token_file_}, [this] { ReloadTokens(); });
    auto loaded = access::Tokens::Load(token_file_);
    if (!loaded.ok()) return loaded.status();
    tokens = *std::move(loaded);
  }
  return absl::OkStatus();
}

log::Fields Gate::InUse() const {
  const access::Certificates::Validity now = certificates->validity();
  return {
      {"serial", now.serial},
      {"not_after", absl::FormatTime("%Y-%m-%d%ET%H:%M:%SZ", now.not_after, absl::UTCTimeZone())}};
}

void Gate::Warn() const {
  for (const std::string& warning : certificates->Warnings()) {
    log::Warn("certificate", {{"warning", warning}});
  }
}

void Gate::ReloadCertificates() {
  const absl::Status status = certificates->Reload();
  metrics_->CountReload(0, status.ok());
  if (!status.ok()) {
    log::Error("certificates not reloaded, the old ones stay", {{"error", status.message()}});
    return;
  }
  log::Info("certificates reloaded", InUse());
  Warn();
}

void Gate::ReloadTokens() {
  const absl::Status status = tokens->Reload();
  metrics_->CountReload(1, status.ok());
  if (status.ok()) {
    log::Info("tokens reloaded", {{"number", tokens->size()}});
  } else {
    log::Error("tokens not reloaded, the old ones stay", {{"error", status.message()}});
  }
}

void Gate::Look(metrics::Metrics& metrics) {
  metrics_ = &metrics;
  watch_.Look();
}

bool Gate::Reread() {
  watch_.Reread();
  return certificates != nullptr || tokens != nullptr;
}

std::string Gate::ProbeHello(const std::string& address) const {
  const bool plain = certificates == nullptr || absl::StartsWith(address, "unix:");
  return plain ? "" : access::ProbeHello();
}

double Gate::CertificateEnd() const {
  if (certificates == nullptr) return 0;
  return static_cast<double>(absl::ToUnixSeconds(certificates->validity().not_after));
}

void Gate::WarnOfPlainText(const std::vector<std::string>& addresses) const {
  if (certificates != nullptr) return;
  log::Warn(
      "other machines can reach this one without TLS: who is on the way can read and change "
      "tensors and tokens (--tls_cert, --tls_key, --tls_client_ca)",
      {{"grpc", absl::StrJoin(addresses, ",")}});
}

}  // namespace quantd::server
