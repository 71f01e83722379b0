// scatter and select-and-scatter with the usual combiners -> the kernel library.
#include <algorithm>
#include <cstring>

#include "strop/analysis/scalar_pattern.h"
#include "strop/cpu/kernels/scatter.h"
#include "strop/cpu/kernels/select_and_scatter.h"
#include "strop/cpu/library/library.h"

namespace strop::cpu {
namespace {

Result<CombineKind> CombineOf(const Computation& c) {
  std::optional<Combiner> combiner = MatchCombiner(c);
  if (combiner) {
    switch (combiner->op) {
      case Op::Parameter:
        if (combiner->parameter == 1) return CombineKind::kReplace;
        break;
      case Op::Add: return CombineKind::kAdd;
      case Op::Multiply: return CombineKind::kMultiply;
      case Op::Minimum: return CombineKind::kMinimum;
      case Op::Maximum: return CombineKind::kMaximum;
      case Op::And: return CombineKind::kAnd;
      case Op::Or: return CombineKind::kOr;
      default: break;
    }
  }
  return Unimplemented("combiner %", c.name(), " is none of add, multiply, min, max, and, or, replace");
}

bool Contains(const Dims& dims, int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }

Result<ScatterProblem> ScatterOf(const Instruction& i) {
  const ScatterAttrs& a = i.attrs<ScatterAttrs>();
  if (i.operand_count() != 3) return Unimplemented("scatter of several operands at once");
  const Shape& operand = i.operand(0)->shape();
  const Shape& indices = i.operand(1)->shape();
  const Shape& updates = i.operand(2)->shape();
  ScatterProblem p;
  p.type = operand.type();
  p.index_type = indices.type();
  STROP_ASSIGN(p.combine, CombineOf(*i.to_apply()));
  if (IsPred(p.type) && p.combine == CombineKind::kAdd) p.combine = CombineKind::kOr;
  if (IsPred(p.type) && p.combine == CombineKind::kMultiply) p.combine = CombineKind::kAnd;
  p.operand_dims = operand.dims().ToVector();
  const Int64Vector update_strides = updates.Strides(), index_strides = indices.Strides();
  // Dimensions of the indices without that of the index vector, in order, are the scatter dimensions of the updates.
  Dims index_batch;
  for (int64_t d = 0; d < indices.rank(); ++d)
    if (d != a.index_vector_dim) index_batch.push_back(d);
  size_t next = 0;
  for (int64_t d = 0; d < updates.rank(); ++d) {
    if (Contains(a.update_window_dims, d)) continue;
    p.scatter_dims.push_back(updates.dim(d));
    p.scatter_update_strides.push_back(update_strides[d]);
    p.scatter_index_strides.push_back(index_strides[index_batch[next++]]);
  }
  Dims window_operand;
  for (int64_t d = 0; d < operand.rank(); ++d)
    if (!Contains(a.inserted_window_dims, d) && !Contains(a.input_batching_dims, d)) window_operand.push_back(d);
  for (size_t n = 0; n < a.update_window_dims.size(); ++n) {
    p.window_dims.push_back(updates.dim(a.update_window_dims[n]));
    p.window_update_strides.push_back(update_strides[a.update_window_dims[n]]);
    p.window_operand_dims.push_back(window_operand[n]);
  }
  p.index_component_stride = a.index_vector_dim < indices.rank() ? index_strides[a.index_vector_dim] : 0;
  p.index_operand_dims = a.scatter_dims_to_operand_dims;
  for (size_t n = 0; n < a.input_batching_dims.size(); ++n) {
    const int64_t d = a.scatter_indices_batching_dims[n];
    p.batch_scatter_dims.push_back(std::find(index_batch.begin(), index_batch.end(), d) - index_batch.begin());
    p.batch_operand_dims.push_back(a.input_batching_dims[n]);
  }
  STROP_TRY(CheckScatter(p));
  return p;
}

Result<SelectAndScatterProblem> SelectAndScatterOf(const Instruction& i) {
  const Window& window = i.attrs<WindowAttrs>().window;
  const Shape& input = i.operand(0)->shape();
  const Shape& source = i.operand(1)->shape();
  SelectAndScatterProblem p;
  p.type = input.type();
  std::optional<CompareDirection> direction = MatchComparison(*i.called(0));
  if (!direction) return Unimplemented("select %", i.called(0)->name(), " is no plain comparison");
  switch (*direction) {
    case CompareDirection::Ge: p.select = SelectCompare::kGe; break;
    case CompareDirection::Gt: p.select = SelectCompare::kGt; break;
    case CompareDirection::Le: p.select = SelectCompare::kLe; break;
    case CompareDirection::Lt: p.select = SelectCompare::kLt; break;
    default: return Unimplemented("select by equality");
  }
  STROP_ASSIGN(p.combine, CombineOf(*i.called(1)));
  for (int64_t d = 0; d < input.rank(); ++d) {
    const WindowDim w = d < static_cast<int64_t>(window.dims.size()) ? window.dims[d] : WindowDim{};
    if (w.base_dilation != 1 || w.reversal) return Unimplemented("select-and-scatter with a dilated base");
    p.dims.push_back({input.dim(d), source.dim(d), w.size, w.stride, w.pad_low, w.window_dilation});
  }
  STROP_TRY(CheckSelectAndScatter(p));
  return p;
}

class ScatterTasks final : public TaskKernel {
 public:
  explicit ScatterTasks(ScatterProblem p) : p_(std::move(p)) {}
  void Run(void* const* args, int64_t, int64_t, void*) const override { RunScatter(p_, args[3], args[1], args[2]); }

 private:
  ScatterProblem p_;
};

class SelectAndScatterTasksKernel final : public TaskKernel {
 public:
  explicit SelectAndScatterTasksKernel(SelectAndScatterProblem p) : p_(std::move(p)) {}
  void Run(void* const* args, int64_t begin, int64_t end, void*) const override {
    RunSelectAndScatter(p_, args[0], args[1], args[2], args[3], begin, end);
  }

 private:
  SelectAndScatterProblem p_;
};

CompiledKernel KernelOf(std::shared_ptr<const TaskKernel> tasks, int64_t num_tasks) {
  KernelStep step;
  step.library = std::move(tasks);
  step.num_tasks = num_tasks;
  CompiledKernel kernel;
  kernel.body = std::move(step);
  return kernel;
}

}  // namespace

Decision SupportsScatter(const Instruction& scatter) {
  auto problem = ScatterOf(scatter);
  return problem.ok() ? Decision::Yes() : Decision::No(problem.status().message());
}

// The plan sees to it that the result is the operand's memory.
Result<CompiledKernel> MakeScatter(const KernelSpec& spec) {
  STROP_ASSIGN(ScatterProblem problem, ScatterOf(*spec.instruction));
  if (spec.in_place.empty() || spec.in_place[0] != 0) return Internal("scatter %", spec.name(), " is not in place");
  return KernelOf(std::make_shared<ScatterTasks>(std::move(problem)), 1);
}

Decision SupportsSelectAndScatter(const Instruction& i) {
  auto problem = SelectAndScatterOf(i);
  return problem.ok() ? Decision::Yes() : Decision::No(problem.status().message());
}

Result<CompiledKernel> MakeSelectAndScatter(const KernelSpec& spec) {
  STROP_ASSIGN(SelectAndScatterProblem problem, SelectAndScatterOf(*spec.instruction));
  const int64_t tasks = SelectAndScatterTasks(problem);
  return KernelOf(std::make_shared<SelectAndScatterTasksKernel>(std::move(problem)), tasks);
}

}  // namespace strop::cpu
