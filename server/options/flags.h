// Every flag of the program, in the order of --help: its name, default and help, what may be given,
// and where it goes.
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
  // Sets the option. What is wrong with the text; empty: nothing.
  std::function<std::string(const std::string& text)> take;
  // The option as it is in effect, for the log.
  std::function<log::Field()> show;
  bool is_list = false;            // separated by commas; a repeated flag adds up
  bool may_hold_password = false;  // a wrong value is not repeated
};

// The flags that set and show these, which outlive them.
std::vector<Flag> Flags(Options& options, memory::Wanted& wanted);

}  // namespace quantd::server

#endif  // QUANTD_SERVER_OPTIONS_FLAGS_H_
