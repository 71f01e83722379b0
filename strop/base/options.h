// Options: everything a user can set, from one table (options.def).
//
// A value comes from the flag or create option if there is one, else from the environment, else from the table. There
// is no global: whoever starts (the PJRT client, the strop program) reads the environment once and hands the struct
// down by const reference.
//
// XLA_FLAGS is read as well, for the flags that mean the same here (--xla_dump_to and what belongs to it,
// --xla_force_host_platform_device_count); XLA's others are checked only, and the rest is left to whom it belongs. A
// STROP_ variable wins over it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strop/base/status.h"

namespace strop {

struct Options {
#define INT(name, fallback, low, high, sentence) int64_t name = fallback;
#define BOOL(name, fallback, sentence) bool name = fallback;
#define TEXT(name, fallback, sentence) std::string name = fallback;
#include "strop/base/options.def"
#undef INT
#undef BOOL
#undef TEXT
};

// Sets one option from text. `source` is how the user wrote it ("--num-threads", "STROP_NUM_THREADS") and opens the
// message of an error. Dashes in the name count as underscores; an unknown name gets "did you mean".
Status SetOption(Options& options, std::string_view name, std::string_view value, std::string_view source);

// Is there a row of that name? Dashes count as underscores.
bool HasOption(std::string_view name);
// Options as the environment sets them. `read` stands for getenv in tests.
using ReadVariable = const char* (*)(const char* variable);
Result<Options> OptionsFromEnvironment(ReadVariable read = nullptr);

// Sets options from --name=value or --name value and, for a BOOL, --name; such arguments are taken out, all others stay
// in order.
Status TakeOptions(Options& options, std::vector<std::string_view>& arguments);

// "--num-threads" and what it says, row by row.
struct OptionFlag {
  std::string flag;
  std::string_view sentence;
};
std::vector<OptionFlag> OptionFlags();

// "--num-threads=4": the options that differ from their defaults and matter to what a program computes and how it is
// compiled; not where dumps go and what is told.
std::vector<std::string> FlagsOf(const Options& options);

// docs/options.md.
std::string OptionsMarkdown();

}  // namespace strop
