// quantctl top: what a server does now, from its /status.json.
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "commands/commands.h"
#include "engine/errors.h"
#include "files/text.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

using Status = nlohmann::ordered_json;

constexpr size_t kMostBytes = 4 << 20;  // of an answer

absl::Status CannotAsk(const std::string& address, absl::string_view why) {
  return OperationError(absl::UnavailableError(absl::StrCat(address, ": ", why)), "ask the server",
                        "");
}

// The Authorization header with the token of --auth_token_file, or nothing.
absl::StatusOr<std::string> Authorization(const Options& options) {
  if (options.auth_token_file.empty()) return std::string();
  const std::string& address = options.address;
  const bool near = absl::StartsWith(address, "127.") || absl::StartsWith(address, "[::1]") ||
                    absl::StartsWith(address, "localhost:");
  if (options.tls_ca.empty() && !near && !options.allow_insecure_token) {
    return absl::InvalidArgumentError(
        "the token is not sent to another machine without TLS: use --tls_ca, or "
        "--allow_insecure_token");
  }
  std::ifstream file(options.auth_token_file);
  for (std::string line; std::getline(file, line);) {
    const absl::string_view token = absl::StripAsciiWhitespace(line);
    if (!token.empty() && token[0] != '#') {
      return absl::StrCat("Authorization: Bearer ", token, "\r\n");
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--auth_token_file: ", options.auth_token_file, " has no token"));
}

// Settings of TLS from the flags; null: no TLS.
absl::StatusOr<std::shared_ptr<SSL_CTX>> TlsOf(const Options& options) {
  if (options.tls_ca.empty()) return nullptr;
  std::shared_ptr<SSL_CTX> tls(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  SSL_CTX_set_verify(tls.get(), SSL_VERIFY_PEER, nullptr);
  const auto wrong = [](const char* flag, const std::string& file) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": cannot use ", file));
  };
  if (SSL_CTX_load_verify_file(tls.get(), options.tls_ca.c_str()) != 1) {
    return wrong("--tls_ca", options.tls_ca);
  }
  if (options.tls_cert.empty()) return tls;
  if (SSL_CTX_use_certificate_chain_file(tls.get(), options.tls_cert.c_str()) != 1) {
    return wrong("--tls_cert", options.tls_cert);
  }
  if (SSL_CTX_use_PrivateKey_file(tls.get(), options.tls_key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return wrong("--tls_key", options.tls_key);
  }
  return tls;
}

// GET /status.json.
absl::StatusOr<Status> Ask(const std::string& address, SSL_CTX* tls, const std::string& headers) {
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> bio(
      tls == nullptr ? BIO_new(BIO_s_connect()) : BIO_new_ssl_connect(tls), &BIO_free_all);
  BIO_set_conn_hostname(bio.get(), address.c_str());
  if (tls != nullptr) {
    SSL* ssl = nullptr;
    BIO_get_ssl(bio.get(), &ssl);
    std::string host = address.substr(0, address.rfind(':'));
    if (host.front() == '[') host = host.substr(1, host.size() - 2);
    X509_VERIFY_PARAM* const check = SSL_get0_param(ssl);
    if (X509_VERIFY_PARAM_set1_ip_asc(check, host.c_str()) != 1) SSL_set1_host(ssl, host.c_str());
    SSL_set_tlsext_host_name(ssl, host.c_str());
  }
  const std::string request = absl::StrCat("GET /status.json HTTP/1.1\r\nHost: ", address, "\r\n",
                                           headers, "Connection: close\r\n\r\n");
  const time_t end = time(nullptr) + 5;
  const auto again = [&] {
    return BIO_should_retry(bio.get()) && BIO_wait(bio.get(), end, 20) == 1;
  };
  std::string answer;
  BIO_set_nbio(bio.get(), 1);
  bool connected = false;
  do {
    connected = BIO_do_connect(bio.get()) == 1;
  } while (!connected && again());
  if (connected) {
    int wrote = 0;
    do {
      wrote = BIO_write(bio.get(), request.data(), static_cast<int>(request.size()));
    } while (wrote <= 0 && again());
    char bytes[16384];
    while (answer.size() < kMostBytes) {
      const int got = BIO_read(bio.get(), bytes, sizeof(bytes));
      if (got > 0) answer.append(bytes, static_cast<size_t>(got));
      if (got <= 0 && !again()) break;
    }
  }
  const unsigned long error = ERR_get_error();  // NOLINT(google-runtime-int): OpenSSL's
  ERR_clear_error();
  const absl::string_view all = answer;
  const size_t body = all.find("\r\n\r\n");
  if (!absl::StartsWith(all, "HTTP/1.1 ") || body == all.npos) {
    const char* why = ERR_reason_error_string(error);
    if (ERR_SYSTEM_ERROR(error)) why = std::strerror(ERR_GET_REASON(error));
    if (why == nullptr) why = "it is not the HTTP port of a quantd (--http_listen)";
    return CannotAsk(address, why);
  }
  if (!absl::StartsWith(all, "HTTP/1.1 200 ")) {
    return CannotAsk(address, absl::StripAsciiWhitespace(all.substr(body)));
  }
  Status status = Status::parse(all.substr(body + 4), nullptr, /*allow_exceptions=*/false);
  if (!status.is_object() || !status.contains("methods")) {
    return CannotAsk(address, "its /status.json is not that of quantd");
  }
  return status;
}

std::string Seconds(double seconds) {
  if (seconds < 0) return "-";
  if (seconds < 1e-3) return absl::StrFormat("%.3g us", seconds * 1e6);
  if (seconds < 1) return absl::StrFormat("%.3g ms", seconds * 1e3);
  return absl::StrFormat("%.3g s", seconds);
}

std::string Bytes(double bytes) { return BytesText(static_cast<uint64_t>(std::max(bytes, 0.0))); }

// As Prometheus' histogram_quantile; -1 if nothing was counted.
double Quantile(double q, const std::vector<double>& counts, const std::vector<double>& bounds) {
  const double rank = q * counts.back();
  if (rank <= 0) return -1;
  const auto at =
      static_cast<size_t>(std::lower_bound(counts.begin(), counts.end(), rank) - counts.begin());
  if (at >= bounds.size()) return bounds.back();
  const double below = at == 0 ? 0 : counts[at - 1], from = at == 0 ? 0 : bounds[at - 1];
  return from + (bounds[at] - from) * (rank - below) / (counts[at] - below);
}

double Errors(const Status& method) {
  double errors = 0;
  for (const auto& [code, count] : method.at("codes").items()) {
    if (code != "OK") errors += count.get<double>();
  }
  return errors;
}

std::string Kinds(const char* title, const Status& counts) {
  std::string line;
  for (const auto& [kind, count] : counts.items()) {
    absl::StrAppend(&line, line.empty() ? "" : ", ", Printable(kind), " ", count.dump());
  }
  return line.empty() ? "" : absl::StrFormat("%-10s%s\n", title, line);
}

// What happened between two looks at the same server.
std::string Text(const Status& before, const Status& now, const std::string& address) {
  const double time = std::max(
      now.at("uptime_seconds").get<double>() - before.at("uptime_seconds").get<double>(), 1e-3);
  const Status &in_use = now.at("now"), &limits = now.at("limits"), &waiting = now.at("waiting");
  std::string text = absl::StrFormat(
      "quantd %s at %s: %s, %s, up %s\n"
      "cores     %.3g of %d\nmemory    %s of %s for requests, %s of %s for uploads, %s resident\n"
      "open      %.0f calls, %.0f of %.0f connections\n"
      "waiting   %.0f to be received, %.0f for memory, %.0f for a core\n",
      Printable(now.at("version").get<std::string>()), address,
      Printable(now.at("state").get<std::string>()), Printable(now.at("target").get<std::string>()),
      absl::FormatDuration(absl::Seconds(std::round(now.at("uptime_seconds").get<double>()))),
      in_use.at("busy_cores").get<double>(), now.at("threads").get<int>(),
      Bytes(in_use.at("request_bytes")), Bytes(limits.at("request_bytes")),
      Bytes(in_use.at("receiving_bytes")), Bytes(limits.at("receiving_bytes")),
      Bytes(in_use.at("resident_bytes")), in_use.at("calls").get<double>(),
      in_use.at("connections").get<double>(), limits.at("max_connections").get<double>(),
      waiting.at("to_be_received").get<double>(), waiting.at("for_memory").get<double>(),
      waiting.at("for_a_core").get<double>());
  absl::StrAppend(&text, Kinds("refused", now.at("refused")),
                  Kinds("ended", now.at("connections_ended")),
                  absl::StrFormat("\n%-20s%9s%10s%10s%12s%12s%10s%6s\n", "METHOD", "CALLS/S", "P50",
                                  "P99", "IN/S", "OUT/S", "ERRORS/S", "OPEN"));
  const auto bounds = now.at("bounds_seconds").get<std::vector<double>>();
  for (size_t i = 0; i < now.at("methods").size(); ++i) {
    const Status &method = now.at("methods").at(i), &old = before.at("methods").at(i);
    const auto rate = [&](const Status::json_pointer& path) {
      return (method.value(path, 0.0) - old.value(path, 0.0)) / time;
    };
    auto counts = method.at("handling").at("buckets").get<std::vector<double>>();
    for (size_t b = 0; b < counts.size(); ++b) {
      counts[b] -= old.at("handling").at("buckets").at(b).get<double>();
    }
    if (method.at("started") == 0) continue;
    absl::StrAppendFormat(
        &text, "%-20s%9.4g%10s%10s%12s%12s%10.4g%6.0f\n",
        Printable(method.at("method").get<std::string>()), rate("/handling/count"_json_pointer),
        Seconds(Quantile(0.5, counts, bounds)), Seconds(Quantile(0.99, counts, bounds)),
        Bytes(rate("/in_bytes"_json_pointer)), Bytes(rate("/out_bytes"_json_pointer)),
        (Errors(method) - Errors(old)) / time, method.at("open").get<double>());
  }
  return text;
}

}  // namespace

absl::Status RunTop(const Options& options) {
  const std::string& address = options.address;
  if (address.rfind(':') == 0 || address.rfind(':') == address.npos) {
    return absl::InvalidArgumentError(absl::StrCat("'", address, "' is not HOST:PORT"));
  }
  QUANTD_ASSIGN_OR_RETURN(const std::string headers, Authorization(options));
  QUANTD_ASSIGN_OR_RETURN(const std::shared_ptr<SSL_CTX> tls, TlsOf(options));
  QUANTD_ASSIGN_OR_RETURN(Status before, Ask(address, tls.get(), headers));
  if (options.json) {
    std::puts(before.dump(2).c_str());
    return absl::OkStatus();
  }
  const bool once = options.once || isatty(STDOUT_FILENO) == 0;
  for (;;) {
    absl::SleepFor(absl::Seconds(1));
    QUANTD_ASSIGN_OR_RETURN(Status now, Ask(address, tls.get(), headers));
    // A shape that is not ours must not end the program.
    try {
      const bool same = before.at("pid") == now.at("pid");
      const std::string text = Text(same ? before : now, now, address);
      std::printf("%s%s", once ? "" : "\033[H\033[2J", text.c_str());
    } catch (const Status::exception& error) {
      return CannotAsk(address, error.what());
    }
    if (once) return absl::OkStatus();
    std::fflush(stdout);
    before = std::move(now);
  }
}

}  // namespace quantd::cli
