// Header blocks of calls, in every way that HPACK has to say them.
#ifndef QUANTD_TESTS_FUZZ_HTTP2_BLOCKS_H_
#define QUANTD_TESTS_FUZZ_HTTP2_BLOCKS_H_

#include <string>

#include "fuzzing.h"

namespace quantd::fuzz {

// Of a call of the method that there is, mostly. `gzip`: its messages may be compressed.
std::string RequestBlock(Random& random, bool gzip);
// Of a call of a method that there is not, with a long name.
std::string RefusedBlock(Random& random);
std::string Gzip(const std::string& bytes);

}  // namespace quantd::fuzz

#endif  // QUANTD_TESTS_FUZZ_HTTP2_BLOCKS_H_
