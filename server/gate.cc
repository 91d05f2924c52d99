// See gate.h.
#include "server/gate.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace quantd::server {

absl::Status Gate::Open() {
  auto files = std::make_unique<access::FileWatch>();
  files->AddTick([this] { refusals.Tick(); });
  if (!tls_.certificate.empty()) {
    files->Add({tls_.certificate, tls_.key, tls_.client_ca}, [this] { ReloadCertificates(); });
    auto loaded = access::Certificates::Load(tls_);
    if (!loaded.ok()) return loaded.status();
    certificates = *std::move(loaded);
    say(absl::StrCat("certificate ", certificates->Describe()));
    Warn();
  }
  if (!token_file_.empty()) {
    files->Add({token_file_}, [this] { ReloadTokens(); });
    auto loaded = access::Tokens::Load(token_file_);
    if (!loaded.ok()) return loaded.status();
    tokens = *std::move(loaded);
  }
  if (certificates != nullptr || tokens != nullptr) watch_ = std::move(files);
  return absl::OkStatus();
}

void Gate::Warn() const {
  for (const std::string& warning : certificates->Warnings()) {
    say(absl::StrCat("warning: ", warning));
  }
}

void Gate::ReloadCertificates() {
  const absl::Status status = certificates->Reload();
  metrics_->CountReload(0, status.ok());
  if (!status.ok()) {
    return say(absl::StrCat("certificates not reloaded, the old ones stay: ", status.message()));
  }
  say(absl::StrCat("certificates reloaded ", certificates->Describe()));
  Warn();
}

void Gate::ReloadTokens() {
  const absl::Status status = tokens->Reload();
  metrics_->CountReload(1, status.ok());
  say(status.ok() ? absl::StrCat("tokens reloaded number=", tokens->size())
                  : absl::StrCat("tokens not reloaded, the old ones stay: ", status.message()));
}

void Gate::Start(metrics::Metrics& metrics) {
  metrics_ = &metrics;
  if (watch_ != nullptr) watch_->Start();
}

void Gate::Reread() {
  if (watch_ != nullptr) {
    watch_->Reread();
  } else {
    say("SIGHUP: there is nothing to read again");
  }
}

void Gate::WarnOfPlainText(const std::vector<std::string>& addresses) const {
  if (certificates != nullptr) return;
  say(absl::StrCat("warning: other machines can reach ", absl::StrJoin(addresses, ","),
                   ", and there is no TLS: who is on the way can read and change tensors and "
                   "tokens (--tls_cert, --tls_key, --tls_client_ca)"));
}

}  // namespace quantd::server
