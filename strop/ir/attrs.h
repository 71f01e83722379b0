// The attributes of each op, as values. A struct has one fields() list; printing, parsing, proto, hash, equality and
// clone follow from it (one codec per attribute *type*: see attr_text.h for text). Called computations are not
// attributes: they are Instruction::called(), under the names of the op's row.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "strop/types/literal.h"
#include "strop/types/shape.h"
#include "strop/types/sharding.h"

namespace strop {

// ---- attribute types ------------------------------------------------------------------------------------------------

using Dims = std::vector<int64_t>;
inline bool Contains(const Dims& dims, int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }

// window={size=2x2 stride=1x1 pad=0_0x1_1 lhs_dilate=1x1 rhs_dilate=1x1 rhs_reversal=0x0}
struct WindowDim {
  int64_t size = 1;
  int64_t stride = 1;
  int64_t pad_low = 0;
  int64_t pad_high = 0;
  int64_t base_dilation = 1;    // lhs_dilate
  int64_t window_dilation = 1;  // rhs_dilate
  bool reversal = false;
  bool operator==(const WindowDim&) const = default;
  int64_t DilatedSize() const { return size == 0 ? 0 : (size - 1) * window_dilation + 1; }
};
struct Window {
  std::vector<WindowDim> dims;
  bool operator==(const Window&) const = default;
};

// dim_labels=bf01_oi01->b01f ; `?` marks unknown dimensions
struct ConvDimLabels {
  int64_t input_batch = 0, input_feature = 1;
  Dims input_spatial;
  int64_t kernel_output_feature = 0, kernel_input_feature = 1;
  Dims kernel_spatial;
  int64_t output_batch = 0, output_feature = 1;
  Dims output_spatial;
  // Ranks beyond the labelled dimensions ('?' in text).
  Dims input_unknown, kernel_unknown, output_unknown;
  bool operator==(const ConvDimLabels&) const = default;
};

// padding=0_1_2x3_4 (low_high[_interior] per dimension)
struct PaddingDim {
  int64_t low = 0, high = 0, interior = 0;
  bool operator==(const PaddingDim&) const = default;
};
using PaddingConfig = std::vector<PaddingDim>;

// slice={[0:4:2], [1:3]}
struct SliceDim {
  int64_t start = 0, limit = 0, stride = 1;
  bool operator==(const SliceDim&) const = default;
};
using SliceDims = std::vector<SliceDim>;

enum class Precision : uint8_t { Default, High, Highest, PackedNibble };
using PrecisionConfig = std::vector<Precision>;  // operand_precision={highest,default}; empty: all default

// output_to_operand_aliasing={{0}: (1, {}), ...}
struct OutputOperandAlias {
  Dims output_index;
  int64_t operand = 0;
  Dims operand_index;
  bool operator==(const OutputOperandAlias&) const = default;
};
using OutputOperandAliasing = std::vector<OutputOperandAlias>;

using SourceTargetPairs = std::vector<std::pair<int64_t, int64_t>>;  // {{0,1},{1,0}}

enum class CompareDirection : uint8_t { Eq, Ne, Ge, Gt, Le, Lt };
enum class CompareOrder : uint8_t {
  Default,
  Float,
  TotalOrder,
  Signed,
  Unsigned
};  // type=TOTALORDER; Default: not printed
enum class FftType : uint8_t { Fft, Ifft, Rfft, Irfft };
enum class FusionKind : uint8_t { Loop, Input, Output, Custom };
enum class RngDistribution : uint8_t { Invalid, Uniform, Normal };             // distribution=rng_uniform
enum class RngAlgorithm : uint8_t { Default, ThreeFry, Philox };               // algorithm=rng_three_fry
enum class TransposeA : uint8_t { Invalid, NoTranspose, Transpose, Adjoint };  // transpose_a=NO_TRANSPOSE
enum class CustomCallSchedule : uint8_t { None, Latest, Earliest };            // SCHEDULE_LATEST
enum class ApiVersion : uint8_t { Unspecified, Original, StatusReturning, StatusReturningUnified, TypedFfi };
enum class PaddingType : uint8_t { Invalid, Valid, Same };  // padding_type=PADDING_SAME

// result_accuracy={tolerance={atol=0,rtol=0,ulps=10}} or {mode=highest}
struct ResultAccuracy {
  enum class Mode : uint8_t { Default, Highest, Tolerance } mode = Mode::Default;
  double atol = 0, rtol = 0;
  int64_t ulps = 0;
  bool operator==(const ResultAccuracy&) const = default;
};

// A word that HLO writes without quotes (algorithm=dot_bf16_bf16_f32, mode=cross_replica); a plain std::string is
// quoted.
struct Keyword : std::string {
  using std::string::string;
  using std::string::operator=;
  Keyword() = default;
  Keyword(std::string word) : std::string(std::move(word)) {}
};

// The number of a channel; 0 is none, unless the text said channel_id=0.
struct ChannelId {
  int64_t id = 0;
  bool stated = false;
  ChannelId() = default;
  ChannelId(int64_t number) : id(number), stated(number != 0) {}
  operator int64_t() const { return id; }
  std::string ToString() const { return std::to_string(id); }
  bool operator==(const ChannelId&) const = default;
  template <std::integral N>
  bool operator==(N number) const {
    return id == number;
  }
};

// Text kept as it came, for attributes whose inside no part of Strop reads (sparsity, domain metadata, ...).
struct Verbatim {
  std::string text;
  bool operator==(const Verbatim&) const = default;
};

// ---- fields ---------------------------------------------------------------------------------------------------------

// Whether an attribute may be left out of the text:
//   kRequired  always printed, and refused if missing
//   kAlways    always printed, may be missing
//   kOptional  printed only if it differs from the struct's default
enum class Presence : uint8_t { kRequired, kAlways, kOptional };

template <class S, class M>
struct Field {
  std::string_view name;
  M S::* member;
  Presence presence = Presence::kRequired;
};
template <class S, class M>
Field(const char*, M S::*) -> Field<S, M>;
template <class S, class M>
Field(const char*, M S::*, Presence) -> Field<S, M>;

// ---- one struct an op (or family) -----------------------------------------------------------------------------------
// Order of fields is the order of XLA's printer.

#define STROP_ATTRS(S) bool operator==(const S&) const = default

struct NoAttrs {
  static constexpr auto fields() { return std::tuple{}; }
  STROP_ATTRS(NoAttrs);
};

struct AccuracyAttrs {
  ResultAccuracy result_accuracy;
  static constexpr auto fields() {
    return std::tuple{Field{"result_accuracy", &AccuracyAttrs::result_accuracy, Presence::kOptional}};
  }
  STROP_ATTRS(AccuracyAttrs);
};

// broadcast, concatenate, transpose, reverse, reduce, map, get-dimension-size, ...
struct DimensionsAttrs {
  Dims dimensions;
  static constexpr auto fields() { return std::tuple{Field{"dimensions", &DimensionsAttrs::dimensions}}; }
  STROP_ATTRS(DimensionsAttrs);
};

struct ReducePrecisionAttrs {
  int64_t exponent_bits = 0, mantissa_bits = 0;
  static constexpr auto fields() {
    return std::tuple{Field{"exponent_bits", &ReducePrecisionAttrs::exponent_bits},
                      Field{"mantissa_bits", &ReducePrecisionAttrs::mantissa_bits}};
  }
  STROP_ATTRS(ReducePrecisionAttrs);
};

struct CompareAttrs {
  CompareDirection direction = CompareDirection::Eq;
  CompareOrder order = CompareOrder::Default;
  static constexpr auto fields() {
    return std::tuple{Field{"direction", &CompareAttrs::direction},
                      Field{"type", &CompareAttrs::order, Presence::kOptional}};
  }
  STROP_ATTRS(CompareAttrs);
};

struct ConstantAttrs {  // printed between the parentheses: constant({1, 2})
  Literal literal;
  bool elided = false;  // the text said {...}, and is printed so again; large ones have no values (Literal::has_values)
  static constexpr auto fields() { return std::tuple{}; }
  STROP_ATTRS(ConstantAttrs);
};

struct IotaAttrs {
  int64_t dimension = 0;
  static constexpr auto fields() { return std::tuple{Field{"iota_dimension", &IotaAttrs::dimension}}; }
  STROP_ATTRS(IotaAttrs);
};

struct ParameterAttrs {  // parameter(number)
  int64_t number = 0;
  std::vector<bool> replicated_at_leaf_buffers;
  static constexpr auto fields() {
    return std::tuple{Field{"parameter_replication", &ParameterAttrs::replicated_at_leaf_buffers, Presence::kOptional}};
  }
  STROP_ATTRS(ParameterAttrs);
};

struct CopyAttrs {
  int64_t cross_program_prefetch_index = -1;
  static constexpr auto fields() {
    return std::tuple{
        Field{"cross_program_prefetch_index", &CopyAttrs::cross_program_prefetch_index, Presence::kOptional}};
  }
  STROP_ATTRS(CopyAttrs);
};

struct DynamicSliceAttrs {
  Dims sizes;
  static constexpr auto fields() { return std::tuple{Field{"dynamic_slice_sizes", &DynamicSliceAttrs::sizes}}; }
  STROP_ATTRS(DynamicSliceAttrs);
};

struct GatherAttrs {
  Dims offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims, start_indices_batching_dims;
  int64_t index_vector_dim = 0;
  Dims slice_sizes;
  bool indices_are_sorted = false;
  static constexpr auto fields() {
    using A = GatherAttrs;
    return std::tuple{Field{"offset_dims", &A::offset_dims},
                      Field{"collapsed_slice_dims", &A::collapsed_slice_dims},
                      Field{"start_index_map", &A::start_index_map},
                      Field{"operand_batching_dims", &A::operand_batching_dims, Presence::kOptional},
                      Field{"start_indices_batching_dims", &A::start_indices_batching_dims, Presence::kOptional},
                      Field{"index_vector_dim", &A::index_vector_dim},
                      Field{"slice_sizes", &A::slice_sizes},
                      Field{"indices_are_sorted", &A::indices_are_sorted, Presence::kOptional}};
  }
  STROP_ATTRS(GatherAttrs);
};

struct ScatterAttrs {
  Dims update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims, input_batching_dims,
      scatter_indices_batching_dims;
  int64_t index_vector_dim = 0;
  bool indices_are_sorted = false;
  bool unique_indices = false;
  static constexpr auto fields() {
    using A = ScatterAttrs;
    return std::tuple{Field{"update_window_dims", &A::update_window_dims},
                      Field{"inserted_window_dims", &A::inserted_window_dims},
                      Field{"scatter_dims_to_operand_dims", &A::scatter_dims_to_operand_dims},
                      Field{"input_batching_dims", &A::input_batching_dims, Presence::kOptional},
                      Field{"scatter_indices_batching_dims", &A::scatter_indices_batching_dims, Presence::kOptional},
                      Field{"index_vector_dim", &A::index_vector_dim},
                      Field{"indices_are_sorted", &A::indices_are_sorted, Presence::kOptional},
                      Field{"unique_indices", &A::unique_indices, Presence::kOptional}};
  }
  STROP_ATTRS(ScatterAttrs);
};

struct PadAttrs {
  PaddingConfig padding;
  static constexpr auto fields() { return std::tuple{Field{"padding", &PadAttrs::padding}}; }
  STROP_ATTRS(PadAttrs);
};

struct ReshapeAttrs {
  int64_t inferred_dimension = -1;
  static constexpr auto fields() {
    return std::tuple{Field{"inferred_dimension", &ReshapeAttrs::inferred_dimension, Presence::kOptional}};
  }
  STROP_ATTRS(ReshapeAttrs);
};

struct SliceAttrs {
  SliceDims slice;
  static constexpr auto fields() { return std::tuple{Field{"slice", &SliceAttrs::slice}}; }
  STROP_ATTRS(SliceAttrs);
};

struct ConvolutionAttrs {
  Window window;
  ConvDimLabels dim_labels;
  int64_t feature_group_count = 1;
  int64_t batch_group_count = 1;
  Keyword convolution_kind;  // empty when unset
  PrecisionConfig operand_precision;
  Keyword algorithm;
  Verbatim sparsity_config;
  static constexpr auto fields() {
    using A = ConvolutionAttrs;
    return std::tuple{Field{"window", &A::window, Presence::kOptional},
                      Field{"dim_labels", &A::dim_labels},
                      Field{"feature_group_count", &A::feature_group_count, Presence::kOptional},
                      Field{"batch_group_count", &A::batch_group_count, Presence::kOptional},
                      Field{"convolution_kind", &A::convolution_kind, Presence::kOptional},
                      Field{"operand_precision", &A::operand_precision, Presence::kOptional},
                      Field{"algorithm", &A::algorithm, Presence::kOptional},
                      Field{"sparsity_config", &A::sparsity_config, Presence::kOptional}};
  }
  STROP_ATTRS(ConvolutionAttrs);
};

struct DotAttrs {
  Dims lhs_batch, lhs_contracting, rhs_batch, rhs_contracting;
  PrecisionConfig operand_precision;
  Keyword algorithm;  // "dot_bf16_bf16_f32_x3"; empty when unset
  Verbatim sparsity;
  static constexpr auto fields() {
    using A = DotAttrs;
    return std::tuple{Field{"lhs_batch_dims", &A::lhs_batch, Presence::kOptional},
                      Field{"lhs_contracting_dims", &A::lhs_contracting, Presence::kAlways},
                      Field{"rhs_batch_dims", &A::rhs_batch, Presence::kOptional},
                      Field{"rhs_contracting_dims", &A::rhs_contracting, Presence::kAlways},
                      Field{"sparsity", &A::sparsity, Presence::kOptional},
                      Field{"operand_precision", &A::operand_precision, Presence::kOptional},
                      Field{"algorithm", &A::algorithm, Presence::kOptional}};
  }
  STROP_ATTRS(DotAttrs);
};

struct RaggedDotAttrs {
  Dims lhs_batch, lhs_contracting, rhs_batch, rhs_contracting, lhs_ragged, rhs_group;
  PrecisionConfig operand_precision;
  static constexpr auto fields() {
    using A = RaggedDotAttrs;
    return std::tuple{Field{"lhs_batch_dims", &A::lhs_batch, Presence::kOptional},
                      Field{"lhs_contracting_dims", &A::lhs_contracting, Presence::kAlways},
                      Field{"rhs_batch_dims", &A::rhs_batch, Presence::kOptional},
                      Field{"rhs_contracting_dims", &A::rhs_contracting, Presence::kAlways},
                      Field{"lhs_ragged_dims", &A::lhs_ragged, Presence::kOptional},
                      Field{"rhs_group_dims", &A::rhs_group, Presence::kOptional},
                      Field{"operand_precision", &A::operand_precision, Presence::kOptional}};
  }
  STROP_ATTRS(RaggedDotAttrs);
};

struct WindowAttrs {
  Window window;
  static constexpr auto fields() { return std::tuple{Field{"window", &WindowAttrs::window, Presence::kOptional}}; }
  STROP_ATTRS(WindowAttrs);
};

struct ScanAttrs {
  Dims dimensions;
  bool is_reverse = false;
  int64_t num_carries = 0;
  Verbatim is_associative;  // tri-state in XLA: unset, true, false
  static constexpr auto fields() {
    using A = ScanAttrs;
    return std::tuple{Field{"dimensions", &A::dimensions}, Field{"num_carries", &A::num_carries},
                      Field{"is_reverse", &A::is_reverse, Presence::kOptional},
                      Field{"is_associative", &A::is_associative, Presence::kOptional}};
  }
  STROP_ATTRS(ScanAttrs);
};

struct SortAttrs {
  Dims dimensions;
  bool is_stable = false;
  static constexpr auto fields() {
    return std::tuple{Field{"dimensions", &SortAttrs::dimensions},
                      Field{"is_stable", &SortAttrs::is_stable, Presence::kOptional}};
  }
  STROP_ATTRS(SortAttrs);
};

struct TopKAttrs {
  int64_t k = 0;
  bool largest = true;
  bool is_stable = false;
  static constexpr auto fields() {
    return std::tuple{Field{"k", &TopKAttrs::k}, Field{"largest", &TopKAttrs::largest, Presence::kAlways},
                      Field{"is_stable", &TopKAttrs::is_stable, Presence::kOptional}};
  }
  STROP_ATTRS(TopKAttrs);
};

struct BatchNormAttrs {
  float epsilon = 0;
  int64_t feature_index = 0;
  static constexpr auto fields() {
    return std::tuple{Field{"epsilon", &BatchNormAttrs::epsilon},
                      Field{"feature_index", &BatchNormAttrs::feature_index}};
  }
  STROP_ATTRS(BatchNormAttrs);
};

struct CholeskyAttrs {
  bool lower = false;
  static constexpr auto fields() { return std::tuple{Field{"lower", &CholeskyAttrs::lower, Presence::kOptional}}; }
  STROP_ATTRS(CholeskyAttrs);
};

struct FftAttrs {
  FftType type = FftType::Fft;
  Dims length;
  static constexpr auto fields() {
    return std::tuple{Field{"fft_type", &FftAttrs::type}, Field{"fft_length", &FftAttrs::length}};
  }
  STROP_ATTRS(FftAttrs);
};

struct TriangularSolveAttrs {
  bool left_side = false, lower = false, unit_diagonal = false;
  TransposeA transpose_a = TransposeA::NoTranspose;
  static constexpr auto fields() {
    using A = TriangularSolveAttrs;
    return std::tuple{Field{"left_side", &A::left_side, Presence::kOptional},
                      Field{"lower", &A::lower, Presence::kOptional},
                      Field{"unit_diagonal", &A::unit_diagonal, Presence::kOptional},
                      Field{"transpose_a", &A::transpose_a, Presence::kAlways}};
  }
  STROP_ATTRS(TriangularSolveAttrs);
};

struct RngAttrs {
  RngDistribution distribution = RngDistribution::Invalid;
  static constexpr auto fields() { return std::tuple{Field{"distribution", &RngAttrs::distribution}}; }
  STROP_ATTRS(RngAttrs);
};

struct RngBitGeneratorAttrs {
  RngAlgorithm algorithm = RngAlgorithm::Default;
  static constexpr auto fields() { return std::tuple{Field{"algorithm", &RngBitGeneratorAttrs::algorithm}}; }
  STROP_ATTRS(RngBitGeneratorAttrs);
};

struct RngStateAttrs {
  int64_t delta = 0;
  static constexpr auto fields() { return std::tuple{Field{"delta", &RngStateAttrs::delta}}; }
  STROP_ATTRS(RngStateAttrs);
};

struct DomainAttrs {
  Verbatim domain;  // {kind="sharding", entry={...}, exit={...}}
  static constexpr auto fields() { return std::tuple{Field{"domain", &DomainAttrs::domain}}; }
  STROP_ATTRS(DomainAttrs);
};

struct GetTupleElementAttrs {
  int64_t index = 0;
  static constexpr auto fields() { return std::tuple{Field{"index", &GetTupleElementAttrs::index}}; }
  STROP_ATTRS(GetTupleElementAttrs);
};

struct AsyncAttrs {
  std::string async_execution_thread;  // empty: "main", not printed
  OutputOperandAliasing output_to_operand_aliasing;
  static constexpr auto fields() {
    using A = AsyncAttrs;
    return std::tuple{Field{"async_execution_thread", &A::async_execution_thread, Presence::kOptional},
                      Field{"output_to_operand_aliasing", &A::output_to_operand_aliasing, Presence::kOptional}};
  }
  STROP_ATTRS(AsyncAttrs);
};

struct CallAttrs {
  bool is_composite = false;
  OutputOperandAliasing output_to_operand_aliasing;
  static constexpr auto fields() {
    return std::tuple{Field{"is_composite", &CallAttrs::is_composite, Presence::kOptional},
                      Field{"output_to_operand_aliasing", &CallAttrs::output_to_operand_aliasing, Presence::kOptional}};
  }
  STROP_ATTRS(CallAttrs);
};

struct ConditionalAttrs {
  // A pred index with true_computation=/false_computation=; otherwise an s32 index with branch_computations={}.
  static constexpr auto fields() { return std::tuple{}; }
  STROP_ATTRS(ConditionalAttrs);
};

struct CustomCallAttrs {
  std::string target;
  std::vector<Window> window;             // at most one
  std::vector<ConvDimLabels> dim_labels;  // at most one
  int64_t feature_group_count = 1, batch_group_count = 1;
  std::vector<Shape> operand_layout_constraints;
  bool has_layout_constraints = false;
  bool has_side_effect = false;
  OutputOperandAliasing output_to_operand_aliasing;
  PaddingType padding_type = PaddingType::Invalid;
  std::vector<Literal> literal;  // at most one
  PrecisionConfig operand_precision;
  CustomCallSchedule schedule = CustomCallSchedule::None;
  ApiVersion api_version = ApiVersion::Original;
  std::string opaque;  // backend_config of a custom call: any bytes; printed as backend_config=
  // operand_layout_constraints (which may be present and empty) stands after custom_call_target and is printed and
  // parsed by hand; these follow the rule.
  static constexpr auto fields() {
    using A = CustomCallAttrs;
    return std::tuple{Field{"window", &A::window, Presence::kOptional},
                      Field{"dim_labels", &A::dim_labels, Presence::kOptional},
                      Field{"feature_group_count", &A::feature_group_count, Presence::kOptional},
                      Field{"batch_group_count", &A::batch_group_count, Presence::kOptional},
                      Field{"operand_precision", &A::operand_precision, Presence::kOptional},
                      Field{"padding_type", &A::padding_type, Presence::kOptional},
                      Field{"custom_call_target", &A::target},
                      Field{"custom_call_has_side_effect", &A::has_side_effect, Presence::kOptional},
                      Field{"literal", &A::literal, Presence::kOptional},
                      Field{"output_to_operand_aliasing", &A::output_to_operand_aliasing, Presence::kOptional},
                      Field{"schedule", &A::schedule, Presence::kOptional},
                      Field{"api_version", &A::api_version, Presence::kOptional}};
  }
  STROP_ATTRS(CustomCallAttrs);
};

struct FusionAttrs {
  FusionKind kind = FusionKind::Loop;
  OutputOperandAliasing output_to_operand_aliasing;
  static constexpr auto fields() {
    return std::tuple{
        Field{"kind", &FusionAttrs::kind},
        Field{"output_to_operand_aliasing", &FusionAttrs::output_to_operand_aliasing, Presence::kOptional}};
  }
  STROP_ATTRS(FusionAttrs);
};

// all-gather, all-reduce, all-to-all, reduce-scatter, collective-broadcast, ragged-all-to-all and their -start forms.
struct CollectiveAttrs {
  ChannelId channel_id;
  ReplicaGroups replica_groups;
  bool constrain_layout = false;
  bool use_global_device_ids = false;
  Dims dimensions;  // all-gather, reduce-scatter: one; all-to-all: at most one; others none
  bool has_dimensions = false;
  bool has_dynamic_root = false;  // collective-broadcast
  Keyword mode;  // cross_replica, flattened_id, ...: what XLA derives from the others, where the text states it
  static constexpr auto fields() {
    using A = CollectiveAttrs;
    return std::tuple{Field{"channel_id", &A::channel_id, Presence::kOptional},
                      Field{"replica_groups", &A::replica_groups, Presence::kAlways},
                      Field{"constrain_layout", &A::constrain_layout, Presence::kOptional},
                      Field{"use_global_device_ids", &A::use_global_device_ids, Presence::kOptional},
                      Field{"has_dynamic_root", &A::has_dynamic_root, Presence::kOptional},
                      Field{"mode", &A::mode, Presence::kOptional},
                      Field{"dimensions", &A::dimensions, Presence::kOptional}};
  }
  STROP_ATTRS(CollectiveAttrs);
};

struct PermuteAttrs {
  ChannelId channel_id;
  SourceTargetPairs source_target_pairs;
  std::vector<Dims> slice_sizes;  // in-place form: {{1,128},{1,128}}
  static constexpr auto fields() {
    using A = PermuteAttrs;
    return std::tuple{Field{"channel_id", &A::channel_id, Presence::kOptional},
                      Field{"source_target_pairs", &A::source_target_pairs},
                      Field{"slice_sizes", &A::slice_sizes, Presence::kOptional}};
  }
  STROP_ATTRS(PermuteAttrs);
};

struct InfeedAttrs {
  std::string infeed_config;
  static constexpr auto fields() {
    return std::tuple{Field{"infeed_config", &InfeedAttrs::infeed_config, Presence::kOptional}};
  }
  STROP_ATTRS(InfeedAttrs);
};

struct OutfeedAttrs {
  std::string outfeed_config;
  Shape outfeed_shape;
  static constexpr auto fields() {
    return std::tuple{Field{"outfeed_shape", &OutfeedAttrs::outfeed_shape, Presence::kOptional},
                      Field{"outfeed_config", &OutfeedAttrs::outfeed_config, Presence::kOptional}};
  }
  STROP_ATTRS(OutfeedAttrs);
};

struct ChannelAttrs {
  ChannelId channel_id;
  bool is_host_transfer = false;
  static constexpr auto fields() {
    return std::tuple{Field{"channel_id", &ChannelAttrs::channel_id, Presence::kOptional},
                      Field{"is_host_transfer", &ChannelAttrs::is_host_transfer, Presence::kOptional}};
  }
  STROP_ATTRS(ChannelAttrs);
};

#undef STROP_ATTRS

// Every struct above.
// clang-format off
#define STROP_ATTRS_STRUCTS(X) \
  X(NoAttrs) X(AccuracyAttrs) X(DimensionsAttrs) X(ReducePrecisionAttrs) X(CompareAttrs) \
  X(ConstantAttrs) X(IotaAttrs) X(ParameterAttrs) X(CopyAttrs) X(DynamicSliceAttrs) X(GatherAttrs) \
  X(ScatterAttrs) X(PadAttrs) X(ReshapeAttrs) X(SliceAttrs) X(ConvolutionAttrs) X(DotAttrs) \
  X(RaggedDotAttrs) X(WindowAttrs) X(ScanAttrs) X(SortAttrs) X(TopKAttrs) X(BatchNormAttrs) \
  X(CholeskyAttrs) X(FftAttrs) X(TriangularSolveAttrs) X(RngAttrs) X(RngBitGeneratorAttrs) \
  X(RngStateAttrs) X(DomainAttrs) X(GetTupleElementAttrs) X(AsyncAttrs) X(CallAttrs) \
  X(ConditionalAttrs) X(CustomCallAttrs) X(FusionAttrs) X(CollectiveAttrs) X(PermuteAttrs) \
  X(InfeedAttrs) X(OutfeedAttrs) X(ChannelAttrs)
// clang-format on

enum class AttrsKind : uint8_t {
#define STROP_KIND(S) k##S,
  STROP_ATTRS_STRUCTS(STROP_KIND)
#undef STROP_KIND
};

template <class S>
struct AttrsKindOf;
#define STROP_KIND_OF(S)                               \
  template <>                                          \
  struct AttrsKindOf<S> {                              \
    static constexpr AttrsKind kind = AttrsKind::k##S; \
  };
STROP_ATTRS_STRUCTS(STROP_KIND_OF)
#undef STROP_KIND_OF

template <class S>
concept AttrsStruct = requires { AttrsKindOf<S>::kind; };

// One of the structs, as a value. Copies share it until one of them is changed, so a clone costs a reference count. Not
// a std::variant: forty alternatives of it cost every file that sees an instruction a second of compiling.
class Attrs {
 public:
  Attrs() = default;  // NoAttrs
  template <AttrsStruct S>
  Attrs(S value);  // compiled in attrs.cc, for each struct

  AttrsKind kind() const { return kind_; }
  template <AttrsStruct S>
  bool is() const {
    return kind_ == AttrsKindOf<S>::kind;
  }
  // The struct, if it is an S; else null, or std::bad_variant_access, which means a bug of ours.
  template <AttrsStruct S>
  const S* get_if() const {
    return is<S>() ? static_cast<const S*>(value_.get()) : nullptr;
  }
  template <AttrsStruct S>
  const S& get() const {
    if (!is<S>()) WrongKind();
    return *static_cast<const S*>(value_.get());
  }
  // To change it: other copies keep what they have.
  template <AttrsStruct S>
  S* get_if() {
    if (!is<S>()) return nullptr;
    Unshare();
    return static_cast<S*>(value_.get());
  }

  // f(struct)
  template <class F>
  decltype(auto) Visit(F&& f) const {
    switch (kind_) {
#define STROP_VISIT(S) \
  case AttrsKind::k##S: return f(*static_cast<const S*>(value_.get()));
      STROP_ATTRS_STRUCTS(STROP_VISIT)
#undef STROP_VISIT
    }
    WrongKind();
  }
  template <class F>
  decltype(auto) Visit(F&& f) {
    Unshare();
    switch (kind_) {
#define STROP_VISIT(S) \
  case AttrsKind::k##S: return f(*static_cast<S*>(value_.get()));
      STROP_ATTRS_STRUCTS(STROP_VISIT)
#undef STROP_VISIT
    }
    WrongKind();
  }

  bool operator==(const Attrs& other) const;

 private:
  [[noreturn]] static void WrongKind();
  static const std::shared_ptr<void>& None();  // the one NoAttrs that all share
  void Unshare();

  AttrsKind kind_ = AttrsKind::kNoAttrs;
  std::shared_ptr<void> value_ = None();
};

}  // namespace strop
