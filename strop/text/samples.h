// Modules for the tests of this room: together they use every form that the parser knows.
#pragma once
#include <string_view>

namespace strop::samples {

inline constexpr std::string_view kShortStyle =
    R"(HloModule jit_f, entry_computation_layout={(s8[4,2]{1,0}, bf16[2,8]{1,0})->(bf16[4,8]{1,0})}
ENTRY main.10 {
  Arg_0.1 = s8[4,2]{1,0} parameter(0)
  convert.5 = bf16[4,2]{1,0} convert(Arg_0.1)
  Arg_1.2 = bf16[2,8]{1,0} parameter(1)
  dot.6 = bf16[4,8]{1,0} dot(convert.5, Arg_1.2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  constant.3 = bf16[] constant(0.125)
  broadcast.4 = bf16[4,8]{1,0} broadcast(constant.3), dimensions={}
  multiply.7 = bf16[4,8]{1,0} multiply(dot.6, broadcast.4)
  ROOT negate.8 = bf16[4,8]{1,0} negate(multiply.7)
}
)";

// As XLA dumps a scheduled module: %, signatures, operand shapes, a fusion, shardings, metadata.
inline constexpr std::string_view kLongStyle =
    R"(HloModule jit_f, is_scheduled=true, input_output_alias={ {}: (1, {}, must-alias) }, buffer_donor={ (0, {}) }, entry_computation_layout={(s8[3,2]{1,0}, bf16[2,3]{1,0})->bf16[2,3]{1,0}}, allow_spmd_sharding_propagation_to_output={true}, num_partitions=2, frontend_attributes={a="1",b={"c":2}}, alias_passthrough_params=true

FileNames
1 "a \"quoted\" file.py"

FunctionNames
1 "f"
2 "<module>"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=4 column=5 end_column=6}

StackFrames
1 {file_location_id=1 parent_frame_id=1}


%fused (p.0: bf16[2,3]) -> bf16[2,3] {
  %p.0 = bf16[2,3]{1,0} parameter(0)
  ROOT %n = bf16[2,3]{1,0} negate(bf16[2,3]{1,0} %p.0)
}

ENTRY %main (a: s8[3,2], b: bf16[2,3]) -> bf16[2,3] {
  %b = bf16[2,3]{1,0} parameter(1), sharding={replicated}, metadata={op_type="t" op_name="jit(f)/b" source_file="f.py" source_line=7 stack_frame_id=1}
  %a = s8[3,2]{1,0} parameter(0), parameter_replication={false}, sharding={devices=[2,1]<=[2]}
  %token = token[] after-all(), control-predecessors={%a, %b}
  ROOT %fusion = bf16[2,3]{1,0} fusion(bf16[2,3]{1,0} %b), kind=kCustom, calls=%fused, frontend_attributes={x="y"}, backend_config={"kind":"__triton_gemm","triton_gemm_config":{"block_m":"64"}}
}
)";

inline constexpr std::string_view kOps = R"(HloModule ops

add (x: f32[], y: f32[]) -> f32[] {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ge {
  gx = f32[] parameter(0)
  gy = f32[] parameter(1)
  ROOT g = pred[] compare(gx, gy), direction=GE, type=TOTALORDER
}
cond { c = (s32[], f32[4]) parameter(0)  i = s32[] get-tuple-element(c), index=0  n = s32[] constant(3)  ROOT lt = pred[] compare(i, n), direction=LT }
body { ROOT b = (s32[], f32[4]) parameter(0) }
branch { ROOT bp = f32[4] parameter(0) }

ENTRY e {
  p = f32[4]{0} parameter(0)
  image = f32[1,3,8,8]{3,2,1,0} parameter(1)
  kernel = f32[4,3,3,3] parameter(2)
  flag = pred[] parameter(3)
  index = s32[] parameter(4)
  token = token[] after-all()
  conv = f32[1,4,4,4] convolution(image, kernel), window={size=3x3 stride=2x2 pad=1_1x0_2 lhs_dilate=1x2 rhs_dilate=2x1 rhs_reversal=0x1}, dim_labels=bf01_oi01->bf01, feature_group_count=1, operand_precision={high,default}
  zero = f32[] constant(0)
  pad = f32[7] pad(p, zero), padding=1_2_0
  pad2 = f32[9] pad(p, zero), padding=-1_2_1
  slice = f32[2] slice(p), slice={[0:4:2]}
  slices = f32[1,1,2,2] slice(image), slice={[0:1], [1:2], [2:4], [3:5]}
  reduce = f32[] reduce(p, zero), dimensions={0}, to_apply=add
  window = f32[3] reduce-window(p, zero), window={size=2}, to_apply=add
  sas = f32[4] select-and-scatter(p, window, zero), window={size=2}, select=ge, scatter=add
  gather = f32[2,1] gather(p, s32[2,1] constant({{0},{1}})), offset_dims={1}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}, indices_are_sorted=true
  iota = s32[4] iota(), iota_dimension=0
  indices = s32[2,1] constant({{0},{1}})
  updates = f32[2] constant({1,2})
  scatter = f32[4] scatter(p, indices, updates), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, unique_indices=true, to_apply=add
  sort = f32[4] sort(p), dimensions={0}, is_stable=true, to_apply=ge
  sorted = (f32[4], s32[4]) sort(p, iota), dimensions={0}, to_apply=ge
  cos = f32[4] cosine(p), result_accuracy={tolerance={atol=0,rtol=0.5,ulps=10}}
  exp = f32[4] exponential(p), result_accuracy={mode=highest}
  rp = f32[4] reduce-precision(p), exponent_bits=5, mantissa_bits=10
  loop = (s32[], f32[4]) while((s32[], f32[4]) tuple(index, p)), condition=cond, body=body
  either = f32[4] conditional(flag, p, p), true_computation=branch, false_computation=branch
  nth = f32[4] conditional(index, p, p, p), branch_computations={branch, branch, branch}
  fft = c64[3] fft(p), fft_type=RFFT, fft_length={4}
  ts = f32[2,2] triangular-solve(f32[2,2] constant({{1,0},{1,1}}), f32[2,2] constant({{1,2},{3,4}})), left_side=true, lower=true, transpose_a=ADJOINT
  rng = (u64[3], u32[4]) rng-bit-generator(u64[3] constant({1,2,3})), algorithm=rng_philox
  cc = f32[4] custom-call(p, p), custom_call_target="a\"b", operand_layout_constraints={f32[4]{0}, f32[4]{0}}, custom_call_has_side_effect=true, literal=s32[2]{0} {1, 2}, output_to_operand_aliasing={{}: (0, {})}, schedule=SCHEDULE_LATEST, api_version=API_VERSION_TYPED_FFI, called_computations={add, ge}, backend_config="not {json"
  cj = f32[4] custom-call(p), custom_call_target="q", backend_config={scale=[0.5],zero_point=[-128]}
  ar = f32[4] all-reduce(p), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=add
  ag = f32[8] all-gather(p), replica_groups=[2,2]<=[4], dimensions={0}, use_global_device_ids=true
  am = f32[4] all-reduce(p), replica_groups=mesh['a'=2,'b'=2] {'b'}, to_apply=add
  cp = f32[4] collective-permute(p), source_target_pairs={{0,1},{1,0}}
  infeed = (f32[4], token[]) infeed(token), infeed_config="cfg"
  outfeed = token[] outfeed(p, token), outfeed_shape=f32[4]{0}, outfeed_config="x"
  send = (f32[4], u32[], token[]) send(p, token), channel_id=2, is_host_transfer=true, frontend_attributes={_xla_host_transfer_rendezvous="r"}
  send-done = token[] send-done(send), channel_id=2, is_host_transfer=true
  domain = f32[4] domain(p), domain={kind="sharding", entry={maximal device=0}, exit={replicated}}
  start = ((f32[4]), f32[2], s32[]) slice-start(p), slice={[1:3]}, async_execution_thread="other"
  update = ((f32[4]), f32[2], s32[]) slice-update(start)
  done = f32[2] slice-done(update)
  tuple = (f32[4], f32[4]) tuple(p, exp), origin={({"p"}, {"exp" {0}})}, statistics={visualizing_index=0,nan=1}
  ROOT out = f32[4] add(tuple#0, tuple#1), metadata={op_name="out" profile_type={1} deduplicated_name="d" scheduling_name="s" source_end_line=3 source_column=1 source_end_column=9}
}
)";

// No header, a comment, a computation whose body stands inside the instruction, nested instructions, shapes left out.
inline constexpr std::string_view kLoose = R"(// a comment
helper { a = f32[2]{0} parameter(0) b = f32[2]{0} parameter(1) ROOT m = maximum(a, b) }
ENTRY e { /* another */
  x = f32[2] parameter(0)
  y = f32[] reduce(x, f32[] constant(0)), dimensions={0}, to_apply={ p = f32[] parameter(0) q = f32[] parameter(1) ROOT r = f32[] add(p, q) }
  z = call(x, negate(x)), to_apply=helper
  late = f32[2] call(x, x), to_apply=later
  t = tuple(x, z, y)
}
later { a = f32[2] parameter(0) b = f32[2] parameter(1) ROOT s = add(a, b) }
)";

inline constexpr std::string_view kAll[] = {kShortStyle, kLongStyle, kOps, kLoose};

}  // namespace strop::samples
