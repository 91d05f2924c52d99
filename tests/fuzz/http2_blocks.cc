#include "http2_blocks.h"

#include <nghttp2/nghttp2.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frames.h"
#include "http2_input.h"

namespace quantd::fuzz {
namespace {

using Fields = transport::Fields;

Fields RequestFields(Random& random, bool gzip) {
  Fields fields = {{":method", OneIn(random, 20) ? "GET" : "POST"},
                   {":scheme", "http"},
                   {":authority", "x"},
                   {":path", OneIn(random, 20) ? "/f/None" : std::string(kPath)},
                   {"te", "trailers"},
                   {"content-type", OneIn(random, 20) ? "text/html" : "application/grpc+proto"}};
  if (OneIn(random, 20)) fields.emplace_back("grpc-timeout", OneIn(random, 2) ? "10S" : "1n");
  if (gzip) fields.emplace_back("grpc-encoding", OneIn(random, 8) ? "deflate" : "gzip");
  if (OneIn(random, 40)) fields.emplace_back("grpc-encoding", "x");
  if (OneIn(random, 20)) fields.emplace_back("content-length", absl::StrCat(Below(random, 60)));
  if (OneIn(random, 8)) fields.emplace_back("a", std::string(Below(random, 300), 'a'));
  if (OneIn(random, 30)) std::swap(fields[Below(random, fields.size())], fields.back());
  return fields;
}

// As a client's library would: static table and Huffman's code, without a memory of its own.
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

std::string RequestBlock(Random& random, bool gzip) {
  const Fields fields = RequestFields(random, gzip);
  if (OneIn(random, 4)) return Compressed(fields);
  std::string block;
  for (const auto& [name, value] : fields) {
    // Not indexed, or kept in the table for those behind it.
    block.push_back(OneIn(random, 4) ? 0x40 : 0);
    block += transport::HpackString(name) + transport::HpackString(value);
  }
  if (OneIn(random, 10)) block.push_back(static_cast<char>(0x80 | Below(random, 70)));
  return block;
}

}  // namespace quantd::fuzz
