#include "strop/gpu/gpu_backend.h"

#include <fstream>

#include "strop/codegen/kernel_body.h"
#include "strop/gpu/kernel.h"
#include "strop/gpu/ptx.h"

namespace strop::gpu {
namespace {

constexpr std::string_view kCompilesOnly =
    "backend gpu only compiles: strop compile --backend=gpu -o FILE.ptx writes what it makes of a program";

}  // namespace

GpuBackend::GpuBackend(std::string machine) : machine_(std::move(machine)) {
  target_.name = "gpu";
  target_.description = "NVIDIA " + machine_;
  target_.products_in_kernels = true;
  target_.supports = [this](const Instruction& i) { return Supports(i); };
  target_.can_fuse = [](const Instruction& producer, const Instruction&, const Instruction&) {
    // A thread has one element: what a row has in common would be computed by all of its threads.
    if (producer.op() == Op::Reduce) return Decision::No("a reduction is a kernel of its own");
    return Decision::Yes();
  };
}

Decision GpuBackend::Supports(const Instruction& instruction) const { return CanEmitKernel(instruction); }

Result<CompiledKernels> GpuBackend::Compile(std::span<const KernelSpec> specs,
                                            const KernelCompileOptions& options) const {
  CompiledKernels out;
  STROP_ASSIGN(const std::unique_ptr<PtxWriter> writer, PtxWriter::Create(machine_));
  size_t kernels = 0;
  for (const KernelSpec& spec : specs) {
    if (!Supports(*spec.instruction)) {
      out.kernels.push_back(InterpretKernel(spec));
      continue;
    }
    STROP_TRY(EmitKernel(spec, writer->builder(), KernelSymbol(spec.name(), kernels++)));
    const auto refuse = [](const HostCall&) -> Status { return Unimplemented(kCompilesOnly); };
    out.kernels.push_back({.body = HostStep{refuse}, .family = "thread", .tiles = TilesOf(spec)});
  }
  if (kernels == 0) return out;
  STROP_ASSIGN(std::string ptx, writer->Write(options.optimization_level));
  if (!options.dump_dir.empty()) std::ofstream(options.dump_dir + "/kernels.ptx", std::ios::binary) << ptx;
  out.code_bytes = static_cast<int64_t>(ptx.size());
  out.objects.push_back(std::make_shared<FinalObject>(std::move(ptx)));
  return out;
}

Result<std::unique_ptr<DeviceSet>> GpuBackend::OpenDevices(int count, ThreadPool& pool,
                                                           Allocator::Options memory) const {
  return Unimplemented(kCompilesOnly);
}

std::string GpuBackend::Describe() const {
  return StrCat("gpu: compiles PTX for ", target_.description, ", opens no device");
}

Result<std::unique_ptr<Backend>> GpuBackend::ForMachine(std::string_view name) const {
  STROP_TRY(PtxWriter::Create(std::string(name)).status());
  return std::make_unique<GpuBackend>(std::string(name));
}

}  // namespace strop::gpu
