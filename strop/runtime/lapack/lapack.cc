#include "strop/runtime/lapack/lapack.h"

#include <optional>
#include <string_view>

#include "strop/runtime/lapack/routines.h"

namespace strop {
namespace lapack {
namespace {

// The name behind the letter of the type, for real and for complex elements.
struct Row {
  std::string_view real, complex;
  Makers (*makers)();
  bool needs_library = true;
};
constexpr Row kRows[] = {
    {"getrf", "getrf", &Getrf},
    {"potrf", "potrf", &Potrf},
    {"geqrf", "geqrf", &Geqrf},
    {"geqp3", "geqp3", &Geqp3},
    {"orgqr", "ungqr", &Orgqr},
    {"ormqr", "unmqr", &Ormqr},
    {"gesdd", "gesdd", &Gesdd},
    {"gesvd", "gesvd", &Gesvd},
    {"syevd", "heevd", &Syevd},
    {"geev", "geev", &Geev},
    {"gees", "gees", &Gees},
    {"gehrd", "gehrd", &Gehrd},
    {"sytrd", "hetrd", &Sytrd},
    {"trsm", "trsm", &Trsm},
    {"gtsv", "gtsv", &Gtsv},
    {"getrf_by_rows", "getrf_by_rows", &GetrfByRows},
    {"getrf_rows", "", &GetrfRows, false},
    {"gesv_rows", "", &GesvRows, false},
    {"potrf_rows", "", &PotrfRows, false},
    {"cholesky_rows", "", &CholeskyRows, false},
    {"posv_rows", "", &PosvRows, false},
    {"geqrf_rows", "", &GeqrfRows, false},
    {"orgqr_rows", "", &OrgqrRows, false},
    {"syevd_rows", "", &SyevdRows, false},
    {"gesdd_rows", "", &GesddRows, false},
};

struct Target {
  std::string routine;  // dgetrf
  MakeRoutine make = nullptr;
  bool needs_library = true;
};

std::optional<Target> TargetOf(std::string_view name) {
  constexpr std::string_view kPrefix = "lapack_", kSuffix = "_ffi", kLetters = "sdcz";
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) || name.size() <= kPrefix.size() + kSuffix.size())
    return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  const size_t type = kLetters.find(name[0]);
  if (type == std::string_view::npos) return std::nullopt;
  for (const Row& row : kRows)
    if (name.substr(1) == (type < 2 ? row.real : row.complex))
      return Target{std::string(name), row.makers().of[type], row.needs_library};
  return std::nullopt;
}

// A call that one thread computes.
class SingleTask final : public TaskKernel {
 public:
  SingleTask(std::shared_ptr<const Call> call, const CustomCallSite& site)
      : call_(std::move(call)), operands_(site.operands.size()), results_(site.results.size()) {}
  void Run(const TaskCall& task, int64_t, int64_t, void* scratch) const override {
    static const RunArgs kNoRun{};  // of which nothing is asked
    call_->RunSingleTask({std::span(task.args, operands_), std::span(task.args + operands_, results_), kNoRun},
                         scratch);
  }

 private:
  std::shared_ptr<const Call> call_;
  const size_t operands_, results_;
};

Result<std::shared_ptr<Call>> Bind(const CustomCallSite& site, const std::string& library) {
  const std::optional<Target> target = TargetOf(site.target);
  if (!target) return Internal(site.target, " is no routine of LAPACK");
  Result<const Library*> opened = nullptr;
  if (target->needs_library) opened = Library::Open(library);
  if (!opened.ok())
    return Status(opened.status().code(), StrCat(site.target, " needs LAPACK: ", opened.status().message()));
  Result<std::unique_ptr<FfiAttributes>> attributes = FfiAttributes::Parse(site.opaque);
  if (!attributes.ok())
    return std::move(attributes).status().Note(StrCat("in the attributes of custom call ", site.target));
  Site reader(site, (*attributes)->attrs(), target->routine, *opened);
  std::unique_ptr<Routine> routine = target->make();
  STROP_TRY(routine->Bind(reader));
  return std::make_shared<Call>(std::move(routine), site, reader.batch(), *opened);
}

}  // namespace
}  // namespace lapack

bool IsLapackCall(const CustomCallSite& site) {
  return site.api == CustomCallApi::kTypedFfi && lapack::TargetOf(site.target).has_value();
}

Result<std::shared_ptr<CustomCall>> BindLapack(const CustomCallSite& site, const std::string& library) {
  STROP_ASSIGN(std::shared_ptr<CustomCall> call, lapack::Bind(site, library));
  return call;
}

Result<KernelStep> LapackKernel(const CustomCallSite& site) {
  const std::optional<lapack::Target> target = lapack::TargetOf(site.target);
  if (!target || target->needs_library) return Unimplemented(site.target, " is not computed without a library");
  STROP_ASSIGN(std::shared_ptr<lapack::Call> call, lapack::Bind(site, ""));
  if (!call->IsSingleTask()) return Unimplemented(site.target, " is worth several tasks, or none");
  KernelStep step;
  step.scratch_bytes = static_cast<int64_t>(call->scratch_bytes() + lapack::Scratch::kAlignment);
  step.library = std::make_shared<lapack::SingleTask>(std::move(call), site);
  return step;
}

}  // namespace strop
