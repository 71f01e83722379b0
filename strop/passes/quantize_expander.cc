// Custom calls that quantise, as PyTorch/XLA and older StableHLO write them into HLO, as plain arithmetic:
//
//   uniform_quantize    clamp(round_even(x * (1 / scale)) + zero_point, storage_min, storage_max), zero_point for NaN
//   uniform_dequantize  (q - zero_point) * scale
//
// under stablehlo. or mhlo.; the numbers stand in the text of the call:
// {scale=[0.1],zero_point=[-128],storage_min=-128,
// ...}, with several scales along quantization_dimension. Quantised numbers have the element type of the result, which
// may be f32. The arithmetic is PyTorch's, unlike that of a uniform_quantize of StableHLO: the reciprocal of the scale
// is what multiplies, and the rounding comes before the zero point.
#include "strop/ir/builder.h"
#include "strop/ir/config_value.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

class Expander {
 public:
  explicit Expander(Instruction* i) : i_(i), b_(i->parent()), shape_(i->shape()) {
    b_.set_insert_before(i);
    b_.set_metadata(i->shared_metadata());
  }

  Result<Instruction*> Run(bool quantize) {
    STROP_TRY(Read());
    Instruction* x = i_->operand(0);
    const ElementType type = quantize ? x->shape().type() : shape_.type();
    if (!IsFloat(type)) return Refuse("no float is quantized: ", i_->operand(0)->shape(), " to ", shape_);
    if (quantize) {
      std::vector<double> inverse = scale_;
      for (double& number : inverse) number = 1 / number;
      Instruction* steps = b_.Make(Op::RoundNearestEven, {b_.Make(Op::Multiply, {x, Wide(inverse, type)})});
      Instruction* zero = Wide(zero_point_, type);
      Instruction* q = b_.Make(Op::Clamp, {Wide({low_}, type), b_.Make(Op::Add, {steps, zero}), Wide({high_}, type)});
      q = b_.Make(Op::Select, {b_.Compare(x, x, CompareDirection::Eq), q, zero});
      x = b_.Convert(q, shape_.type());
    } else {
      Instruction* steps = b_.Make(Op::Subtract, {b_.Convert(x, type), Wide(zero_point_, type)});
      x = b_.Make(Op::Multiply, {steps, Wide(scale_, type)});
    }
    STROP_TRY(b_.status());
    return x;
  }

 private:
  template <class... Args>
  Status Refuse(const Args&... why) const {
    return InvalidArgument(i_->attrs<CustomCallAttrs>().target, ": ", StrCat(why...)).At(i_->Where());
  }

  Result<std::vector<double>> Numbers(std::string_view key) const {
    const std::string& opaque = i_->attrs<CustomCallAttrs>().opaque;
    std::optional<std::string> text = ConfigValue(opaque.empty() ? i_->backend_config() : opaque, key);
    std::vector<double> numbers;
    if (!text) return numbers;
    std::string_view list = *text;
    if (list.size() >= 2 && list.front() == '[' && list.back() == ']') list = list.substr(1, list.size() - 2);
    for (std::string_view item : Split(list, ',')) {
      const std::optional<double> number = ParseNumber<double>(Trim(item));
      if (!number) return Refuse(key, "=", *text, " is no list of numbers");
      numbers.push_back(*number);
    }
    return numbers;
  }
  Result<double> NumberOr(std::string_view key, double otherwise) const {
    STROP_ASSIGN(std::vector<double> numbers, Numbers(key));
    return numbers.empty() ? otherwise : numbers[0];
  }

  Status Read() {
    STROP_ASSIGN(scale_, Numbers("scale"));
    STROP_ASSIGN(zero_point_, Numbers("zero_point"));
    STROP_ASSIGN(low_, NumberOr("storage_min", -128));
    STROP_ASSIGN(high_, NumberOr("storage_max", 127));
    STROP_ASSIGN(double dimension, NumberOr("quantization_dimension", -1));
    if (zero_point_.empty()) zero_point_.assign(scale_.size(), 0);
    if (scale_.empty() || scale_.size() != zero_point_.size()) return Refuse("needs as many zero points as scales");
    if (i_->operand_count() != 1 || !shape_.IsArray() || i_->operand(0)->shape().dims() != shape_.dims())
      return Refuse("takes one array and gives one of the same size");
    if (scale_.size() == 1) return OkStatus();
    if (!(dimension >= 0 && dimension < static_cast<double>(shape_.rank())) ||
        shape_.dim(static_cast<int64_t>(dimension)) != static_cast<int64_t>(scale_.size()))
      return Refuse("dimension ", dimension, " of ", shape_, " has not the ", scale_.size(), " indices of its scales");
    dimension_ = static_cast<int64_t>(dimension);
    return OkStatus();
  }

  // One number for all, or one for each index of the dimension.
  Instruction* Wide(const std::vector<double>& numbers, ElementType type) {
    if (numbers.size() == 1) return b_.Splat(type, numbers[0], shape_.dims());
    Literal literal = *Literal::Zeros(Shape::Array(type, {static_cast<int64_t>(numbers.size())}));
    for (size_t n = 0; n < numbers.size(); ++n) literal.SetDouble(static_cast<int64_t>(n), numbers[n]);
    return b_.Broadcast(b_.Constant(std::move(literal)), shape_.dims(), {dimension_});
  }

  Instruction* i_;
  Builder b_;
  Shape shape_;
  std::vector<double> scale_, zero_point_;
  double low_ = 0, high_ = 0;
  int64_t dimension_ = -1;
};

struct QuantizeExpander final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t expanded = 0;
    for (Computation* c : module.computations()) {
      for (Instruction* i : c->instructions()) {
        if (i->op() != Op::CustomCall || !i->shape().IsStatic()) continue;
        const std::string& target = i->attrs<CustomCallAttrs>().target;
        const bool quantize = target == "stablehlo.uniform_quantize" || target == "mhlo.uniform_quantize";
        if (!quantize && target != "stablehlo.uniform_dequantize" && target != "mhlo.uniform_dequantize") continue;
        STROP_ASSIGN(Instruction * value, Expander(i).Run(quantize));
        c->Replace(i, value);
        ++expanded;
      }
    }
    context.Count("quantize-expander.expanded", expanded);
    return expanded > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeQuantizeExpander() { return std::make_unique<QuantizeExpander>(); }

}  // namespace strop
