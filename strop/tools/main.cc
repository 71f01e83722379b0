// The `strop` binary: sub-commands in one table.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "strop/base/version.h"
#include "strop/tools/command.h"

namespace strop::tools {
namespace {

constexpr Flag kCompileFlags[] = {
    {"-o", "OUT",
     "The file to write: NAME.aot for strop run, NAME.o for the linker or NAME.so to be opened (which takes a C++ "
     "compiler), each with NAME.h beside it, or, of backend gpu, "
     "NAME.ptx."},
    {"--target-cpu", "NAME",
     "The machine that it is for, which may be another one: x86-64-v3, skylake-avx512, znver4 and so on, or sm_90 of "
     "backend gpu."},
    {"--memory-report", "", "Says what memory a run of it needs; -o may then be left out."},
};
constexpr Flag kExplainFlags[] = {
    {"--all", "", "Lists in full."},
    {"--memory", "", "The memory alone: what is alive at the peak, and while each step runs."},
    {"--plan", "", "Prints the plan as well: kernels, steps and buffers."},
    {"--profile", "N", "Runs it so often with random arguments, and tells the time of each kernel in the best run."},
    {"--peak", "GFLOPS,GBPS", "What the machine can do at best; without it that is measured."},
    {"--target-cpu", "NAME", "Another machine that it is to be compiled for, as of strop compile; with --peak."},
    {"--link", "US,GBPS", "What a message between two devices takes: so long, and its bytes at this rate (1,50)."},
    {"--topology", "NAME",
     "Where the program's devices sit: ring:8, torus:16x16, mesh:16x16, switch:64 or hosts:512x8 (hosts and the "
     "devices "
     "of each)."},
    {"--network", "US,GBPS", "With hosts: the same as --link of a host's link to the others (10,25)."},
    {"--json", "", "Everything as JSON (docs/explain.md)."},
    {"--html", "", "Everything as a page that needs nothing but a browser."},
    {"-o", "OUT", "The file to write; .json and .html tell the format."},
};
constexpr Flag kParseFlags[] = {
    {"--verbose", "", "Names each module, and counts what it holds."},
};
constexpr Flag kRunFlags[] = {
    {"--in", "INPUTS", "A .npy file (one for each array, in order), an .npz, or a folder with args.json."},
    {"--npz", "INPUTS", "The same."},
    {"--random-inputs", "[SEED]", "Arguments from a seed: floats in [-1, 1), integers 0 to 7."},
    {"--out", "OUTPUTS", "Where results go: an .npz, an .npy (of one result) or a folder; without it they are shown."},
    {"--interpret", "", "Evaluates the program instead of compiling it."},
    {"--check", "", "The program must state what it expects (check.expect_*)."},
    {"--time", "", "Tells the time of compiling and running on stderr."},
    {"--runs", "N", "Runs it so often."},
    {"--compare", "", "Also evaluates the program as it came; a result that differs is an error."},
    {"--passes", "A,B", "Runs these passes first, as strop opt does."},
    {"--load", "LIBRARY", "A shared object with passes of your own; may be given several times."},
    {"--max-loop-iterations", "N", "With --interpret: a loop that makes more trips is an error."},
};
constexpr Flag kOptFlags[] = {
    {"--passes", "A,B", "These passes, in this order; XLA's names of them are known too (--list-passes)."},
    {"--load", "LIBRARY", "A shared object with passes of your own; may be given several times."},
    {"--disable-pass", "A,B", "Without these passes."},
    {"--disable-rule", "A,B", "Without these rules of simplify."},
    {"--rule-limit", "N", "Stops after N rewrites, for bisecting."},
    {"--print-changed", "", "Prints the module on stderr after each pass that changed it."},
    {"--print-after-all", "", "Prints the module on stderr after each pass, changed or not."},
    {"--compare", "[SEED]",
     "Evaluates the program before and after on arguments from a seed; a result that differs is an error."},
    {"--verify-each", "", "Verifies after each pass (always so with --passes)."},
    {"--timing", "", "Tells the time of each pass on stderr."},
    {"--list-passes", "", "Lists the passes, those of --load included, and XLA's names; no file is read."},
    {"--list-rules", "", "Lists the rules of simplify; no file is read."},
    {"--explain", "", "Tells on stderr what the rules did and what passes decided."},
    {"--schedule", "", "Then orders the instructions for little memory; without --passes that alone."},
    {"--stats", "",
     "Instead of the module, counts as JSON: instructions that do work, kernels, bytes that they read and write; as "
     "given, after the passes, and after fusion."},
};
constexpr Flag kDiffFlags[] = {
    {"--context", "N", "Shows N unchanged instructions around each difference (2)."},
    {"--json", "", "Tells everything as JSON."},
};
constexpr Flag kReduceFlags[] = {
    {"--check", "CMD",
     "The command that fails on the program; it gets the file of a smaller one as its last argument. Kept is what "
     "gives "
     "the same exit status; 125 says that it cannot judge."},
    {"--interesting", "CMD", "The other way round, as of creduce: a command that succeeds on the program."},
    {"--slow", "SECONDS", "What is looked for is that the command of --check takes so long, whatever its status."},
    {"-j", "N", "Tries N smaller programs at once (1)."},
    {"-o", "OUT", "The file to write; without it the program goes to standard output."},
    {"--max-checks", "N", "Stops after N smaller programs were tried (2000)."},
};
constexpr Flag kReplayFlags[] = {
    {"--record", "DIR", "Compiles each program and writes its plan there."},
    {"--check", "DIR", "Compiles each program and compares its plan with the one that was written there."},
    {"-j", "N", "Compiles N programs at once (1)."},
};
constexpr Flag kTranslateFlags[] = {
    {"-o", "OUT", "The file to write; without --to its ending tells the format."},
    {"--to", "FORMAT",
     "hlo, stablehlo (of straight-line HLO), mlir or portable (artifact; both of a program that came as MLIR), proto, "
     "dot or svg."},
    {"--short", "", "HLO text without % and signatures."},
    {"--print-operand-shapes", "", "HLO text with the shape of each operand."},
    {"--no-metadata", "", "HLO text without metadata."},
    {"--no-large-constants", "", "HLO text with {...} for large constants."},
    {"--query", "PATH", "Prints one value: name, instruction_count, computation_count, backend_config.KEY.KEY, ..."},
    {"--function", "NAME", "The function of an MLIR module to translate."},
    {"--target", "RELEASE",
     "The oldest StableHLO release that has to read a portable artifact: 1.0.0 to the newest, the default."},
};
constexpr Flag kVizFlags[] = {
    {"-o", "OUT",
     "An .html page (boxes that open, search, costs, modules side by side; needs nothing but a browser), an .svg "
     "(needs "
     "Graphviz) or a .dot file; without it SVG goes to standard output."},
    {"--passes", "A,B", "The page also shows the module after each of these passes that changed it."},
    {"--compile", "", "The same, with the passes that compiling runs."},
};

constexpr Command kCommands[] = {
    {"check", "FILE...", "Reads and verifies programs; says what is wrong, and where.", {}, &RunCheck},
    {"compile", "FILE",
     "Compiles a program ahead of time, for strop run or to be linked into a program (examples/aot).", kCompileFlags,
     &RunCompile},
    {"devices", "", "Lists the backends of this build and what they found on this machine.", {}, &RunDevices},
    {"diff", "WAS IS",
     "Says what two programs do not have in common, where two compilations (folders of dumps) first differ, or what "
     "changed "
     "between two reports of explain --json.",
     kDiffFlags, &RunDiffCommand},
    {"explain", "FILE",
     "Says where time and memory go: kernels and their roofline, what was not fused, copied or interpreted, and why.",
     kExplainFlags, &RunExplain},
    {"parse", "FILE...", "Reads programs, and checks that their text is a fixpoint of printing and reading.",
     kParseFlags, &RunParse},
    {"run", "FILE", "Runs a program and shows, writes or checks its results.", kRunFlags, &RunRun},
    {"opt", "FILE", "Runs passes, by default those that compiling runs, and prints the module.", kOptFlags, &RunOpt},
    {"reduce", "FILE", "Makes a program smaller as long as a command fails on it with the same exit status.",
     kReduceFlags, &RunReduce},
    {"replay", "FILE...",
     "Records the plans of programs (or of all in a folder), or says which are no longer the same.", kReplayFlags,
     &RunReplay},
    {"translate", "FILE", "Writes a program as HLO text, proto or picture, or one value out of it.", kTranslateFlags,
     &RunTranslate},
    {"viz", "FILE...", "Draws a program.", kVizFlags, &RunViz},
};

// `--name=VALUE`, `--name[=VALUE]`, `--name`, `-o VALUE`
std::string Spelled(const Flag& flag) {
  const bool optional = !flag.value.empty() && flag.value[0] == '[';
  if (optional) return StrCat(flag.name, "[=", flag.value.substr(1));
  return StrCat(flag.name, flag.value.empty() ? "" : flag.name[1] == '-' ? "=" : " ", flag.value);
}

std::string Help() {
  std::string out = "usage: strop COMMAND [FLAGS] FILE\n\n";
  for (const Command& c : kCommands) {
    std::string name(c.name);
    name.resize(10, ' ');
    StrAppend(out, "  ", name, c.sentence, "\n");
  }
  StrAppend(out,
            "\nPrograms are HLO text or protos, or StableHLO text or bytecode; - is standard input.\n"
            "`strop COMMAND --help` lists its flags; `strop --version` says which Strop this is.\n"
            "Exit code: 0 done, 1 failed, 2 the command line or the program is wrong.\n");
  return out;
}

std::string HelpOf(const Command& c) {
  std::string out = StrCat("usage: strop ", c.name, c.flags.empty() ? "" : " [FLAGS]", c.files.empty() ? "" : " ",
                           c.files, "\n", c.sentence, "\n\n");
  auto line = [&](std::string name, std::string_view sentence) {
    if (name.size() < 26) name.resize(26, ' ');
    StrAppend(out, "  ", name, " ", sentence, "\n");
  };
  for (const Flag& flag : c.flags) line(Spelled(flag), flag.sentence);
  if (!c.flags.empty()) out += "\n";
  StrAppend(out, "For all commands (and the environment: docs/options.md); --platform is another name of --backend:\n");
  for (const OptionFlag& option : OptionFlags()) line(option.flag, option.sentence);
  return out;
}

// The name that XLA's own tools have for it.
constexpr std::string_view kBackend = "--backend", kPlatform = "--platform";

// The words behind the sub-command.
struct Words {
  std::vector<std::string> renamed;  // owns what `words` refers to
  std::vector<std::string_view> words;

  Words(int argc, char** argv) {
    renamed.reserve(static_cast<size_t>(argc));
    for (int i = 2; i < argc; ++i) {
      std::string_view word = argv[i];
      const std::string_view name = word.substr(0, word.find('='));
      if (name == kPlatform) word = renamed.emplace_back(StrCat(kBackend, word.substr(name.size())));
      words.push_back(word);
    }
  }
};

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
    std::printf("strop %s\n", kVersion);
    return 0;
  }
  std::vector<std::string_view> names;
  for (const Command& command : kCommands) {
    names.push_back(command.name);
    if (command.name != name) continue;
    Words given(argc, argv);
    std::vector<std::string_view>& words = given.words;
    if (std::find_if(words.begin(), words.end(), [](auto w) { return w == "--help" || w == "-h"; }) != words.end()) {
      std::fputs(HelpOf(command).c_str(), stdout);
      return 0;
    }
    Result<Options> options = OptionsFromEnvironment();
    if (!options.ok()) return Fail(options.status());
    if (Status s = TakeOptions(*options, words); !s.ok()) return Fail(s);
    // Whoever logs, allocates and makes the process's threads asks the environment; no other thread runs yet.
    setenv("STROP_LOG", StrCat(options->log).c_str(), /*overwrite=*/1);
    setenv("STROP_GUARD", StrCat(options->guard).c_str(), /*overwrite=*/1);
    setenv("STROP_NUM_THREADS", StrCat(options->num_threads).c_str(), /*overwrite=*/1);
    Arguments arguments(command.flags, *options, words);
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
