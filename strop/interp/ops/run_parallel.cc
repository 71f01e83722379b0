// interpreter.run_parallel: the programs are the called computations, row by row of the grid, followed by the infeed
// functions; {replicas = R, partitions = P, infeed = N} is in the text of the call. Operands and results are the
// processes' lists one after the other.
#include "strop/interp/grid.h"
#include "strop/interp/ops.h"
#include "strop/interp/ops/dictionary.h"

namespace strop::interp {

Result<Literal> EvalRunParallel(OpCall& call) {
  const std::string& text = call.attrs<CustomCallAttrs>().opaque;
  const InterpretOptions& options = call.evaluator.options();
  if (options.num_replicas * options.num_partitions != 1) return Unimplemented("run_parallel inside of run_parallel");
  STROP_ASSIGN(double replicas, NumberOr(text, "replicas", 1));
  STROP_ASSIGN(double partitions, NumberOr(text, "partitions", 1));
  STROP_ASSIGN(double infeed, NumberOr(text, "infeed", 0));
  const auto& called = call.instruction.called();
  if (!(replicas >= 1 && partitions >= 1 && infeed >= 0 &&
        replicas * partitions + infeed == static_cast<double>(called.size())))
    return InvalidArgument("run_parallel on a grid of ", replicas, " x ", partitions, " with ", infeed,
                           " infeed values names ", called.size(), " functions");
  GridRun run{static_cast<int64_t>(replicas), static_cast<int64_t>(partitions), {}, {}, {}};
  const size_t processes = called.size() - static_cast<size_t>(infeed);
  size_t next = 0;
  for (size_t i = 0; i < called.size(); ++i) {
    if (i >= processes) {
      run.infeed.push_back(called[i]);
      continue;
    }
    run.programs.push_back(called[i]);
    const size_t takes = static_cast<size_t>(called[i]->parameter_count());
    if (next + takes > call.operands.size())
      return InvalidArgument("run_parallel has ", call.operands.size(), " operands, fewer than its programs take");
    run.arguments.emplace_back(call.operands.begin() + static_cast<int64_t>(next),
                               call.operands.begin() + static_cast<int64_t>(next + takes));
    next += takes;
  }
  STROP_ASSIGN(std::vector<Literal> results, RunGrid(options, run, &call.evaluator.state().checks));
  std::vector<Literal> flat;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].shape().IsTuple())
      flat.push_back(std::move(results[i]));
    else
      for (Literal& element : results[i].mutable_elements()) flat.push_back(std::move(element));
  }
  if (!call.shape.IsTuple() && flat.size() == 1) return std::move(flat[0]);
  return Literal::Tuple(std::move(flat));
}

}  // namespace strop::interp
