// Tensors in shared memory: a call beside the same one over TCP, and beside the core on this
// process's memory, which is all that a client without a server would do. Bytes of the answers are
// compared first. See rpc_sections.h.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "quantd/dequantize.h"
#include "quantd/dynamic_quantize.h"
#include "quantd/quantize.h"
#include "quantd/v1/quantization.pb.h"
#include "rpc_sections.h"

namespace quantd::bench {
namespace {

using Clock = std::chrono::steady_clock;

void Check(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::exit(1);
}

// A file in shared memory, as a client has one.
class Region {
 public:
  Region(const std::string& folder, const std::string& name, size_t size)
      : path_(folder + "/" + name), size_(size) {
    const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    Check(file >= 0 && posix_fallocate(file, 0, static_cast<off_t>(size)) == 0, path_.c_str());
    data_ = static_cast<uint8_t*>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0));
    Check(data_ != MAP_FAILED, path_.c_str());
    close(file);
  }
  ~Region() {
    munmap(data_, size_);
    unlink(path_.c_str());
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  const std::string path_;
  const size_t size_;
  uint8_t* data_;
};

constexpr float kScale = 1.0F / 64;

// One operation, `bytes` of FLOAT on one side and UINT8 on the other.
class Case {
 public:
  Case(std::string operation, size_t bytes, const std::string& folder)
      : operation_(std::move(operation)),
        elements_(bytes / sizeof(float)),
        x_bytes_(operation_ == "Dequantize" ? elements_ : bytes),
        shared_x_(folder, "x", x_bytes_),
        shared_y_(folder, "y", operation_ == "Dequantize" ? bytes : elements_),
        x_(std::make_unique_for_overwrite<uint8_t[]>(x_bytes_)),
        y_(shared_y_.size()) {
    if (operation_ == "Dequantize") {
      for (size_t i = 0; i < elements_; ++i) x_[i] = static_cast<uint8_t>(i * 7);
    } else {
      for (size_t i = 0; i < elements_; ++i) {
        const float value = std::sin(static_cast<float>(i));
        std::memcpy(&x_[i * sizeof(float)], &value, sizeof(value));
      }
    }
    std::memcpy(shared_x_.data(), x_.get(), x_bytes_);
  }

  std::string Message(bool shared) const {
    if (operation_ == "Quantize") return Fill(v1::QuantizeRequest(), shared);
    if (operation_ == "Dequantize") return Fill(v1::DequantizeRequest(), shared);
    return Fill(v1::DynamicQuantizeRequest(), shared);
  }

  // Plans and executes as the server does.
  void Compute(const Executor& executor) {
    const auto never = [] { return false; };
    const absl::Span<uint8_t> y = absl::MakeSpan(y_);
    const TensorView scale{DataType::kFloat, {}, Bytes(&kScale, sizeof(kScale))};
    const Shape shape = {static_cast<int64_t>(elements_)};
    const DataType type = operation_ == "Dequantize" ? DataType::kUint8 : DataType::kFloat;
    const TensorView x{type, shape, Bytes(x_.get(), x_bytes_)};
    bool good = false;
    if (operation_ == "Quantize") {
      const auto plan = PlanQuantize({.x = x, .scale = scale});
      good = quantd::Quantize(*plan, x.bytes, executor, never, y, nullptr).ok();
    } else if (operation_ == "Dequantize") {
      const auto plan = PlanDequantize({.x = x, .scale = scale});
      good = quantd::Dequantize(*plan, x.bytes, executor, never, y).ok();
    } else {
      const auto plan = PlanDynamicQuantize({.x = x});
      uint8_t made[8];
      const DynamicQuantizeOutput output{y, {made, 4}, {made + 4, 1}, {}};
      good = quantd::DynamicQuantize(*plan, x.bytes, executor, never, output, nullptr).ok();
    }
    Check(good, "in process");
  }

  bool SharedIsRight() const { return std::memcmp(shared_y_.data(), y_.data(), y_.size()) == 0; }

 private:
  static ByteChunks Bytes(const void* data, size_t size) {
    return ByteChunks(ByteChunks::Chunk(static_cast<const uint8_t*>(data), size));
  }

  template <typename Message>
  std::string Fill(Message message, bool shared) const {
    v1::Tensor& x = *message.mutable_x();
    x.set_data_type(operation_ == "Dequantize" ? v1::DATA_TYPE_UINT8 : v1::DATA_TYPE_FLOAT);
    x.add_shape(static_cast<int64_t>(elements_));
    if (shared) {
      x.mutable_shared_memory()->set_region("x");
      x.mutable_shared_memory()->set_byte_size(x_bytes_);
      message.mutable_output()->set_region("y");
      message.mutable_output()->set_byte_size(shared_y_.size());
    } else {
      x.set_raw_data(x_.get(), x_bytes_);
    }
    if constexpr (!std::is_same_v<Message, v1::DynamicQuantizeRequest>) {
      message.mutable_scale()->set_data_type(v1::DATA_TYPE_FLOAT);
      message.mutable_scale()->set_raw_data(&kScale, sizeof(kScale));
    }
    return message.SerializeAsString();
  }

  const std::string operation_;
  const size_t elements_;
  const size_t x_bytes_;
  const Region shared_x_, shared_y_;
  const std::unique_ptr<uint8_t[]> x_;
  std::vector<uint8_t> y_;
};

Load InProcess(Case& work, const Executor& executor, double seconds) {
  Load load;
  const Clock::time_point begin = Clock::now();
  do {
    const Clock::time_point start = Clock::now();
    work.Compute(executor);
    load.latencies.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    ++load.calls;
    load.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  } while (load.seconds < seconds || load.calls < 4);
  load.total = load.calls;
  return load;
}

}  // namespace

nlohmann::json RunShared(const Options& options, uint64_t& errors) {
  const std::string folder = absl::StrCat("/dev/shm/rpc_bench_", getpid());
  std::filesystem::create_directory(folder);
  nlohmann::json rows = nlohmann::json::array();
  std::printf(
      "\nTensors in shared memory, over TCP, and in this process; GB/s of the FLOAT side, 1 in "
      "flight\n\n"
      "| call | FLOAT | shared | TCP | in process | shared / TCP | quartiles | shared / in process "
      "| quartiles | shared CPU us | / TCP's |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
  {
    const Process quantd = StartQuantd(options, "shared_quantd", {"--shared_memory_dir=" + folder});
    const Executor executor;
    for (const char* operation : {"Quantize", "Dequantize", "DynamicQuantize"}) {
      for (const size_t bytes : {size_t{16} << 20, size_t{256} << 20}) {
        Case work(operation, bytes, folder);
        Client shared(quantd.addresses()[0]), tcp(quantd.addresses()[0]);
        const bench::Work by_shared{Method(operation), ToBuffer(work.Message(true))};
        const bench::Work by_tcp{Method(operation), ToBuffer(work.Message(false))};
        const double seconds = options.turn_seconds;
        const std::vector<Series> turns =
            TakeTurns({[&] { return shared.Run(by_shared, seconds, quantd); },
                       [&] { return tcp.Run(by_tcp, seconds, quantd); },
                       [&] { return InProcess(work, executor, seconds); }},
                      options.rounds / (options.quick && bytes > 16 << 20 ? 2 : 1));
        const Figures by[] = {turns[0].Sum(), turns[1].Sum(), turns[2].Sum()};
        const Ratios to_tcp = Compare(turns[0], turns[1]);
        const Ratios to_process = Compare(turns[0], turns[2]);
        const bool right = work.SharedIsRight();
        const double giga = static_cast<double>(bytes) / 1e9;
        std::printf(
            "| %s | %s | %.1f | %.1f | %.1f | %.2f | %.2f to %.2f | %.2f | %.2f to %.2f | %.0f | "
            "%.2f |%s\n",
            operation, SizeText(bytes).c_str(), by[0].rate * giga, by[1].rate * giga,
            by[2].rate * giga, to_tcp.rate.median, to_tcp.rate.low, to_tcp.rate.high,
            to_process.rate.median, to_process.rate.low, to_process.rate.high, by[0].cpu * 1e6,
            to_tcp.cpu.median, right ? "" : " WRONG");
        std::fflush(stdout);
        errors += by[0].errors + by[1].errors + (right ? 0 : 1);
        rows.push_back({{"call", operation},
                        {"bytes", bytes},
                        {"shared", ToJson(by[0])},
                        {"tcp", ToJson(by[1])},
                        {"in_process", ToJson(by[2])},
                        {"to_tcp", ToJson(to_tcp)},
                        {"to_in_process", ToJson(to_process)}});
      }
    }
  }
  std::filesystem::remove_all(folder);
  return rows;
}

}  // namespace quantd::bench
