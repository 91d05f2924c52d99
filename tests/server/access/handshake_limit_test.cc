#include "server/access/handshake_limit.h"

#include <gtest/gtest.h>

#include <string>

namespace quantd::access {
namespace {

using Verdict = HandshakeLimit::Verdict;

std::string Record(char type, const std::string& bytes) {
  return std::string(
             {type, 3, 3, static_cast<char>(bytes.size() >> 8), static_cast<char>(bytes.size())}) +
         bytes;
}
std::string Message(char type, size_t size, size_t sent) {
  return std::string({type, static_cast<char>(size >> 16), static_cast<char>(size >> 8),
                      static_cast<char>(size)}) +
         std::string(sent, 'x');
}

// The verdict on `bytes`, which arrive in parts of at most `part`.
Verdict Look(const std::string& bytes, size_t part, bool ciphered = false) {
  HandshakeLimit limit;
  Verdict verdict = Verdict::kFine;
  for (size_t at = 0; at < bytes.size(); at += part) {
    const std::string piece = bytes.substr(at, part);
    verdict = limit.Look({reinterpret_cast<const uint8_t*>(piece.data()), piece.size()}, ciphered);
  }
  return verdict;
}

TEST(HandshakeLimit, ReadsLengthsHoweverTheyCome) {
  const std::string good = Record(22, Message(1, 2000, 2000)) + Record(20, "\1") +
                           Record(22, Message(1, 100, 50)) + Record(22, std::string(50, 'x')) +
                           Record(22, Message(11, 20'000, 16'000)) +
                           Record(22, std::string(4000, 'x') + Message(15, 100, 100)) +
                           Record(23, std::string(5000, '\xff'));
  const std::string large_hello = Record(22, Message(1, 16'385, 10));
  std::string in_records_of_a_byte;
  for (const char byte : Message(1, 130'000, 3)) in_records_of_a_byte += Record(22, {byte});
  for (const size_t part : {1, 2, 3, 7, 100, 100'000}) {
    EXPECT_EQ(Look(good, part), Verdict::kFine);
    EXPECT_EQ(Look(large_hello, part), Verdict::kTooLarge);
    EXPECT_EQ(Look(in_records_of_a_byte, part), Verdict::kTooLarge);
    // The second hello, after a retry.
    EXPECT_EQ(Look(good + large_hello, part), Verdict::kTooLarge);
    EXPECT_EQ(Look(Record(22, Message(11, 40'000, 1)), part), Verdict::kTooLarge);
    EXPECT_EQ(Look("GET / HTTP/1.1\r\n", part), Verdict::kNoTls);
    // The lengths in encrypted records mean nothing.
    const std::string finished = Record(20, "\1") + Record(22, std::string(40, '\xff'));
    EXPECT_EQ(Look(Record(22, Message(1, 10, 10)) + finished, part, true), Verdict::kFine);
    EXPECT_EQ(Look(Record(22, Message(1, 10, 10)) + finished, part, false), Verdict::kTooLarge);
  }
}

}  // namespace
}  // namespace quantd::access
