// Attributes -> HloInstructionProto: one overload per attributes struct, into the fields that XLA keeps them in.
#include "strop/proto/codecs.h"

namespace strop::codec {

CompareOrder DefaultOrder(ElementType type) {
  if (IsFloat(type) || IsComplex(type)) return CompareOrder::Float;
  return IsSigned(type) ? CompareOrder::Signed : CompareOrder::Unsigned;
}

namespace {

using proto::HloInstructionProto;

// ---- attribute types

void Encode(const Window& window, proto::Window* out) {
  for (const WindowDim& dim : window.dims) {
    auto* d = out->add_dimensions();
    d->set_size(dim.size);
    d->set_stride(dim.stride);
    d->set_padding_low(dim.pad_low);
    d->set_padding_high(dim.pad_high);
    d->set_base_dilation(dim.base_dilation);
    d->set_window_dilation(dim.window_dilation);
    d->set_window_reversal(dim.reversal);
  }
}

void Encode(const ConvDimLabels& labels, proto::ConvolutionDimensionNumbers* out) {
  out->set_input_batch_dimension(labels.input_batch);
  out->set_input_feature_dimension(labels.input_feature);
  FromDims(labels.input_spatial, out->mutable_input_spatial_dimensions());
  out->set_kernel_input_feature_dimension(labels.kernel_input_feature);
  out->set_kernel_output_feature_dimension(labels.kernel_output_feature);
  FromDims(labels.kernel_spatial, out->mutable_kernel_spatial_dimensions());
  out->set_output_batch_dimension(labels.output_batch);
  out->set_output_feature_dimension(labels.output_feature);
  FromDims(labels.output_spatial, out->mutable_output_spatial_dimensions());
}

void Encode(const PrecisionConfig& precision, int64_t operands, proto::PrecisionConfig* out) {
  for (Precision p : precision) out->add_operand_precision(static_cast<int>(p));
  for (int64_t i = static_cast<int64_t>(precision.size()); i < operands; ++i) out->add_operand_precision(0);
}

void Encode(const OutputOperandAliasing& aliasing, HloInstructionProto* out) {
  for (const OutputOperandAlias& alias : aliasing) {
    auto* a = out->add_output_operand_aliasing();
    FromDims(alias.output_index, a->mutable_output_shape_index());
    a->set_operand_index(alias.operand);
    FromDims(alias.operand_index, a->mutable_operand_shape_index());
  }
}

Status Encode(const ReplicaGroups& groups, HloInstructionProto* out) {
  switch (groups.form) {
    case ReplicaGroups::Form::Lists:
      for (const std::vector<int64_t>& group : groups.lists) {
        FromDims(group, out->mutable_collective_device_list()->add_replica_groups()->mutable_replica_ids());
        FromDims(group, out->add_replica_groups()->mutable_replica_ids());  // for readers before 2025
      }
      if (groups.lists.empty()) out->mutable_collective_device_list();
      return OkStatus();
    case ReplicaGroups::Form::Iota: {
      auto* iota = out->mutable_iota_replica_group_list();
      iota->set_num_replica_groups(groups.num_groups);
      iota->set_num_devices_per_group(groups.group_size);
      FromDims(groups.iota_reshape_dims, iota->mutable_iota_reshape_dims());
      FromDims(groups.iota_transpose_perm, iota->mutable_iota_transpose_perm());
      if (groups.iota_transpose_perm.empty())
        for (size_t i = 0; i < groups.iota_reshape_dims.size(); ++i) iota->add_iota_transpose_perm(static_cast<int>(i));
      return OkStatus();
    }
    case ReplicaGroups::Form::Mesh: return ParseMeshGroups(groups.mesh, out->mutable_mesh_axes_replica_group_list());
  }
  return OkStatus();
}

// "L.1@2:4_R.0@2:4"
Status EncodeSparsity(std::string_view text, HloInstructionProto* out) {
  if (text.empty()) return OkStatus();
  for (std::string_view part : Split(text, '_')) {
    size_t at = part.find('@'), colon = part.find(':');
    std::optional<int32_t> dimension, n, m;
    if (part.size() > 2 && at != part.npos && colon != part.npos && at < colon) {
      dimension = ParseNumber<int32_t>(part.substr(2, at - 2));
      n = ParseNumber<int32_t>(part.substr(at + 1, colon - at - 1));
      m = ParseNumber<int32_t>(part.substr(colon + 1));
    }
    if (!dimension || !n || !m || (part[0] != 'L' && part[0] != 'R'))
      return InvalidArgument("cannot read the sparsity '", text, "', expected a form like L.1@2:4");
    auto* descriptor = out->add_dot_sparsity();
    descriptor->set_type(1);
    descriptor->set_index(part[0] == 'R');
    descriptor->set_dimension(*dimension);
    descriptor->set_n(*n);
    descriptor->set_m(*m);
  }
  return OkStatus();
}

Status EncodeAlgorithm(const std::string& algorithm, proto::PrecisionConfig* out) {
  for (size_t i = 0; i < std::size(kAlgorithmNames); ++i) {
    if (algorithm != kAlgorithmNames[i]) continue;
    out->set_algorithm(static_cast<int>(i));
    return OkStatus();
  }
  return InvalidArgument("unknown dot algorithm '", algorithm, "'");
}

// ---- attributes structs

struct Encoder {
  const Instruction& instruction;
  HloInstructionProto* out;

  Status operator()(const NoAttrs&) { return OkStatus(); }
  Status operator()(const AccuracyAttrs& a) {
    switch (a.result_accuracy.mode) {
      case ResultAccuracy::Mode::Default: break;
      case ResultAccuracy::Mode::Highest: out->mutable_result_accuracy()->set_mode(1); break;
      case ResultAccuracy::Mode::Tolerance: {
        auto* tolerance = out->mutable_result_accuracy()->mutable_tolerance();
        tolerance->set_atol(a.result_accuracy.atol);
        tolerance->set_rtol(a.result_accuracy.rtol);
        tolerance->set_ulps(a.result_accuracy.ulps);
      }
    }
    return OkStatus();
  }
  Status operator()(const DimensionsAttrs& a) {
    FromDims(a.dimensions, out->mutable_dimensions());
    return OkStatus();
  }
  Status operator()(const ReducePrecisionAttrs& a) {
    out->set_exponent_bits(static_cast<int32_t>(a.exponent_bits));
    out->set_mantissa_bits(static_cast<int32_t>(a.mantissa_bits));
    return OkStatus();
  }
  Status operator()(const CompareAttrs& a) {
    out->set_comparison_direction(std::string(kDirectionNames[static_cast<int>(a.direction)]));
    CompareOrder order = a.order;
    if (order == CompareOrder::Default && instruction.operand_count() > 0)
      order = DefaultOrder(instruction.operand(0)->shape().type());
    out->set_comparison_type(std::string(kOrderNames[static_cast<int>(order)]));
    return OkStatus();
  }
  Status operator()(const ConstantAttrs& a) {
    codec::Encode(a.literal, out->mutable_literal());
    return OkStatus();
  }
  Status operator()(const IotaAttrs& a) {
    out->add_dimensions(a.dimension);
    return OkStatus();
  }
  Status operator()(const ParameterAttrs& a) {
    out->set_parameter_number(a.number);
    for (bool b : a.replicated_at_leaf_buffers) out->mutable_parameter_replication()->add_replicated_at_leaf_buffers(b);
    return OkStatus();
  }
  Status operator()(const CopyAttrs& a) {
    if (a.cross_program_prefetch_index >= 0)
      out->set_cross_program_prefetch_index(static_cast<int32_t>(a.cross_program_prefetch_index));
    return OkStatus();
  }
  Status operator()(const DynamicSliceAttrs& a) {
    FromDims(a.sizes, out->mutable_dynamic_slice_sizes());
    return OkStatus();
  }
  Status operator()(const GatherAttrs& a) {
    auto* g = out->mutable_gather_dimension_numbers();
    FromDims(a.offset_dims, g->mutable_offset_dims());
    FromDims(a.collapsed_slice_dims, g->mutable_collapsed_slice_dims());
    FromDims(a.start_index_map, g->mutable_start_index_map());
    FromDims(a.operand_batching_dims, g->mutable_operand_batching_dims());
    FromDims(a.start_indices_batching_dims, g->mutable_start_indices_batching_dims());
    g->set_index_vector_dim(a.index_vector_dim);
    FromDims(a.slice_sizes, out->mutable_gather_slice_sizes());
    out->set_indices_are_sorted(a.indices_are_sorted);
    return OkStatus();
  }
  Status operator()(const ScatterAttrs& a) {
    auto* s = out->mutable_scatter_dimension_numbers();
    FromDims(a.update_window_dims, s->mutable_update_window_dims());
    FromDims(a.inserted_window_dims, s->mutable_inserted_window_dims());
    FromDims(a.scatter_dims_to_operand_dims, s->mutable_scatter_dims_to_operand_dims());
    FromDims(a.input_batching_dims, s->mutable_input_batching_dims());
    FromDims(a.scatter_indices_batching_dims, s->mutable_scatter_indices_batching_dims());
    s->set_index_vector_dim(a.index_vector_dim);
    out->set_indices_are_sorted(a.indices_are_sorted);
    out->set_unique_indices(a.unique_indices);
    return OkStatus();
  }
  Status operator()(const PadAttrs& a) {
    for (const PaddingDim& dim : a.padding) {
      auto* d = out->mutable_padding_config()->add_dimensions();
      d->set_edge_padding_low(dim.low);
      d->set_edge_padding_high(dim.high);
      d->set_interior_padding(dim.interior);
    }
    return OkStatus();
  }
  Status operator()(const ReshapeAttrs& a) {
    if (a.inferred_dimension >= 0) out->add_dimensions(a.inferred_dimension);
    return OkStatus();
  }
  Status operator()(const SliceAttrs& a) {
    for (const SliceDim& dim : a.slice) {
      auto* d = out->add_slice_dimensions();
      d->set_start(dim.start);
      d->set_limit(dim.limit);
      d->set_stride(dim.stride);
    }
    return OkStatus();
  }
  Status operator()(const ConvolutionAttrs& a) {
    Encode(a.window, out->mutable_window());
    Encode(a.dim_labels, out->mutable_convolution_dimension_numbers());
    out->set_feature_group_count(a.feature_group_count);
    out->set_batch_group_count(a.batch_group_count);
    Encode(a.operand_precision, instruction.operand_count(), out->mutable_precision_config());
    return OkStatus();
  }
  Status operator()(const DotAttrs& a) {
    auto* d = out->mutable_dot_dimension_numbers();
    FromDims(a.lhs_batch, d->mutable_lhs_batch_dimensions());
    FromDims(a.lhs_contracting, d->mutable_lhs_contracting_dimensions());
    FromDims(a.rhs_batch, d->mutable_rhs_batch_dimensions());
    FromDims(a.rhs_contracting, d->mutable_rhs_contracting_dimensions());
    Encode(a.operand_precision, 2, out->mutable_precision_config());
    STROP_TRY(EncodeAlgorithm(a.algorithm, out->mutable_precision_config()));
    return EncodeSparsity(a.sparsity.text, out);
  }
  Status operator()(const RaggedDotAttrs& a) {
    auto* r = out->mutable_ragged_dot_dimension_numbers();
    auto* d = r->mutable_dot_dimension_numbers();
    FromDims(a.lhs_batch, d->mutable_lhs_batch_dimensions());
    FromDims(a.lhs_contracting, d->mutable_lhs_contracting_dimensions());
    FromDims(a.rhs_batch, d->mutable_rhs_batch_dimensions());
    FromDims(a.rhs_contracting, d->mutable_rhs_contracting_dimensions());
    FromDims(a.lhs_ragged, r->mutable_lhs_ragged_dimensions());
    FromDims(a.rhs_group, r->mutable_rhs_group_dimensions());
    Encode(a.operand_precision, 2, out->mutable_precision_config());
    return OkStatus();
  }
  Status operator()(const WindowAttrs& a) {
    Encode(a.window, out->mutable_window());
    return OkStatus();
  }
  Status operator()(const ScanAttrs& a) {
    FromDims(a.dimensions, out->mutable_dimensions());
    out->set_is_reverse(a.is_reverse);
    out->set_num_carries(a.num_carries);
    out->set_is_associative(a.is_associative.text == "true" ? 1 : a.is_associative.text == "false" ? 2 : 0);
    return OkStatus();
  }
  Status operator()(const SortAttrs& a) {
    FromDims(a.dimensions, out->mutable_dimensions());
    out->set_is_stable(a.is_stable);
    return OkStatus();
  }
  Status operator()(const TopKAttrs& a) {
    out->set_k(a.k);
    out->set_largest(a.largest);
    return OkStatus();
  }
  Status operator()(const BatchNormAttrs& a) {
    out->set_epsilon(a.epsilon);
    out->set_feature_index(a.feature_index);
    return OkStatus();
  }
  Status operator()(const CholeskyAttrs& a) {
    out->mutable_cholesky_options()->set_lower(a.lower);
    return OkStatus();
  }
  Status operator()(const FftAttrs& a) {
    out->set_fft_type(static_cast<int>(a.type));
    FromDims(a.length, out->mutable_fft_length());
    return OkStatus();
  }
  Status operator()(const TriangularSolveAttrs& a) {
    auto* t = out->mutable_triangular_solve_options();
    t->set_left_side(a.left_side);
    t->set_lower(a.lower);
    t->set_unit_diagonal(a.unit_diagonal);
    t->set_transpose_a(static_cast<int>(a.transpose_a));
    return OkStatus();
  }
  Status operator()(const RngAttrs& a) {
    out->set_distribution(static_cast<int>(a.distribution));
    return OkStatus();
  }
  Status operator()(const RngBitGeneratorAttrs& a) {
    out->set_rng_algorithm(static_cast<int>(a.algorithm));
    return OkStatus();
  }
  Status operator()(const RngStateAttrs& a) {
    out->set_delta(a.delta);
    return OkStatus();
  }
  // domain={kind="sharding", entry={...}, exit={...}}
  Status operator()(const DomainAttrs& a) {
    for (bool entry : {true, false}) {
      size_t at = a.domain.text.find(entry ? "entry=" : "exit=");
      if (at == a.domain.text.npos) continue;
      std::string_view rest = std::string_view(a.domain.text).substr(at + (entry ? 6 : 5));
      STROP_ASSIGN(Sharding sharding, ConsumeSharding(rest));
      STROP_TRY(
          codec::Encode(sharding, entry ? out->mutable_domain_entry_sharding() : out->mutable_domain_exit_sharding()));
    }
    return OkStatus();
  }
  Status operator()(const GetTupleElementAttrs& a) {
    out->set_tuple_index(a.index);
    return OkStatus();
  }
  // -update and -done name the thread of their -start, whether or not they were given it themselves.
  Status operator()(const AsyncAttrs& a) {
    const AsyncAttrs* named = &a;
    for (const Instruction* i = &instruction; i->operand_count() > 0 && Is(i->op(), kAsync);) {
      if (const auto* attrs = i->any_attrs().get_if<AsyncAttrs>()) named = attrs;
      if (i->op() == Op::AsyncStart) break;
      i = i->operand(0);
    }
    out->set_async_execution_thread(named->async_execution_thread.empty() ? "main" : named->async_execution_thread);
    return OkStatus();
  }
  Status operator()(const CallAttrs& a) {
    out->set_is_composite(a.is_composite);
    Encode(a.output_to_operand_aliasing, out);
    return OkStatus();
  }
  Status operator()(const ConditionalAttrs&) { return OkStatus(); }
  Status operator()(const CustomCallAttrs& a) {
    out->set_custom_call_target(a.target);
    if (!a.window.empty()) Encode(a.window[0], out->mutable_window());
    if (!a.dim_labels.empty()) Encode(a.dim_labels[0], out->mutable_convolution_dimension_numbers());
    out->set_feature_group_count(a.feature_group_count);
    out->set_batch_group_count(a.batch_group_count);
    out->set_constrain_layout(a.has_layout_constraints);
    for (const Shape& shape : a.operand_layout_constraints) codec::Encode(shape, out->add_operand_shapes_with_layout());
    out->set_custom_call_has_side_effect(a.has_side_effect);
    Encode(a.output_to_operand_aliasing, out);
    out->set_padding_type(static_cast<int>(a.padding_type));
    if (!a.literal.empty()) codec::Encode(a.literal[0], out->mutable_literal());
    Encode(a.operand_precision, instruction.operand_count(), out->mutable_precision_config());
    out->set_custom_call_schedule(static_cast<int>(a.schedule));
    out->set_custom_call_api_version(static_cast<int>(a.api_version));
    out->set_backend_config(a.opaque);
    return OkStatus();
  }
  Status operator()(const FusionAttrs& a) {
    out->set_fusion_kind(std::string(kFusionNames[static_cast<int>(a.kind)]));
    Encode(a.output_to_operand_aliasing, out);
    return OkStatus();
  }
  Status operator()(const CollectiveAttrs& a) {
    out->set_channel_id(a.channel_id);
    STROP_TRY(Encode(a.replica_groups, out));
    out->set_constrain_layout(a.constrain_layout);
    out->set_use_global_device_ids(a.use_global_device_ids);
    FromDims(a.dimensions, out->mutable_dimensions());
    return OkStatus();
  }
  Status operator()(const PermuteAttrs& a) {
    out->set_channel_id(a.channel_id);
    for (auto [source, target] : a.source_target_pairs) {
      auto* pair = out->add_source_target_pairs();
      pair->set_source(source);
      pair->set_target(target);
    }
    for (const Dims& sizes : a.slice_sizes) FromDims(sizes, out->mutable_dynamic_slice_sizes());
    return OkStatus();
  }
  Status operator()(const InfeedAttrs& a) {
    out->set_infeed_config(a.infeed_config);
    return OkStatus();
  }
  Status operator()(const OutfeedAttrs& a) {
    out->set_outfeed_config(a.outfeed_config);
    codec::Encode(a.outfeed_shape, out->mutable_outfeed_shape());
    return OkStatus();
  }
  Status operator()(const ChannelAttrs& a) {
    out->set_channel_id(a.channel_id);
    out->set_is_host_transfer(a.is_host_transfer);
    return OkStatus();
  }
};

}  // namespace

Status EncodeAttributes(const Instruction& instruction, HloInstructionProto* out) {
  return instruction.any_attrs().Visit(Encoder{instruction, out});
}

}  // namespace strop::codec
