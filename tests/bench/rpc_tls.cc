// quantd over TLS beside the echo over TLS, and beside quantd in plain text: what encryption costs.
// The certificate is made for the run and trusted by itself. See rpc_sections.h.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rpc_sections.h"

namespace quantd::bench {
namespace {

const Config kConfigs[] = {{"Quantize", false, 4, 1, 1},
                           {"Quantize", false, 4, 32, 1},
                           {"Quantize", false, 1 << 20, 4, 1},
                           {"Quantize", false, 16 << 20, 1, 1}};

// Makes BASE.key and BASE.crt, for 127.0.0.1, of the kind that most have: P-256. Returns the
// certificate, empty where that failed.
std::string MakeCertificate(const std::string& base) {
  const std::string key = base + ".key", certificate = base + ".crt", log = base + ".log";
  const pid_t pid = fork();
  if (pid == 0) {
    if (freopen(log.c_str(), "w", stderr) == nullptr) _exit(127);
    execlp("openssl", "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
           "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=rpc_bench", "-addext",
           "subjectAltName=IP:127.0.0.1", "-keyout", key.c_str(), "-out", certificate.c_str(),
           static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) return "";
  std::ifstream file(certificate, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void Print(const Config& config, const Figures& tls, const Ratios& to_echo,
           const Ratios& to_plain) {
  std::printf(
      "| %s | %s | %d | %.0f | %.2f | %.2f to %.2f | %.2f | %.2f | %.2f to %.2f | %.2f | %.1f "
      "|%s\n",
      config.operation.c_str(), SizeText(config.bytes).c_str(), config.in_flight, tls.rate,
      to_echo.rate.median, to_echo.rate.low, to_echo.rate.high, to_echo.cpu.median,
      to_plain.rate.median, to_plain.rate.low, to_plain.rate.high, to_plain.cpu.median,
      tls.cpu * 1e6, tls.errors > 0 ? " ERRORS" : "");
  std::fflush(stdout);
}

}  // namespace

nlohmann::json RunTls(const Options& options, uint64_t& errors) {
  nlohmann::json rows = nlohmann::json::array();
  const std::string base = options.folder + "/tls";
  const std::string certificate = MakeCertificate(base);
  if (certificate.empty()) {
    std::printf("\nNothing over TLS: the openssl command made no certificate\n");
    ++errors;
    return rows;
  }
  std::printf(
      "\nOver TLS, beside the echo over TLS and quantd in plain text\n\n"
      "| call | x | in flight | quantd /s | rate / echo's | quartiles | CPU / echo's | rate / "
      "plain | quartiles | CPU / plain | CPU us "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|\n");
  const Process tls =
      StartQuantd(options, "tls_quantd",
                  {absl::StrCat("--tls_cert=", base, ".crt"), "--tls_key=" + base + ".key"});
  const Process echo = StartEcho(options, "tls_echo", {}, {"--tls=" + base});
  const Process plain = StartQuantd(options, "tls_plain");
  for (const Config& config : kConfigs) {
    Config encrypted = config;
    encrypted.certificate = certificate;
    Side of_tls(tls, encrypted, nullptr), of_echo(echo, encrypted, &tls);
    Side of_plain(plain, config, nullptr);
    const auto turn = [&options](Side& side) {
      return [&side, &options] { return side.Take(options.turn_seconds); };
    };
    // Ratios are formed between neighbours.
    const std::vector<Series> turns =
        TakeTurns({turn(of_echo), turn(of_tls), turn(of_plain)}, options.rounds);
    const Figures echo_sum = turns[0].Sum(), tls_sum = turns[1].Sum(), plain_sum = turns[2].Sum();
    const Ratios to_echo = Compare(turns[1], turns[0]), to_plain = Compare(turns[1], turns[2]);
    Print(config, tls_sum, to_echo, to_plain);
    errors += echo_sum.errors + tls_sum.errors + plain_sum.errors;
    rows.push_back({{"call", config.operation},
                    {"x_bytes", config.bytes},
                    {"in_flight", config.in_flight},
                    {"quantd", ToJson(tls_sum)},
                    {"echo", ToJson(echo_sum)},
                    {"plain", ToJson(plain_sum)},
                    {"to_echo", ToJson(to_echo)},
                    {"to_plain", ToJson(to_plain)}});
  }
  return rows;
}

}  // namespace quantd::bench
