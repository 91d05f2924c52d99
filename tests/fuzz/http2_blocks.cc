#include "http2_blocks.h"

#include <nghttp2/nghttp2.h>
#include <zlib.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frames.h"
#include "http2_input.h"

namespace quantd::fuzz {
namespace {

using Fields = transport::Fields;

// Adds fields that quantd reads, besides gRPC's, with right and wrong values; and metadata.
void AddMore(Random& random, Fields& fields) {
  static const Fields* const some = new Fields{
      {"grpc-timeout", "10H"},
      {"grpc-timeout", "10M"},
      {"grpc-timeout", "10m"},
      {"grpc-timeout", "10u"},
      {"grpc-timeout", "123456789S"},
      {"grpc-timeout", "1x"},
      {"grpc-accept-encoding", "identity, gzip"},
      {"grpc-accept-encoding", "deflate,,x"},
      {"quantd-compress-answers", "gzip"},
      {"quantd-compress-answers", "some"},
      {"x-request-id", std::string(200, 'r')},
      {"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
      {"traceparent", "00-00"},
      {"quantd-timing", "1"},
      {"authorization", "no"},
      {"authorization", "yes"},
      {"kept", "  a value "},
      {"kept-bin", "AAEC,AAE=,, %"},
  };
  fields.push_back((*some)[Below(random, some->size())]);
}

Fields RequestFields(Random& random, bool gzip) {
  Fields fields = {{":method", OneIn(random, 20) ? "GET" : "POST"},
                   {":scheme", "http"},
                   {":authority", "x"},
                   {":path", std::string(OneIn(random, 20)   ? "/f/None"
                                         : OneIn(random, 20) ? kWatchPath
                                                             : kPath)},
                   {"te", "trailers"},
                   {"content-type", OneIn(random, 20) ? "text/html" : "application/grpc+proto"}};
  if (OneIn(random, 20)) fields.emplace_back("grpc-timeout", OneIn(random, 2) ? "10S" : "1n");
  if (gzip) fields.emplace_back("grpc-encoding", OneIn(random, 8) ? "deflate" : "gzip");
  if (OneIn(random, 40)) fields.emplace_back("grpc-encoding", "x");
  if (OneIn(random, 20)) fields.emplace_back("content-length", absl::StrCat(Below(random, 60)));
  while (OneIn(random, 4)) AddMore(random, fields);
  // More than is allowed, and more than is read.
  if (OneIn(random, 100)) fields.emplace_back("kept-bin", std::string(Below(random, 17'000), ','));
  if (OneIn(random, 100)) fields.emplace_back("a", std::string(Below(random, 40'000), 'a'));
  if (OneIn(random, 8)) fields.emplace_back("a", std::string(Below(random, 300), 'a'));
  if (OneIn(random, 30)) std::swap(fields[Below(random, fields.size())], fields.back());
  return fields;
}

// As a client's library would write it: with the static table and Huffman's code, but no dynamic
// table.
std::string Compressed(const Fields& fields) {
  nghttp2_hd_deflater* deflater = nullptr;
  Require(nghttp2_hd_deflate_new(&deflater, 0) == 0, "there is memory for HPACK");
  std::vector<nghttp2_nv> pairs;
  for (const auto& [name, value] : fields) {
    pairs.push_back({reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
                     reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(),
                     value.size(), NGHTTP2_NV_FLAG_NONE});
  }
  std::string block(nghttp2_hd_deflate_bound(deflater, pairs.data(), pairs.size()), '\0');
  const ssize_t size = nghttp2_hd_deflate_hd(deflater, reinterpret_cast<uint8_t*>(block.data()),
                                             block.size(), pairs.data(), pairs.size());
  nghttp2_hd_deflate_del(deflater);
  block.resize(size < 0 ? 0 : static_cast<size_t>(size));
  return block;
}

}  // namespace

std::string Gzip(const std::string& bytes) {
  z_stream stream = {};
  Require(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK,
          "zlib has memory");
  std::string compressed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_out = static_cast<uInt>(compressed.size());
  deflate(&stream, Z_FINISH);
  compressed.resize(stream.total_out);
  deflateEnd(&stream);
  return compressed;
}

std::string RefusedBlock(Random& random) {
  // A different name each time: HPACK writes a field that it has seen as one byte.
  const std::string name = absl::StrCat(random(), std::string(Below(random, 400), 'n'));
  return transport::HeaderBlock({{":method", "POST"},
                                 {":scheme", "http"},
                                 {":authority", "x"},
                                 {":path", "/f/" + name},
                                 {"content-type", "application/grpc"}});
}

std::string RequestBlock(Random& random, bool gzip) {
  const Fields fields = RequestFields(random, gzip);
  if (OneIn(random, 4)) return Compressed(fields);
  std::string block;
  for (const auto& [name, value] : fields) {
    // Not indexed, or kept in the table for later blocks.
    block.push_back(OneIn(random, 4) ? 0x40 : 0);
    block += transport::HpackString(name) + transport::HpackString(value);
  }
  if (OneIn(random, 10)) block.push_back(static_cast<char>(0x80 | Below(random, 70)));
  return block;
}

}  // namespace quantd::fuzz
