// The operations on large tensors with one scale, compared with what bounds them, with one thread
// and with ONNX Runtime, whose bytes are compared first; then with all granularities. See bench.h.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "bench.h"
#include "limit.h"
#include "onnxruntime.h"
#include "operation.h"
#include "quantd/calibration.h"
#include "quantd/targets.h"

namespace quantd::bench {
namespace {

using Run = std::function<absl::Status(const Executor&)>;

Side SideOf(const std::string& name, Run run, const Executor& executor, double seconds,
            int threads) {
  return {name, [run = std::move(run), &executor, seconds, threads] {
            return Repeat([&] { return run(executor); }, seconds, threads);
          }};
}

// Copies or reads of the operation's shape, one after the other; each task has a piece.
Run LimitRun(const Operation& operation, const std::vector<Limit>& limits, int tasks, bool stream,
             const Memory& y) {
  return [&operation, &y, limits, tasks, stream](const Executor& executor) {
    const size_t size = operation.elements();
    const size_t in = operation.widens() ? 1 : sizeof(float);
    const size_t piece = (size / static_cast<size_t>(tasks) + 1023) / 1024 * 1024;
    for (const Limit limit : limits) {
      executor.ParallelFor(static_cast<size_t>(tasks), [&](size_t task) {
        const size_t begin = std::min(size, task * piece);
        const size_t some = std::min(size - begin, piece);
        if (some == 0) return;
        RunLimit(limit, operation.x().data() + begin * in, some,
                 y.data() + begin * sizeof(float) / in, stream && limit != Limit::kRead);
      });
    }
    return absl::OkStatus();
  };
}

// The same operation in ONNX Runtime, in a process of its own: after a call its threads look for
// more work for tens of milliseconds, and here they would hold the cores of ours.
class Peer {
 public:
  explicit Peer(const Operation& operation) : operation_(operation) {}
  ~Peer() {
    if (child_ <= 0) return;
    close(pipe_);  // it ends
    waitpid(child_, nullptr, 0);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // The operation has run: its bytes must be those of ONNX Runtime.
  absl::Status Open(int threads) {
    int pipes[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pipes) != 0) {
      return absl::InternalError("no pipe");
    }
    pipe_ = pipes[0];
    child_ = fork();
    if (child_ == 0) {
      close(pipes[0]);
      Serve(pipes[1], threads);
      _exit(0);
    }
    close(pipes[1]);
    return Take(0).errors == 0 ? absl::OkStatus()
                               : absl::InternalError("ONNX Runtime fails, or its bytes differ");
  }

  // A turn there.
  Load Take(double seconds) const {
    Reply reply;
    if (send(pipe_, &seconds, sizeof(seconds), MSG_NOSIGNAL) != sizeof(seconds) ||
        recv(pipe_, &reply, sizeof(reply), MSG_WAITALL) != sizeof(reply)) {
      reply = {};
    }
    return {.calls = reply.calls,
            .total = reply.calls,
            .errors = reply.errors,
            .seconds = reply.seconds,
            .latencies = {},
            .used = {}};
  }

 private:
  struct Reply {
    uint64_t calls = 0, errors = 1;
    double seconds = 0;
  };

  // In the child, until the pipe is closed. The first turn only compares.
  void Serve(int pipe, int threads) const {
    const Memory y(operation_.y().size()), scale(sizeof(float)), zero_point(1);
    const auto run = Bind(threads, y, scale, zero_point);
    const auto same = [](const Memory& a, const Memory& b) {
      return std::memcmp(a.data(), b.data(), b.size()) == 0;
    };
    bool right = run.ok() && (*run)().ok() && same(operation_.y(), y);
    if (operation_.kind() == OperationKind::kDynamicQuantize) {
      right = right && same(operation_.made_scale(), scale) &&
              same(operation_.made_zero_point(), zero_point);
    }
    if (!run.ok()) std::fprintf(stderr, "%s\n", run.status().ToString().c_str());
    double seconds;
    while (recv(pipe, &seconds, sizeof(seconds), MSG_WAITALL) == sizeof(seconds)) {
      Reply reply;
      reply.errors = right ? 0 : 1;
      if (seconds > 0 && right) {
        const Load load = Repeat(*run, seconds, threads);
        reply = {load.calls, load.errors, load.seconds};
      }
      if (send(pipe, &reply, sizeof(reply), MSG_NOSIGNAL) != sizeof(reply)) return;
    }
  }

  absl::StatusOr<std::function<absl::Status()>> Bind(int threads, const Memory& y,
                                                     const Memory& scale,
                                                     const Memory& zero_point) const {
    const bool dynamic = operation_.kind() == OperationKind::kDynamicQuantize;
    const auto size = static_cast<int64_t>(operation_.elements());
    const auto of = [](const char* name, const Memory& memory, std::vector<int64_t> shape,
                       bool is_float) {
      return OrtTensor{name, memory.data(), memory.size(), std::move(shape),
                       is_float ? OrtElementType::kFloat : OrtElementType::kUint8};
    };
    std::vector<OrtTensor> in = {of("x", operation_.x(), {size}, !operation_.widens())};
    std::vector<OrtTensor> out = {of("y", y, {size}, operation_.widens())};
    if (dynamic) {
      out.push_back(of("y_scale", scale, {}, true));
      out.push_back(of("y_zero_point", zero_point, {}, false));
    } else {
      in.push_back(of("scale", operation_.scale(), {}, true));
      in.push_back(of("zero_point", operation_.zero_point(), {}, false));
    }
    const std::string name = dynamic               ? "dynamic_quantize"
                             : operation_.widens() ? "dequantize"
                                                   : "quantize";
    const auto model =
        OrtModel::Open(absl::GetFlag(FLAGS_onnxruntime),
                       absl::StrCat(absl::GetFlag(FLAGS_models), "/", name, ".onnx"), threads);
    if (!model.ok()) return model.status();
    return model->Bind(in, out);
  }

  const Operation& operation_;
  pid_t child_ = -1;
  int pipe_ = -1;
};

struct Bound {
  const char* name;
  std::vector<Limit> limits;
};

class Measurement {
 public:
  Measurement(Report& report, size_t bytes, const std::vector<std::unique_ptr<Executor>>& pools)
      : report_(report),
        bytes_(bytes),
        pools_(pools),
        seconds_(Seconds(std::max(absl::GetFlag(FLAGS_quick) ? 0.003 : 0.008,
                                  static_cast<double>(bytes) / 1e10))),
        y_(bytes) {}

  // The last pool's figures, compared with fewer threads and, with `with_peer`, with ONNX Runtime;
  // the limit reads the tensors of `of`.
  void Measure(const std::string& title, const Run& run, const Operation& of, const Bound& bound,
               bool with_peer) {
    const int threads = pools_.back()->threads();
    const std::string name =
        absl::StrCat(title, ", ", SizeText(bytes_), ", ", Count(threads, "thread"));
    if (!report_.Wanted(name)) return;
    Case one{name, {SideOf("quantd", run, *pools_.back(), seconds_, threads)}, bytes_};
    Peer peer(of);
    if (with_peer && !absl::GetFlag(FLAGS_onnxruntime).empty()) {
      absl::Status status = run(*pools_.back());
      if (status.ok()) status = peer.Open(threads);
      if (!status.ok()) {
        report_.LeftOut(absl::StrCat(name, ": ", status.ToString()));
        report_.CountErrors(1);
        return;
      }
      one.sides.push_back({"ONNX Runtime", [&] { return peer.Take(seconds_); }});
    }
    for (size_t i = 0; i + 1 < pools_.size(); ++i) {
      one.sides.push_back(
          SideOf(Count(pools_[i]->threads(), "thread"), run, *pools_[i], seconds_, threads));
    }
    for (const bool stream : {false, true}) {
      for (const int tasks : {threads, 8 * threads}) {
        one.sides.push_back(SideOf(bound.name, LimitRun(of, bound.limits, tasks, stream, y_),
                                   *pools_.back(), seconds_, threads));
      }
    }
    report_.Measure(one, Rounds(7, 13));
  }

 private:
  Report& report_;
  const size_t bytes_;
  const std::vector<std::unique_ptr<Executor>>& pools_;
  const double seconds_;
  const Memory y_;  // for the limits
};

void MeasureSize(Report& report, size_t bytes,
                 const std::vector<std::unique_ptr<Executor>>& pools) {
  Measurement measurement(report, bytes, pools);
  const Shape shape = {static_cast<int64_t>(bytes / sizeof(float))};
  const Bound bounds[] = {{"narrowing copy", {Limit::kNarrow8}},
                          {"read, then narrowing copy", {Limit::kRead, Limit::kNarrow8}},
                          {"widening copy", {Limit::kWiden8}}};
  for (const OperationKind kind : kOperationKinds) {
    const Operation operation({.kind = kind, .shape = shape});
    measurement.Measure(
        NameOf(kind), [&](const Executor& executor) { return operation.Run(executor); }, operation,
        bounds[static_cast<size_t>(kind)], true);
  }
  // Adds one more tensor to a calibrator that has seen it before.
  const Operation values({.shape = shape});
  for (const auto method : {CalibrationMethod::kMinMax, CalibrationMethod::kMse}) {
    Calibrator calibrator = *Calibrator::Create({.method = method});
    measurement.Measure(
        method == CalibrationMethod::kMse ? "Calibrate, bins" : "Calibrate, range",
        [&](const Executor& executor) {
          const TensorView x{DataType::kFloat, shape, {values.x().data(), bytes}};
          return calibrator.Add(x, executor, [] { return false; });
        },
        values, {"read", {Limit::kRead}}, false);
  }
}

struct Grain {
  std::string name;
  Shape shape;
  Granularity granularity;
};

std::vector<Grain> Grains() {
  const Shape square = {512, 512};
  std::vector<Grain> grains = {
      {"axis, first", square, {.axis = 0}},
      {"axis, last", square, {.axis = 1}},
      {"axis, last of 3", {512 * 512 / 3, 3}, {.axis = 1}},
      {"axis, middle", {64, 64, 64}, {.axis = 1}},
      {"axis, middle, rows of 4", {4096, 16, 4}, {.axis = 1}},
      {"blocks of 32 along axis 0", square, {.axis = 0, .block_size = 32}},
      {"tiles of 128x128", square, {.block_shape = {128, 128}}},
      {"groups of 8x64", square, {.block_shape = {8, 64}}},
  };
  for (const int64_t block : {2, 4, 8, 16, 32, 128, 49}) {
    grains.push_back({absl::StrCat("blocks of ", block), square, {.axis = 1, .block_size = block}});
  }
  return grains;
}

// 1 MiB with every granularity, compared with one scale.
void MeasureGrains(Report& report, const Executor& executor) {
  const int threads = executor.threads();
  const double seconds = Seconds(absl::GetFlag(FLAGS_quick) ? 0.002 : 0.005);
  for (const OperationKind kind : kOperationKinds) {
    const Operation whole({.kind = kind, .shape = {512, 512}});
    for (const Grain& grain : Grains()) {
      const std::string name =
          absl::StrCat(NameOf(kind), ", ", grain.name, ", ", Count(threads, "thread"));
      if (!report.Wanted(name)) continue;
      const Operation operation({kind, grain.shape, grain.granularity});
      const auto side = [&](const char* side_name, const Operation& of) {
        return SideOf(
            side_name, [&of](const Executor& pool) { return of.Run(pool); }, executor, seconds,
            threads);
      };
      report.Measure({name, {side("quantd", operation), side("one scale", whole)}, 1 << 20},
                     Rounds(5, 7));
    }
  }
}

}  // namespace

void RunOperations(Report& report) {
  report.Begin("operations",
               absl::StrCat("Operations, FLOAT and UINT8, target ", std::string(CurrentTarget()),
                            "; GB/s of FLOAT"),
               Columns::kRates);
  for (const int threads : Threads()) {
    std::vector<std::unique_ptr<Executor>> pools;  // of 1, 2, 4, ... threads
    for (int fewer = 1; fewer < threads; fewer *= 2) {
      pools.push_back(std::make_unique<Executor>(fewer));
    }
    pools.push_back(std::make_unique<Executor>(threads));
    for (const size_t bytes : Sizes()) MeasureSize(report, bytes, pools);
    MeasureGrains(report, *pools.back());
  }
}

}  // namespace quantd::bench
