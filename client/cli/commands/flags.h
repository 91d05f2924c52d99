// The flags of all commands, each defined once, because several commands share flags.
#ifndef QUANTD_CLI_COMMANDS_FLAGS_H_
#define QUANTD_CLI_COMMANDS_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "commands/options.h"
#include "commands/pages.h"

namespace quantd::cli {

// Adds flags to a command of the parser and to its page, in groups.
class Flags {
 public:
  Flags(CLI::App* command, Options* options, CommandPage* page)
      : command_(command), o_(options), page_(page) {}

  Flags& Input(const char* what);
  Flags& Output();
  Flags& Choice();
  Flags& All();
  Flags& Granularity();
  Flags& Finding();
  Flags& Given();
  Flags& Calibrated();
  Flags& Rounding();
  Flags& Back();
  Flags& Embeddings();
  Flags& Inputs(const char* what);
  Flags& Calibrate();
  Flags& Convert();
  Flags& Against();
  Flags& Table(const std::vector<std::string>& orders);
  Flags& Bins();
  Flags& Engine();
  Flags& Computing();
  Flags& Address(const char* what);
  Flags& Service();
  Flags& Shell();
  Flags& Top();
  Flags& Printing();

 private:
  // The flags of TLS and tokens.
  void Access();
  // The following flags are in this group of the page.
  void Group(const char* title);
  // The flag that was added last.
  FlagPage& last() { return page_->groups[group_].flags.back(); }
  // Adds it to the page.
  CLI::Option* Add(CLI::Option* option, const char* argument, std::string text);
  CLI::Option* Text(const char* names, std::string* value, const char* argument, std::string text);
  // One of `choices`; in capitals, or with - for _, it is the same.
  CLI::Option* OneOf(const char* names, std::string* value, const char* argument, std::string text,
                     std::vector<std::string> choices);
  // `has_formats`: also the names of types with blocks and scales, such as mxfp8.
  void Type(std::string text, bool has_formats);
  CLI::Option* Number(const char* names, int64_t* value, int64_t least, int64_t most,
                      std::string text);
  void Axis(std::string text);
  void List(const char* names, std::vector<int64_t>* values, std::string text);
  void Switch(const char* names, bool* value, std::string text);
  // The variable of the environment that means the same.
  void Variable(CLI::Option* option, const char* name);

  CLI::App* const command_;
  Options* const o_;
  CommandPage* const page_;
  size_t group_ = 0;  // of the page
};

}  // namespace quantd::cli

#endif  // QUANTD_CLI_COMMANDS_FLAGS_H_
