// Header blocks of calls, in every form that HPACK has.
#ifndef QUANTD_TESTS_FUZZ_HTTP2_BLOCKS_H_
#define QUANTD_TESTS_FUZZ_HTTP2_BLOCKS_H_

#include <string>

#include "fuzzing.h"

namespace quantd::fuzz {

// For a call, mostly of the existing method. `gzip`: its messages may be compressed.
std::string RequestBlock(Random& random, bool gzip);
// For a call of a method that does not exist, with a long name.
std::string RefusedBlock(Random& random);
std::string Gzip(const std::string& bytes);

}  // namespace quantd::fuzz

#endif  // QUANTD_TESTS_FUZZ_HTTP2_BLOCKS_H_
