// HloInstructionProto -> attributes: one overload per attributes struct, the inverse of attribute_encode.cc. Numbers
// that name no enumerator are refused; ranks and ranges are the verifier's business.
#include "strop/proto/codecs.h"

namespace strop::codec {
namespace {

using proto::HloInstructionProto;

template <class E>
Status DecodeEnum(int value, E last, std::string_view what, E& out) {
  if (value < 0 || value > static_cast<int>(last)) return InvalidArgument("unknown ", what, " ", value);
  out = static_cast<E>(value);
  return OkStatus();
}

template <class E, size_t N>
Status DecodeName(const std::string& name, const std::string_view (&names)[N], std::string_view what, E& out) {
  for (size_t i = 0; i < N; ++i) {
    if (name != names[i]) continue;
    out = static_cast<E>(i);
    return OkStatus();
  }
  return InvalidArgument("unknown ", what, " '", name, "'");
}

// ---- attribute types

Window Decode(const proto::Window& in) {
  Window out;
  for (const auto& d : in.dimensions()) {
    WindowDim dim;
    dim.size = d.size();
    dim.stride = d.stride();
    dim.pad_low = d.padding_low();
    dim.pad_high = d.padding_high();
    dim.base_dilation = d.base_dilation() == 0 ? 1 : d.base_dilation();
    dim.window_dilation = d.window_dilation() == 0 ? 1 : d.window_dilation();
    dim.reversal = d.window_reversal();
    out.dims.push_back(dim);
  }
  return out;
}

ConvDimLabels Decode(const proto::ConvolutionDimensionNumbers& in) {
  ConvDimLabels out;
  out.input_batch = in.input_batch_dimension();
  out.input_feature = in.input_feature_dimension();
  out.input_spatial = ToDims(in.input_spatial_dimensions());
  out.kernel_input_feature = in.kernel_input_feature_dimension();
  out.kernel_output_feature = in.kernel_output_feature_dimension();
  out.kernel_spatial = ToDims(in.kernel_spatial_dimensions());
  out.output_batch = in.output_batch_dimension();
  out.output_feature = in.output_feature_dimension();
  out.output_spatial = ToDims(in.output_spatial_dimensions());
  return out;
}

// All-default lists, which the wire always has, become empty.
Status DecodePrecision(const proto::PrecisionConfig& in, PrecisionConfig& out) {
  bool all_default = true;
  for (int p : in.operand_precision()) {
    Precision precision = Precision::Default;
    STROP_TRY(DecodeEnum(p, Precision::PackedNibble, "precision", precision));
    all_default &= precision == Precision::Default;
    out.push_back(precision);
  }
  if (all_default) out.clear();
  return OkStatus();
}

OutputOperandAliasing DecodeAliasing(const HloInstructionProto& in) {
  OutputOperandAliasing out;
  for (const auto& a : in.output_operand_aliasing())
    out.push_back({ToDims(a.output_shape_index()), a.operand_index(), ToDims(a.operand_shape_index())});
  return out;
}

void DecodeIota(const proto::IotaReplicaGroupListProto& in, ReplicaGroups& out) {
  out.form = ReplicaGroups::Form::Iota;
  out.num_groups = in.num_replica_groups();
  out.group_size = in.num_devices_per_group();
  out.iota_reshape_dims = ToDims(in.iota_reshape_dims());
  bool identity = true;
  for (int i = 0; i < in.iota_transpose_perm_size(); ++i) identity &= in.iota_transpose_perm(i) == i;
  if (!identity) out.iota_transpose_perm.assign(in.iota_transpose_perm().begin(), in.iota_transpose_perm().end());
}

ReplicaGroups DecodeGroups(const HloInstructionProto& in) {
  ReplicaGroups out;
  auto lists = [&](const auto& groups) {
    for (const auto& group : groups) out.lists.push_back(ToDims(group.replica_ids()));
  };
  const auto& devices = in.collective_device_list();
  if (in.has_iota_replica_group_list()) {
    DecodeIota(in.iota_replica_group_list(), out);
  } else if (devices.has_iota_replica_group_list()) {
    DecodeIota(devices.iota_replica_group_list(), out);
  } else if (in.has_mesh_axes_replica_group_list() || devices.has_mesh_axes_replica_group_list()) {
    out.form = ReplicaGroups::Form::Mesh;
    out.mesh = MeshGroupsText(in.has_mesh_axes_replica_group_list() ? in.mesh_axes_replica_group_list()
                                                                    : devices.mesh_axes_replica_group_list());
  } else if (devices.replica_groups_size() > 0) {
    lists(devices.replica_groups());
  } else {
    lists(in.replica_groups());
  }
  return out;
}

// ---- attributes structs

Status Decode(const HloInstructionProto&, NoAttrs&) { return OkStatus(); }
Status Decode(const HloInstructionProto& in, AccuracyAttrs& a) {
  if (in.result_accuracy().has_tolerance()) {
    const auto& tolerance = in.result_accuracy().tolerance();
    a.result_accuracy = {ResultAccuracy::Mode::Tolerance, tolerance.atol(), tolerance.rtol(), tolerance.ulps()};
  } else if (in.result_accuracy().mode() == 1) {
    a.result_accuracy.mode = ResultAccuracy::Mode::Highest;
  }
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, DimensionsAttrs& a) {
  a.dimensions = ToDims(in.dimensions());
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, ReducePrecisionAttrs& a) {
  a.exponent_bits = in.exponent_bits();
  a.mantissa_bits = in.mantissa_bits();
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, CompareAttrs& a) {
  STROP_TRY(DecodeName(in.comparison_direction(), kDirectionNames, "comparison direction", a.direction));
  return DecodeName(in.comparison_type(), kOrderNames, "comparison type", a.order);
}
Status Decode(const HloInstructionProto& in, ConstantAttrs& a) {
  if (!in.has_literal()) return InvalidArgument("constant without a literal");
  STROP_ASSIGN(a.literal, codec::Decode(in.literal()));
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, IotaAttrs& a) {
  if (in.dimensions_size() > 1) return InvalidArgument("iota with ", in.dimensions_size(), " dimensions");
  if (in.dimensions_size() == 1) a.dimension = in.dimensions(0);
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, ParameterAttrs& a) {
  a.number = in.parameter_number();
  for (bool b : in.parameter_replication().replicated_at_leaf_buffers()) a.replicated_at_leaf_buffers.push_back(b);
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, CopyAttrs& a) {
  if (in.has_cross_program_prefetch_index())
    a.cross_program_prefetch_index = in.cross_program_prefetch_index();
  else if (in.is_cross_program_prefetch())
    a.cross_program_prefetch_index = 0;
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, DynamicSliceAttrs& a) {
  a.sizes = ToDims(in.dynamic_slice_sizes());
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, GatherAttrs& a) {
  const auto& g = in.gather_dimension_numbers();
  a.offset_dims = ToDims(g.offset_dims());
  a.collapsed_slice_dims = ToDims(g.collapsed_slice_dims());
  a.start_index_map = ToDims(g.start_index_map());
  a.operand_batching_dims = ToDims(g.operand_batching_dims());
  a.start_indices_batching_dims = ToDims(g.start_indices_batching_dims());
  a.index_vector_dim = g.index_vector_dim();
  a.slice_sizes = ToDims(in.gather_slice_sizes());
  a.indices_are_sorted = in.indices_are_sorted();
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, ScatterAttrs& a) {
  const auto& s = in.scatter_dimension_numbers();
  a.update_window_dims = ToDims(s.update_window_dims());
  a.inserted_window_dims = ToDims(s.inserted_window_dims());
  a.scatter_dims_to_operand_dims = ToDims(s.scatter_dims_to_operand_dims());
  a.input_batching_dims = ToDims(s.input_batching_dims());
  a.scatter_indices_batching_dims = ToDims(s.scatter_indices_batching_dims());
  a.index_vector_dim = s.index_vector_dim();
  a.indices_are_sorted = in.indices_are_sorted();
  a.unique_indices = in.unique_indices();
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, PadAttrs& a) {
  for (const auto& d : in.padding_config().dimensions())
    a.padding.push_back({d.edge_padding_low(), d.edge_padding_high(), d.interior_padding()});
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, ReshapeAttrs& a) {
  if (in.dimensions_size() > 0) a.inferred_dimension = in.dimensions(0);
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, SliceAttrs& a) {
  for (const auto& d : in.slice_dimensions()) a.slice.push_back({d.start(), d.limit(), d.stride()});
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, ConvolutionAttrs& a) {
  if (!in.has_convolution_dimension_numbers()) return InvalidArgument("convolution without dimension numbers");
  a.window = Decode(in.window());
  a.dim_labels = Decode(in.convolution_dimension_numbers());
  a.feature_group_count = in.feature_group_count() == 0 ? 1 : in.feature_group_count();
  a.batch_group_count = in.batch_group_count() == 0 ? 1 : in.batch_group_count();
  return DecodePrecision(in.precision_config(), a.operand_precision);
}
Status Decode(const HloInstructionProto& in, DotAttrs& a) {
  const auto& d = in.dot_dimension_numbers();
  a.lhs_batch = ToDims(d.lhs_batch_dimensions());
  a.lhs_contracting = ToDims(d.lhs_contracting_dimensions());
  a.rhs_batch = ToDims(d.rhs_batch_dimensions());
  a.rhs_contracting = ToDims(d.rhs_contracting_dimensions());
  STROP_TRY(DecodePrecision(in.precision_config(), a.operand_precision));
  const int algorithm = in.precision_config().algorithm();
  if (algorithm < 0 || algorithm >= static_cast<int>(std::size(kAlgorithmNames)))
    return InvalidArgument("unknown dot algorithm ", algorithm);
  a.algorithm = kAlgorithmNames[algorithm];
  for (const auto& s : in.dot_sparsity())
    StrAppend(a.sparsity.text, a.sparsity.text.empty() ? "" : "_", s.index() == 0 ? "L." : "R.", s.dimension(), "@",
              s.n(), ":", s.m());
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, RaggedDotAttrs& a) {
  const auto& r = in.ragged_dot_dimension_numbers();
  const auto& d = r.dot_dimension_numbers();
  a.lhs_batch = ToDims(d.lhs_batch_dimensions());
  a.lhs_contracting = ToDims(d.lhs_contracting_dimensions());
  a.rhs_batch = ToDims(d.rhs_batch_dimensions());
  a.rhs_contracting = ToDims(d.rhs_contracting_dimensions());
  a.lhs_ragged = ToDims(r.lhs_ragged_dimensions());
  a.rhs_group = ToDims(r.rhs_group_dimensions());
  return DecodePrecision(in.precision_config(), a.operand_precision);
}
Status Decode(const HloInstructionProto& in, WindowAttrs& a) {
  a.window = Decode(in.window());
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, ScanAttrs& a) {
  a.dimensions = ToDims(in.dimensions());
  a.is_reverse = in.is_reverse();
  a.num_carries = in.num_carries();
  a.is_associative.text = in.is_associative() == 1 ? "true" : in.is_associative() == 2 ? "false" : "";
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, SortAttrs& a) {
  a.dimensions = ToDims(in.dimensions());
  a.is_stable = in.is_stable();
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, TopKAttrs& a) {
  a.k = in.k();
  a.largest = in.largest();
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, BatchNormAttrs& a) {
  a.epsilon = in.epsilon();
  a.feature_index = in.feature_index();
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, CholeskyAttrs& a) {
  a.lower = in.cholesky_options().lower();
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, FftAttrs& a) {
  a.length = ToDims(in.fft_length());
  return DecodeEnum(in.fft_type(), FftType::Irfft, "fft type", a.type);
}
Status Decode(const HloInstructionProto& in, TriangularSolveAttrs& a) {
  const auto& t = in.triangular_solve_options();
  a.left_side = t.left_side();
  a.lower = t.lower();
  a.unit_diagonal = t.unit_diagonal();
  return DecodeEnum(t.transpose_a(), TransposeA::Adjoint, "transpose_a", a.transpose_a);
}
Status Decode(const HloInstructionProto& in, RngAttrs& a) {
  return DecodeEnum(in.distribution(), RngDistribution::Normal, "random distribution", a.distribution);
}
Status Decode(const HloInstructionProto& in, RngBitGeneratorAttrs& a) {
  return DecodeEnum(in.rng_algorithm(), RngAlgorithm::Philox, "random algorithm", a.algorithm);
}
Status Decode(const HloInstructionProto& in, RngStateAttrs& a) {
  a.delta = in.delta();
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, DomainAttrs& a) {
  STROP_ASSIGN(Sharding entry, codec::Decode(in.domain_entry_sharding()));
  STROP_ASSIGN(Sharding exit, codec::Decode(in.domain_exit_sharding()));
  a.domain.text = StrCat("{kind=\"sharding\", entry=", entry.ToString(), ", exit=", exit.ToString(), "}");
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, GetTupleElementAttrs& a) {
  a.index = in.tuple_index();
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, AsyncAttrs& a) {
  if (in.async_execution_thread() != "main") a.async_execution_thread = in.async_execution_thread();
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, CallAttrs& a) {
  a.is_composite = in.is_composite();
  a.output_to_operand_aliasing = DecodeAliasing(in);
  return OkStatus();
}
Status Decode(const HloInstructionProto&, ConditionalAttrs&) { return OkStatus(); }
Status Decode(const HloInstructionProto& in, CustomCallAttrs& a) {
  a.target = in.custom_call_target();
  if (in.has_window()) a.window.push_back(Decode(in.window()));
  if (in.has_convolution_dimension_numbers()) a.dim_labels.push_back(Decode(in.convolution_dimension_numbers()));
  a.feature_group_count = in.feature_group_count() == 0 ? 1 : in.feature_group_count();
  a.batch_group_count = in.batch_group_count() == 0 ? 1 : in.batch_group_count();
  a.has_layout_constraints = in.constrain_layout();
  for (const auto& shape : in.operand_shapes_with_layout()) {
    STROP_ASSIGN(Shape decoded, codec::Decode(shape));
    a.operand_layout_constraints.push_back(std::move(decoded));
  }
  a.has_side_effect = in.custom_call_has_side_effect();
  a.output_to_operand_aliasing = DecodeAliasing(in);
  STROP_TRY(DecodeEnum(in.padding_type(), PaddingType::Same, "padding type", a.padding_type));
  if (in.has_literal()) {
    STROP_ASSIGN(Literal literal, codec::Decode(in.literal()));
    a.literal.push_back(std::move(literal));
  }
  STROP_TRY(DecodePrecision(in.precision_config(), a.operand_precision));
  STROP_TRY(DecodeEnum(in.custom_call_schedule(), CustomCallSchedule::Earliest, "custom call schedule", a.schedule));
  STROP_TRY(DecodeEnum(in.custom_call_api_version(), ApiVersion::TypedFfi, "custom call API version", a.api_version));
  a.opaque = in.backend_config();
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, FusionAttrs& a) {
  a.output_to_operand_aliasing = DecodeAliasing(in);
  return DecodeName(in.fusion_kind(), kFusionNames, "fusion kind", a.kind);
}
Status Decode(const HloInstructionProto& in, CollectiveAttrs& a) {
  a.channel_id = in.channel_id() > 0 ? in.channel_id() : std::max<int64_t>(in.all_reduce_id(), 0);
  a.replica_groups = DecodeGroups(in);
  a.constrain_layout = in.constrain_layout();
  a.use_global_device_ids = in.use_global_device_ids();
  a.dimensions = ToDims(in.dimensions());
  a.has_dimensions = !a.dimensions.empty();
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, PermuteAttrs& a) {
  a.channel_id = std::max<int64_t>(in.channel_id(), 0);
  for (const auto& pair : in.source_target_pairs()) a.source_target_pairs.emplace_back(pair.source(), pair.target());
  // The in-place form: the sizes of each slice one after the other, as many numbers a slice as the operand has
  // dimensions.
  const auto& shape = in.shape().tuple_shapes_size() > 0 ? in.shape().tuple_shapes(0) : in.shape();
  const int sizes = in.dynamic_slice_sizes_size(), rank = std::max(shape.dimensions_size(), 1);
  if (sizes % rank != 0)
    return InvalidArgument("collective-permute with ", sizes, " slice sizes for an operand of rank ", rank);
  for (int i = 0; i < sizes; i += rank)
    a.slice_sizes.emplace_back(in.dynamic_slice_sizes().begin() + i, in.dynamic_slice_sizes().begin() + i + rank);
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, InfeedAttrs& a) {
  a.infeed_config = in.infeed_config();
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, OutfeedAttrs& a) {
  a.outfeed_config = in.outfeed_config();
  if (!in.has_outfeed_shape()) return OkStatus();
  STROP_ASSIGN(a.outfeed_shape, codec::Decode(in.outfeed_shape()));
  return OkStatus();
}
Status Decode(const HloInstructionProto& in, ChannelAttrs& a) {
  a.channel_id = std::max<int64_t>(in.channel_id(), 0);
  a.is_host_transfer = in.is_host_transfer();
  return OkStatus();
}

}  // namespace

Result<Attrs> DecodeAttributes(Op op, const HloInstructionProto& in, ElementType operand_type) {
  Attrs attrs = DefaultAttrs(op);
  Status status = attrs.Visit([&](auto& a) { return Decode(in, a); });
  if (!status.ok()) return status;
  if (auto* compare = attrs.get_if<CompareAttrs>(); compare && compare->order == DefaultOrder(operand_type))
    compare->order = CompareOrder::Default;
  return attrs;
}

}  // namespace strop::codec
