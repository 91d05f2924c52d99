// All flags of the program, in the order of --help: name, default, help, accepted values, and the
// option that they set.
#ifndef QUANTD_SERVER_OPTIONS_FLAGS_H_
#define QUANTD_SERVER_OPTIONS_FLAGS_H_

#include <functional>
#include <string>
#include <vector>

#include "server/log/log.h"
#include "server/memory/shares.h"
#include "server/options/options.h"

namespace quantd::server {

struct Flag {
  const char* name;
  std::string by_default;
  const char* help;
  // Sets the option. Returns what is wrong with the text; empty: nothing.
  std::function<std::string(const std::string& text)> take;
  // The option's effective value, for the log.
  std::function<log::Field()> show;
  bool is_list = false;  // separated by commas; repeated flags are appended
};

// The flags that set and show `options` and `wanted`, which must outlive the flags.
std::vector<Flag> Flags(Options& options, memory::Wanted& wanted);

}  // namespace quantd::server

#endif  // QUANTD_SERVER_OPTIONS_FLAGS_H_
