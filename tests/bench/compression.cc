// Compressed responses, compared with the same calls without compression; the values are
// distributed like weights and activations. See bench.h.
#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "bench.h"
#include "server/memory/buffer.h"
#include "server/transport/deflater.h"
#include "servers.h"

namespace quantd::bench {
namespace {

// The share of the response's bytes that is sent.
double Shrinks(const Process& server, const Config& config) {
  memory::Pool pool;
  const std::string response =
      Connect(server, config)->Call(Method(config.operation), Request(config));
  const auto contents = config.operation == "Dequantize" ? transport::Contents::kNumbers
                                                         : transport::Contents::kCodes;
  const memory::Piece piece =
      transport::Deflate(transport::Encoding::kGzip,
                         {reinterpret_cast<const uint8_t*>(response.data()), response.size()},
                         contents, 0, pool, [] { return false; });
  return piece.begin == nullptr
             ? 1
             : static_cast<double>(piece.size) / static_cast<double>(response.size());
}

}  // namespace

void RunCompression(Report& report) {
  report.Begin("compression",
               "Answers with gzip, beside the same server's without; the client inflates them",
               Columns::kCalls);
  const Process gzip = StartQuantd("gzip", {"--compress_answers=gzip"}),
                plain = StartQuantd("no_gzip");
  for (const char* operation : {"Quantize", "Dequantize"}) {
    for (const auto& [bytes, in_flight] :
         {std::pair<size_t, int>{4, 1}, {4, 32}, {64 << 10, 4}, {1 << 20, 4}}) {
      Config config{operation, false, bytes, in_flight};
      config.normal = true;
      if (!report.Wanted(config.Name())) continue;
      report.Measure(
          {config.Name(), {Calling("gzip", gzip, config), Calling("identity", plain, config)}},
          Rounds(14, 20));
    }
  }
  report.Begin("compressed", "What is sent of an answer, with gzip", Columns::kNotes);
  for (const char* operation : {"Quantize", "Dequantize"}) {
    Config config{operation, false, 1 << 20};
    config.normal = true;
    const std::string name = absl::StrCat(operation, " 1 MiB");
    if (report.Wanted(name)) report.Note(name, 100 * Shrinks(plain, config), "%");
  }
}

}  // namespace quantd::bench
