"""PyTorch/XLA's own tests on Strop and on its own CPU client: what passes there and fails here.

    python tests/frameworks/torch_xla_suites.py CHECKOUT --out=FOLDER [--devices=STROP,CPU] [--files=REGEX] [--again]

CHECKOUT is a checkout of pytorch/xla at the tag of the wheel that is installed; Python is one with torch, torch_xla, torchvision, pytest, expecttest
and parameterized (jax too, which some of the files import). Each file runs in a process of its own. Reports stay in FOLDER: what is there is not run
again without --again. Ends with 1 if a test that passes on the CPU client does not pass on Strop. Not a test of ctest's: it takes an hour.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

import interpreter

# What upstream's run_tests.sh runs on its CPU client, less what only other devices run (TPU, Neuron), with the variables it sets.
FILES = """
test_operations.py
test_operations.py XLA_USE_EAGER_DEBUG_MODE=1
test_operations.py XLA_DISABLE_FUNCTIONALIZATION=1
test_operations.py XLA_EXPERIMENTAL=nonzero:masked_select:masked_scatter:nms
ds/test_dynamic_shapes.py XLA_EXPERIMENTAL=nonzero:masked_select:masked_scatter:nms
ds/test_dynamic_shape_models.py XLA_EXPERIMENTAL=nonzero:masked_select:masked_scatter:nms
test_ops_error_message.py
test_ops_error_message_functionalization_disabled.py
test_xla_graph_execution.py
test_xla_graph_execution.py PT_XLA_DEBUG_LEVEL=2
debug_tool/test_pt_xla_debug.py PT_XLA_DEBUG=1 PT_XLA_DEBUG_FILE=/tmp/pt_xla_debug.txt
debug_tool/test_pt_xla_debug.py PT_XLA_DEBUG_LEVEL=1 PT_XLA_DEBUG_FILE=/tmp/pt_xla_debug.txt
test_async_closures.py
test_hlo_metadata.py
test_profiler_session.py
pjrt/test_runtime.py
pjrt/test_runtime_multi_cpu.py
pjrt/test_ddp.py
pjrt/test_mesh_service.py
pjrt/test_dtypes.py
pjrt/test_metrics.py
pjrt/test_profiler.py
test_python_ops.py
test_metrics.py
test_metrics.py XLA_METRICS_FILE=/tmp/xla_metrics.txt
test_deprecation.py
test_data_type.py
test_fp8.py
test_env_var_mapper.py XLA_IR_DEBUG=1
test_env_var_mapper.py XLA_HLO_DEBUG=1
stablehlo/test_stablehlo_save_load.py XLA_HLO_DEBUG=1
test_while_loop.py
scan/test_scan.py
scan/test_scan_spmd.py
scan/test_scan_layers.py
scan/test_scan_debug.py XLA_HLO_DEBUG=1
test_gru.py
test_as_stride_use_slice.py
test_placeholder.py
test_autocast.py
test_autocast_xla.py
eager/test_eager.py
eager/test_eager_with_xla_compile.py
eager/test_eager_with_torch_compile.py
eager/test_eager_all_reduce_in_place.py
eager/test_eager_spmd.py
test_callback.py
test_callback.py XLA_USE_SPMD=1
test_assume_pure.py
test_assume_pure_spmd.py
test_assume_pure_torch.py
test_dynamic_shapes_detector.py
test_inplace_update.py
test_mat_mul_precision.py
test_mat_mul_precision_get_and_set.py
stablehlo/test_exports.py
stablehlo/test_export_fx_passes.py
stablehlo/test_implicit_broadcasting.py
stablehlo/test_composite.py
stablehlo/test_pt2e_qdq.py
stablehlo/test_stablehlo_custom_call.py
stablehlo/test_stablehlo_inference.py XLA_HLO_DEBUG=1
stablehlo/test_stablehlo_compile.py XLA_STABLEHLO_COMPILE=1
stablehlo/test_unbounded_dynamism.py
stablehlo/test_mlir_debuginfo.py
quantized_ops/test_quantized_matmul.py
quantized_ops/test_dot_general.py
spmd/test_xla_sharding.py
spmd/test_xla_sharding_hlo.py
spmd/test_xla_virtual_device.py
spmd/test_dynamo_spmd.py
spmd/test_spmd_debugging.py
spmd/test_xla_distributed_checkpoint.py
spmd/test_xla_spmd_python_api_interaction.py
spmd/test_dtensor_integration.py
spmd/test_dtensor_integration2.py
spmd/test_dtensor_convert_mesh.py DEVICES=4
spmd/test_xla_dtensor_spec_conversion.py DEVICES=4
spmd/test_dtensor_redistribute.py DEVICES=4
spmd/test_xla_dtensor_placements.py DEVICES=4
spmd/test_fsdp_v2.py DEVICES=4
spmd/test_xla_sharding.py DEVICES=4
spmd/test_xla_auto_sharding.py
spmd/test_spmd_parameter_wrapping.py
spmd/test_mp_input_sharding.py
spmd/test_spmd_graph_dump.py XLA_SAVE_TENSORS_FMT=hlo XLA_SAVE_TENSORS_FILE=/tmp/save1.hlo
spmd/test_spmd_lowering_context.py XLA_SAVE_TENSORS_FMT=hlo XLA_SAVE_TENSORS_FILE=/tmp/save2.hlo
test_gradient_accumulation.py
test_operations_hlo.py
test_input_output_aliases.py
test_input_output_aliases.py XLA_DISABLE_FUNCTIONALIZATION=1
test_torch_distributed_xla_backend.py
test_torch_distributed_fsdp_frozen_weight.py
test_compilation_cache_utils.py
test_persistent_cache.py
test_devices.py
test_manual_xla_registration.py
test_core_aten_ops.py
test_user_computation_debug_cache.py XLA_IR_DEBUG=1 XLA_HLO_DEBUG=1
test_syncfree_optimizers.py
test_zero1.py
test_fsdp_auto_wrap.py
test_grad_checkpoint.py
dynamo/test_dynamo_integrations_util.py
dynamo/test_dynamo_aliasing.py
dynamo/test_dynamo.py
dynamo/test_dynamo_dynamic_shape.py
dynamo/test_bridge.py
dynamo/test_num_output.py
dynamo/test_none_remover.py
dynamo/test_graph_input_matcher.py
dynamo/test_dynamo_config.py
dynamo/test_dynamo_graph_dump.py XLA_SAVE_TENSORS_FMT=text XLA_SAVE_TENSORS_FILE=/tmp/save3.ir
dynamo/test_traceable_collectives.py
torch_distributed/test_torch_distributed_all_gather_xla_backend.py
torch_distributed/test_torch_distributed_all_reduce_xla_backend.py
torch_distributed/test_torch_distributed_bucketed_all_reduce_xla_backend.py
torch_distributed/test_torch_distributed_multi_all_reduce_xla_backend.py
torch_distributed/test_torch_distributed_reduce_scatter_xla_backend.py
""".split("\n")

# Programs of their own: they pass if they end with 0.
PROGRAMS = """
test_train_mp_mnist.py --fake_data --num_epochs=1
test_train_mp_mnist_amp.py --fake_data --num_epochs=1
test_train_mp_mnist_zero1.py --fake_data --num_epochs=1
test_train_mp_mnist_fsdp_with_ckpt.py --fake_data --num_epochs=1 --batch_size=512
test_mp_replication.py
test_mp_all_to_all.py
test_mp_all_gather.py
test_mp_reduce_scatter.py
test_mp_distributed_mm.py
test_mp_save.py
test_mp_mesh_reduce.py
test_mp_sync_batch_norm.py
test_mp_collective_permute.py
test_mp_rendezvous.py
test_mp_early_exit.py
spmd/test_train_spmd_linear_model.py --skip-gradient-checkpointing
""".split("\n")
PASSED, SKIPPED, FAILED = "passed", "skipped", "failed"


def environment(device, site, checkout, name, variables):
    """What a process sees: the device, the package as if it were installed, and what lies beside the file."""
    count = variables.pop("DEVICES", "1")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PJRT_", "XLA_", "PT_XLA_"))}
    path = [str(interpreter.SOURCE / "python"), site, str((checkout / "test" / name).parent), str(checkout / "test"), str(checkout / "examples"), kept.get("PYTHONPATH", "")]
    return dict(kept, PYTHONPATH=os.pathsep.join(p for p in path if p), PJRT_DEVICE=device, STROP_NUM_DEVICES=count, CPU_NUM_DEVICES=count, **variables)


def run(line, device, arguments, site):
    """Runs a file or a program unless its report is there; returns {test: outcome}"""
    name, *rest = line.split()
    stem = re.sub(r"[^\w.]", "_", line)
    report, log = (arguments.out / device / (stem + end) for end in (".xml", ".log"))
    program = line in PROGRAMS
    if arguments.again or not log.exists():
        report.unlink(missing_ok=True)
        variables = {} if program else dict(v.split("=", 1) for v in rest)
        command = [sys.executable, name, *rest] if program else [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", name]
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w") as output:
            try:
                code = subprocess.run(command, env=environment(device, site, arguments.checkout, name, variables), cwd=arguments.checkout / "test", stdout=output,
                                      stderr=subprocess.STDOUT, timeout=arguments.timeout).returncode
            except subprocess.TimeoutExpired:
                code = "none: stopped"
            output.write(f"\nexit code {code}\n")
    if program:
        return {line: PASSED if log.read_text().endswith("exit code 0\n") else FAILED}
    return outcomes(report)


def outcomes(report):
    """{test: outcome} of a report of pytest's; empty if the process ended before it was written"""
    if not report.exists():
        return {}
    found = {}
    for case in xml.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        name = f"{case.get('classname')}.{case.get('name')}"
        found[name] = FAILED if kinds & {"failure", "error"} else SKIPPED if "skipped" in kinds else found.get(name, PASSED)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=lambda p: Path(p).resolve())
    parser.add_argument("--out", type=lambda p: Path(p).resolve(), required=True)
    parser.add_argument("--devices", default="STROP,CPU")
    parser.add_argument("--files", default="")
    parser.add_argument("--timeout", type=float, default=1200)
    parser.add_argument("--again", action="store_true")
    arguments = parser.parse_args()
    total, bad = dict.fromkeys(("passes", "fails", "needed"), 0), []
    with tempfile.TemporaryDirectory() as site:
        interpreter.installed(site)
        for line in filter(None, FILES + PROGRAMS):
            if not re.search(arguments.files, line):
                continue
            found = {device: run(line, device, arguments, site) for device in arguments.devices.split(",")}
            counts = {d: [list(f.values()).count(k) for k in (PASSED, FAILED, SKIPPED)] if f else "no report" for d, f in found.items()}
            print(line, *(f"{d} {c}" for d, c in counts.items()), sep="  ", flush=True)
            strop, cpu = found.get("STROP", {}), found.get("CPU", {})
            for test in (t for t, outcome in cpu.items() if outcome == PASSED):
                total["needed"] += 1
                total["passes"] += strop.get(test) == PASSED
                if strop.get(test) != PASSED:
                    bad.append(f"{line}: {test} {strop.get(test, 'did not run')}")
    print(f"\nof {total['needed']} tests that pass on the CPU client {total['passes']} pass on Strop", *bad, sep="\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
