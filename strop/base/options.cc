#include "strop/base/options.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <variant>

#include "strop/base/xla_flags.h"

namespace strop {
namespace {

struct Row {
  std::string_view name;
  std::variant<int64_t Options::*, bool Options::*, std::string Options::*> field;
  int64_t low, high;  // of an INT
  std::string_view sentence;

  bool is_bool() const { return field.index() == 1; }
  std::string Variable() const;  // STROP_NUM_THREADS
  std::string Flag() const;      // --num-threads
  std::string Accepted() const;  // "a whole number from 0 to 3"
  Status Set(Options& options, std::string_view value) const;
};

constexpr Row kRows[] = {
#define INT(name, fallback, low, high, sentence) {#name, &Options::name, low, high, sentence},
#define BOOL(name, fallback, sentence) {#name, &Options::name, 0, 0, sentence},
#define TEXT(name, fallback, sentence) {#name, &Options::name, 0, 0, sentence},
#include "strop/base/options.def"
#undef INT
#undef BOOL
#undef TEXT
};

// Flags of XLA_FLAGS that mean the same here.
constexpr std::pair<std::string_view, std::string_view> kXlaFlags[] = {
    {"xla_dump_hlo_as_dot", "xla_dump_hlo_as_dot"},           {"xla_dump_hlo_as_html", "xla_dump_hlo_as_html"},
    {"xla_dump_hlo_as_proto", "xla_dump_hlo_as_proto"},       {"xla_dump_hlo_as_text", "xla_dump_hlo_as_text"},
    {"xla_dump_hlo_as_url", "xla_dump_hlo_as_url"},           {"xla_dump_hlo_module_re", "xla_dump_hlo_module_re"},
    {"xla_dump_hlo_pass_re", "xla_dump_hlo_pass_re"},         {"xla_dump_hlo_snapshots", "xla_dump_hlo_snapshots"},
    {"xla_dump_large_constants", "xla_dump_large_constants"}, {"xla_dump_to", "xla_dump_to"},
    {"xla_force_host_platform_device_count", "num_devices"},
};

std::string Row::Variable() const {
  std::string out = StrCat("STROP_", name);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

std::string Row::Flag() const {
  std::string out = StrCat("--", name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

std::string Row::Accepted() const {
  if (is_bool()) return "1 or 0, true or false, on or off, yes or no";
  if (field.index() == 2) return "text";
  return StrCat("a whole number from ", low, " to ", high);
}

std::optional<bool> ParseBool(std::string_view text) {
  for (std::string_view word : {"1", "true", "True", "on", "yes"})
    if (text == word) return true;
  for (std::string_view word : {"0", "false", "False", "off", "no"})
    if (text == word) return false;
  return std::nullopt;
}

Status Row::Set(Options& options, std::string_view value) const {
  Status refusal = InvalidArgument("'", CEscape(value), "' is not accepted: expected ", Accepted());
  if (is_bool()) {
    std::optional<bool> parsed = ParseBool(value);
    if (!parsed) return refusal;
    options.*std::get<1>(field) = *parsed;
  } else if (field.index() == 2) {
    options.*std::get<2>(field) = value;
  } else {
    std::optional<int64_t> parsed = ParseNumber<int64_t>(Trim(value));
    if (!parsed || *parsed < low || *parsed > high) return refusal;
    options.*std::get<0>(field) = *parsed;
  }
  return OkStatus();
}

const Row* FindRow(std::string_view name) {
  std::string wanted(name);
  std::replace(wanted.begin(), wanted.end(), '-', '_');
  const Row* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.name == wanted; });
  return row == std::end(kRows) ? nullptr : row;
}

std::string Fallback(const Row& row) {
  const Options defaults;
  return std::visit([&](auto field) { return StrCat(defaults.*field); }, row.field);
}

const char* ReadEnvironment(const char* variable) { return std::getenv(variable); }

}  // namespace

Status SetOption(Options& options, std::string_view name, std::string_view value, std::string_view source) {
  const Row* row = FindRow(name);
  if (row) {
    Status status = row->Set(options, value);
    return status.ok() ? status : InvalidArgument(source, ": ", status.message());
  }
  std::vector<std::string_view> names;
  for (const Row& known : kRows) names.push_back(known.name);
  std::string_view near = Nearest(name, names);
  if (near.empty()) return InvalidArgument(source, ": no option '", CEscape(name), "'; there are ", Join(names, ", "));
  return InvalidArgument(source, ": no option '", CEscape(name), "'; did you mean '", near, "'?");
}

bool HasOption(std::string_view name) { return FindRow(name) != nullptr; }

Result<Options> OptionsFromEnvironment(ReadVariable read) {
  if (!read) read = ReadEnvironment;
  Options options;
  if (const char* flags = read("XLA_FLAGS")) {
    for (std::string_view flag : Split(flags, ' ')) {
      if (!flag.starts_with("--xla_")) continue;
      const size_t equals = std::min(flag.find('='), flag.size());
      const std::string_view name = flag.substr(2, equals - 2);
      const std::string_view value = equals < flag.size() ? flag.substr(equals + 1) : "true";
      Status known = CheckXlaFlag(name, value);
      if (!known.ok()) return InvalidArgument("XLA_FLAGS ", CEscape(flag.substr(0, equals)), ": ", known.message());
      for (auto [xla_name, row] : kXlaFlags)
        if (name == xla_name) STROP_TRY(SetOption(options, row, value, StrCat("XLA_FLAGS --", name)));
    }
  }
  for (const Row& row : kRows) {
    std::string variable = row.Variable();
    const char* value = read(variable.c_str());
    if (value && *value) STROP_TRY(SetOption(options, row.name, value, variable));
  }
  return options;
}

std::vector<OptionFlag> OptionFlags() {
  std::vector<OptionFlag> flags;
  for (const Row& row : kRows) flags.push_back({row.Flag(), row.sentence});
  return flags;
}

Status TakeOptions(Options& options, std::vector<std::string_view>& arguments) {
  std::vector<std::string_view> rest;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string_view argument = arguments[i];
    size_t equals = std::min(argument.find('='), argument.size());
    std::string_view flag = argument.substr(0, equals);
    const Row* row = flag.substr(0, 2) == "--" ? FindRow(flag.substr(2)) : nullptr;
    if (!row) {
      rest.push_back(argument);
    } else if (equals < argument.size()) {
      STROP_TRY(SetOption(options, row->name, argument.substr(equals + 1), flag));
    } else if (row->is_bool()) {
      STROP_TRY(SetOption(options, row->name, "1", flag));
    } else if (i + 1 < arguments.size() && arguments[i + 1].substr(0, 2) != "--") {
      STROP_TRY(SetOption(options, row->name, arguments[++i], flag));
    } else {
      return InvalidArgument(flag, ": a value is missing: ", flag, "=VALUE, expected ", row->Accepted());
    }
  }
  arguments = std::move(rest);
  return OkStatus();
}

// Options that do not change what a compilation does.
constexpr std::string_view kElsewhere[] = {"log",        "backend", "platform_name", "num_devices", "xla_dump",
                                           "reproducer", "dump",    "cache",         "tensorflow",  "synchronous"};

std::vector<std::string> FlagsOf(const Options& options) {
  std::vector<std::string> flags;
  const Options defaults;
  for (const Row& row : kRows) {
    const auto starts = [&row](std::string_view word) { return row.name.starts_with(word); };
    const bool elsewhere = std::any_of(std::begin(kElsewhere), std::end(kElsewhere), starts);
    if (elsewhere) continue;
    std::visit(
        [&](auto field) {
          if (options.*field != defaults.*field) flags.push_back(StrCat(row.Flag(), "=", options.*field));
        },
        row.field);
  }
  return flags;
}

std::string OptionsMarkdown() {
  std::string out =
      "# Options\n\n"
      "Made from `strop/base/options.def` by `./dev bless`. Every option is a flag of the `strop` program, an "
      "environment variable, and a create\n"
      "option of the PJRT client under its plain name. A flag wins over the environment, the environment over the "
      "default.\n\n"
      "| option | variable | flag | default | accepted | meaning |\n|---|---|---|---|---|---|\n";
  for (const Row& row : kRows) {
    std::string fallback = Fallback(row);
    StrAppend(out, "| ", row.name, " | `", row.Variable(), "` | `", row.Flag(), "` | ",
              fallback.empty() ? "none" : fallback, " | ", row.Accepted(), " | ", row.sentence, " |\n");
  }
  StrAppend(out,
            "\nOf `XLA_FLAGS`, these are understood; XLA's others are checked (name and kind) and mean nothing here, "
            "and what does not begin with `--xla_` is left to whom it belongs:\n\n");
  for (auto [xla_name, name] : kXlaFlags) StrAppend(out, "- `--", xla_name, "=` sets `", name, "`\n");
  return out;
}

}  // namespace strop
