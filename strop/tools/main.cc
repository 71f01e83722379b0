// The `strop` binary: sub-commands in one table.
#include <cstdio>

#include "strop/tools/command.h"

namespace strop::tools {
namespace {

constexpr Command kCommands[] = {
    {"check", "FILE...", "Reads and verifies programs; says what is wrong, and where.", &RunCheck},
    {"devices", "", "Lists the backends of this build and what they found on this machine.", &RunDevices},
    {"explain", "FILE [--backend=NAME]",
     "Says what was interpreted, not fused or copied, and why; cost and time of each phase.", &RunExplain},
    {"parse", "FILE... [--verbose]",
     "Reads programs, and checks that their text is a fixpoint of printing and reading.", &RunParse},
    {"run",
     "FILE [--interpret | --backend=NAME] [--in=INPUTS] [--random-inputs[=SEED]] [--out=OUTPUTS] [--check] [--time] "
     "[--runs=N]",
     "Runs a program; inputs and outputs are .npy or .npz files or folders, checks in the program are checked.",
     &RunRun},
    {"opt",
     "FILE [--passes=a,b] [--disable-pass=a] [--disable-rule=r] [--rule-limit=N] [--print-changed] [--timing] "
     "[--explain]",
     "Runs passes, by default those that compiling runs, and prints the module.", &RunOpt},
    {"translate",
     "FILE [-o OUT] [--to=hlo|mlir|proto|dot|svg] [--short | --print-operand-shapes] [--no-metadata] "
     "[--no-large-constants] "
     "[--query=PATH] [--function=NAME]",
     "Writes a program as HLO text, proto or picture, or one value out of it (backend_config.KEY.KEY, "
     "instruction_count).",
     &RunTranslate},
    {"viz", "FILE [-o OUT.svg|OUT.dot]", "Draws a program (SVG needs Graphviz).", &RunViz},
};

std::string Help() {
  std::string out = "usage: strop COMMAND [ARGUMENTS]\n\n";
  for (const Command& c : kCommands) StrAppend(out, "  strop ", c.name, " ", c.usage, "\n      ", c.sentence, "\n");
  StrAppend(out,
            "\nPrograms are HLO text or protos, or StableHLO text or bytecode; - is standard input.\n"
            "Options that hold for all commands (and their environment variables): docs/options.md\n");
  return out;
}

int Fail(const Status& status) {
  std::fprintf(stderr, "strop: %s\n", status.ToString().c_str());
  return status.code() == StatusCode::kInvalidArgument || status.code() == StatusCode::kNotFound ? 2 : 1;
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs(Help().c_str(), stderr);
    return 2;
  }
  std::string_view name = argv[1];
  if (name == "help" || name == "--help" || name == "-h") {
    std::fputs(Help().c_str(), stdout);
    return 0;
  }
  if (name == "--version") {
    std::puts("strop 0.1.0");
    return 0;
  }
  std::vector<std::string_view> names;
  for (const Command& command : kCommands) {
    names.push_back(command.name);
    if (command.name != name) continue;
    std::vector<std::string_view> words(argv + 2, argv + argc);
    for (std::string_view w : words)
      if (w == "--help") {
        std::printf("strop %s %s\n%s\n", command.name.data(), command.usage.data(), command.sentence.data());
        return 0;
      }
    Result<Options> options = OptionsFromEnvironment();
    if (!options.ok()) return Fail(options.status());
    if (Status s = TakeOptions(*options, words); !s.ok()) return Fail(s);
    Arguments arguments(*options, std::move(words));
    Status status = command.run(arguments);
    return status.ok() ? 0 : Fail(status);
  }
  std::string_view near = Nearest(name, names);
  if (!near.empty()) return Fail(InvalidArgument("no command \"", name, "\"; did you mean \"", near, "\"?"));
  return Fail(InvalidArgument("no command \"", name, "\"; there are: ", Join(names, ", ")));
}

}  // namespace
}  // namespace strop::tools

int main(int argc, char** argv) { return strop::tools::Main(argc, argv); }
