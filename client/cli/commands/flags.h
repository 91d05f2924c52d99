// The flags of all commands, each defined once, because several commands share flags.
#ifndef QUANTD_CLI_COMMANDS_FLAGS_H_
#define QUANTD_CLI_COMMANDS_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "commands/options.h"

namespace quantd::cli {

// Adds flags to a command, in groups. The texts are printed by `quantctl COMMAND --help`.
class Flags {
 public:
  Flags(CLI::App* command, Options* options) : command_(command), o_(options) {}

  Flags& Input(const char* what);
  Flags& Output();
  Flags& Choice();
  Flags& All();
  Flags& Granularity();
  Flags& Finding();
  Flags& Given();
  Flags& Rounding();
  Flags& Back();
  Flags& Embeddings();
  Flags& Inputs(const char* what);
  Flags& Calibrate();
  Flags& Convert();
  Flags& Bins();
  Flags& Engine();
  Flags& Computing();
  Flags& Address(const char* what);
  Flags& Printing();
  Flags& Top();

  CLI::Option* Text(const std::string& name, std::string* value, const std::string& what);

 private:
  void Access();
  void List(const char* name, std::vector<int64_t>* values, const char* what);

  CLI::App* const command_;
  Options* const o_;
};

}  // namespace quantd::cli

#endif  // QUANTD_CLI_COMMANDS_FLAGS_H_
