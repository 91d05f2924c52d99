// quantd's calls, compared with the echo's and with other ways of making them. See bench.h.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "bench.h"
#include "operation.h"
#include "quantd/v1/quantization.pb.h"
#include "servers.h"

namespace quantd::bench {
namespace {

// The rows of the table that --quick measures: the extremes that the goals are about, and few calls
// in flight, where client and server may end up taking turns.
bool IsQuick(const Config& config) {
  if (config.unix_socket) return false;
  if (config.operation == "Stream") return config.bytes == 4 && config.in_flight == 32;
  return config.bytes == 4 ||
         ((config.bytes == 64 << 10 || config.bytes == 1 << 20) && config.in_flight == 4) ||
         (config.bytes == 16 << 20 && config.in_flight == 1);
}

std::vector<Config> Configs() {
  std::vector<Config> all;
  for (const bool unix_socket : {false, true}) {
    for (const char* operation : {"Quantize", "DynamicQuantize", "Dequantize", "Stream"}) {
      for (const size_t bytes : {4, 4 << 10, 64 << 10, 1 << 20, 16 << 20}) {
        for (const int in_flight : {1, 4, 32}) {
          if (bytes == 16 << 20 && in_flight == 32) continue;  // half a gigabyte in flight
          all.push_back({operation, unix_socket, bytes, in_flight});
          const bool is_small_item = all.back().operation == "Stream" && bytes <= 64 << 10;
          if (is_small_item) all.push_back({operation, unix_socket, bytes, in_flight, 8});
        }
      }
    }
  }
  return all;
}

std::vector<int> Cpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// Makes BASE.key and BASE.crt for 127.0.0.1, with the most common kind of key, P-256. Returns the
// certificate, or an empty text if that failed.
std::string MakeCertificate(const std::string& base) {
  const std::string command = absl::StrCat(
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "
      "/CN=quantd_bench -addext subjectAltName=IP:127.0.0.1 -keyout ",
      base, ".key -out ", base, ".crt 2>", base, ".log");
  if (std::system(command.c_str()) != 0) return "";
  std::ifstream file(base + ".crt", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The values of a response; protobuf messages with the same values may have different bytes.
std::string Values(const Process& server, const Config& config) {
  v1::DynamicQuantizeResponse response;
  if (!response.ParseFromString(
          Connect(server, config)->Call(Method(config.operation), Request(config)))) {
    return "";
  }
  return absl::StrCat(response.y_scale().raw_data(), response.y_zero_point().raw_data(),
                      response.y().raw_data());
}

void Check(bool good, const std::string& what) {
  if (good) return;
  std::perror(what.c_str());
  std::exit(1);
}

// A file in shared memory, as a client makes it.
class Region {
 public:
  Region(const std::string& path, size_t size) : path_(path), size_(size) {
    const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    Check(file >= 0 && posix_fallocate(file, 0, static_cast<off_t>(size)) == 0, path_);
    data_ = static_cast<uint8_t*>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0));
    Check(data_ != MAP_FAILED, path_);
    close(file);
  }
  ~Region() {
    munmap(data_, size_);
    unlink(path_.c_str());
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  uint8_t* data() const { return data_; }

 private:
  const std::string path_;
  const size_t size_;
  uint8_t* data_;
};

}  // namespace

void RunTable(Report& report) {
  report.Begin("table", "Calls beside the echo", Columns::kCalls);
  const Process quantd = StartQuantd("quantd"), echo = StartEcho("echo");
  const auto before = StartBefore("before");
  const bool chosen = !absl::GetFlag(FLAGS_filter).empty();
  for (const Config& config : Configs()) {
    const bool thorough = IsQuick(config) || chosen;
    if (!report.Wanted(config.Name()) || (absl::GetFlag(FLAGS_quick) && !thorough)) continue;
    Case one{config.Name(), {CallingEcho(echo, quantd, config), Calling("quantd", quantd, config)}};
    one.pairs = {{"quantd", "echo"}};
    if (before != nullptr) {
      one.sides.push_back(Calling("before", *before, config));
      one.pairs.push_back({"quantd", "before"});
    }
    // The table has more than a hundred rows: those without a goal get fewer turns.
    report.Measure(one, thorough ? Rounds(14, 20) : Rounds(4, config.unix_socket ? 5 : 7));
  }
  const Config config{"QuantizeEmbeddings", false, 1 << 20, 4};
  const Config quantize{"Quantize", false, 1 << 20, 4};
  if (!report.Wanted(config.Name())) return;
  const auto client = Connect(quantd, config);  // one connection
  report.Measure(
      {config.Name(),
       {Calling("quantd", quantd, config, client), Calling("Quantize", quantd, quantize, client)}},
      Rounds(14, 20));
}

void RunStream(Report& report) {
  report.Begin("stream", "Items of DynamicQuantize, 4 B, on 32 streams beside 32 calls in flight",
               Columns::kCalls);
  const Process quantd = StartQuantd("stream_quantd"), echo = StartEcho("stream_echo");
  const Config calls{"DynamicQuantize", false, 4, 32};
  for (const int window : {1, 8}) {
    const Config items{"Stream", false, 4, 32, window};
    if (!report.Wanted(items.Name())) continue;
    Case one{items.Name(),
             {Calling("quantd", quantd, items), Calling("quantd's calls", quantd, calls),
              CallingEcho(echo, quantd, items), CallingEcho(echo, quantd, calls)},
             0,
             {{"quantd", "quantd's calls"}, {"echo", "echo's calls"}}};
    one.sides.back().name = "echo's calls";
    report.Measure(one, Rounds(14, 20));
  }
}

void RunScaling(Report& report) {
  report.Begin("scaling",
               "quantd on some of the cores, whose load may use all of them; then over several "
               "connections, beside the echo",
               Columns::kCalls);
  const std::vector<int> cpus = Cpus();
  std::vector<int> counts = {static_cast<int>(cpus.size())};
  for (int count = 1; count < counts[0]; count *= 2) counts.push_back(count);
  std::vector<std::unique_ptr<Process>> servers;
  for (const int count : counts) {
    const std::vector<int> own(cpus.begin(), cpus.begin() + count);
    servers.emplace_back(new Process(
        StartQuantd(absl::StrCat("cores_", count), {absl::StrCat("--threads=", count)}, own)));
  }
  for (const auto& [bytes, in_flight] : {std::pair<size_t, int>{64 << 10, 32}, {1 << 20, 16}}) {
    const Config config{"DynamicQuantize", false, bytes, in_flight, 1, 8};
    Case one{absl::StrCat(config.Name(), ", cores"), {}};
    if (counts.size() == 1 || !report.Wanted(one.name)) continue;
    for (size_t i = 0; i < servers.size(); ++i) {
      one.sides.push_back(Calling(Count(counts[i], "core"), *servers[i], config));
    }
    report.Measure(one, Rounds(14, 20));
  }
  const Process echo = StartEcho("scaling_echo");
  for (const size_t bytes : {size_t{4}, size_t{64} << 10}) {
    for (const int connections : {1, 8, 64}) {
      const Config config{"DynamicQuantize",        false, bytes,
                          std::max(8, connections), 1,     connections};
      const Process& quantd = *servers[0];
      if (!report.Wanted(config.Name())) continue;
      report.Measure(
          {config.Name(), {Calling("quantd", quantd, config), CallingEcho(echo, quantd, config)}},
          Rounds(14, 20));
    }
  }
}

// Compared with the core on this process's memory, which is all that a client would do without a
// server; the bytes of the responses are compared.
void RunShared(Report& report) {
  report.Begin("shared", "Tensors in shared memory, over TCP, and in this process; GB/s of FLOAT",
               Columns::kCalls);
  const std::string folder = absl::StrCat("/dev/shm/quantd_bench_", getpid());
  std::filesystem::create_directory(folder);
  {
    const Process quantd = StartQuantd("shared_quantd", {"--shared_memory_dir=" + folder});
    const Executor executor;
    for (const OperationKind kind : kOperationKinds) {
      for (const size_t bytes : {size_t{16} << 20, size_t{256} << 20}) {
        const Operation operation(
            {.kind = kind, .shape = {static_cast<int64_t>(bytes / sizeof(float))}});
        const size_t x_bytes = operation.x().size(), y_bytes = operation.y().size();
        Config config{NameOf(kind), false, x_bytes};
        const std::string name = absl::StrCat(config.operation, " ", SizeText(bytes));
        if (!report.Wanted(name)) continue;
        const Region x(folder + "/x", x_bytes), y(folder + "/y", y_bytes);
        std::memcpy(x.data(), operation.x().data(), x_bytes);
        const Side tcp = Calling("TCP", quantd, config);
        config.shared = true;
        report.Measure({name,
                        {Calling("shared memory", quantd, config),
                         tcp,
                         {"in process",
                          [&] {
                            return Repeat([&] { return operation.Run(executor); },
                                          Seconds(config.seconds), executor.threads());
                          }}},
                        bytes},
                       Rounds(bytes > 16 << 20 ? 7 : 14, 20));
        if (std::memcmp(y.data(), operation.y().data(), y_bytes) != 0) {
          report.LeftOut(absl::StrCat(name, ": the answer in shared memory is another"));
          report.CountErrors(1);
        }
      }
    }
  }
  std::filesystem::remove_all(folder);
}

void RunTls(Report& report) {
  report.Begin("tls", "Over TLS, beside the echo over TLS and quantd in plain text",
               Columns::kCalls);
  const std::string base = Folder() + "/tls";
  const std::string certificate = MakeCertificate(base);
  if (certificate.empty()) {
    report.LeftOut("the openssl command made no certificate");
    report.CountErrors(1);
    return;
  }
  const Process tls = StartQuantd(
      "tls_quantd", {absl::StrCat("--tls_cert=", base, ".crt"), "--tls_key=" + base + ".key"});
  const Process echo = StartEcho("tls_echo", base);
  const Process plain = StartQuantd("tls_plain");
  for (const auto& [bytes, in_flight] :
       {std::pair<size_t, int>{4, 1}, {4, 32}, {1 << 20, 4}, {16 << 20, 1}}) {
    const Config config{"Quantize", false, bytes, in_flight};
    if (!report.Wanted(config.Name())) continue;
    Config encrypted = config;
    encrypted.certificate = certificate;
    // Ratios are made of neighbours in this list.
    report.Measure({config.Name(),
                    {CallingEcho(echo, tls, encrypted), Calling("TLS", tls, encrypted),
                     Calling("plain", plain, config)},
                    0,
                    {{"TLS", "echo"}, {"TLS", "plain"}}},
                   Rounds(14, 20));
  }
}

// aio_server.py is the server that one would write with ONNX Runtime.
void RunPeers(Report& report) {
  report.Begin("peers",
               "quantd beside a raw echo and the server that one would write with ONNX Runtime",
               Columns::kCalls);
  const std::string library = absl::GetFlag(FLAGS_onnxruntime);
  if (library.empty()) return report.LeftOut("no --onnxruntime");
  const std::string model = absl::GetFlag(FLAGS_models) + "/dynamic_quantize.onnx";
  const std::string aio_ready = Folder() + "/aio.json";
  const Process quantd = StartQuantd("peers_quantd"), echo = StartEcho("peers_echo");
  const Process aio({absl::GetFlag(FLAGS_python), AIO_SERVER, aio_ready, model}, aio_ready);
  for (const auto& [bytes, in_flight] : {std::pair<size_t, int>{64 << 10, 8}, {1 << 20, 4}}) {
    const Config config{"DynamicQuantize", false, bytes, in_flight};
    if (!report.Wanted(config.Name())) continue;
    const std::string values = Values(quantd, config);
    if (values.empty() || values != Values(aio, config)) {
      report.LeftOut(config.Name() + ": the servers answer differently");
      report.CountErrors(1);
      continue;
    }
    report.Measure({config.Name(),
                    {Calling("quantd", quantd, config), CallingEcho(echo, quantd, config),
                     Calling("grpc.aio", aio, config)}},
                   Rounds(12, 24));
  }
}

}  // namespace quantd::bench
