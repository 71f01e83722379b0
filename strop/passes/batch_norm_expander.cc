// Batch normalisation as reductions and elementwise ops, which fuse.
//
//   training   mean = sum(x) / n; var = sum((x - mean)^2) / n; y = (x - mean) * rsqrt(var + eps) * scale + offset
//   inference  y = (x - mean) * rsqrt(var + eps) * scale + offset
//   grad       dx = scale * rsqrt(var + eps) * (dy - sum(dy) / n - (x - mean) / (var + eps) * sum(dy * (x - mean)) / n)
//              dscale = sum(dy * (x - mean)) * rsqrt(var + eps), doffset = sum(dy)
//
// The variance is that of the differences from the mean, not E[x^2] - E[x]^2: the second loses all digits where the
// mean is large. f16 and bf16 are computed in f32, results are rounded once.
#include "strop/ir/builder.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

class Expander {
 public:
  explicit Expander(Instruction* i)
      : i_(i), b_(i->parent()), feature_(i->attrs<BatchNormAttrs>().feature_index), shape_(i->operand(0)->shape()) {
    b_.set_insert_before(i);
    b_.set_metadata(i->shared_metadata());
    const ElementType type = shape_.type();
    compute_ = Bits(type) < 32 ? ElementType::F32 : type;
    count_ = 1;
    for (int64_t d = 0; d < shape_.rank(); ++d) {
      if (d == feature_) continue;
      reduced_.push_back(d);
      count_ *= static_cast<double>(shape_.dim(d));
    }
  }

  Result<Instruction*> Run() {
    Instruction* result = i_->op() == Op::BatchNormTraining    ? Training()
                          : i_->op() == Op::BatchNormInference ? Inference()
                                                               : Grad();
    STROP_TRY(b_.status());
    return result;
  }

 private:
  // operand k in the type of the computation
  Instruction* In(int64_t k) { return b_.Convert(i_->operand(k), compute_); }
  // a vector over the features, or a scalar, as wide as the operand
  Instruction* Wide(Instruction* v) {
    return b_.Broadcast(v, shape_.dims(), v && v->shape().IsScalar() ? Dims{} : Dims{feature_});
  }
  Instruction* Vector(double value) { return b_.Splat(compute_, value, {shape_.dim(feature_)}); }
  Instruction* Sub(Instruction* x, Instruction* y) { return b_.Make(Op::Subtract, {x, y}); }
  Instruction* Mul(Instruction* x, Instruction* y) { return b_.Make(Op::Multiply, {x, y}); }
  Instruction* Add(Instruction* x, Instruction* y) { return b_.Make(Op::Add, {x, y}); }
  Instruction* Mean(Instruction* sum) { return b_.Make(Op::Divide, {sum, Vector(count_)}); }

  Instruction* Sum(Instruction* x) {
    if (!add_) {
      add_ = i_->module()->AddComputation("add");
      Builder body(add_);
      const Shape scalar = Shape::Scalar(compute_);
      body.Make(Op::Add, {body.Parameter(0, scalar), body.Parameter(1, scalar)});
      if (!body.Finish().ok()) return nullptr;
    }
    return b_.Reduce(x, b_.Scalar(compute_, 0), reduced_, add_);
  }
  // 1 / sqrt(var + epsilon)
  Instruction* InverseDeviation(Instruction* variance) {
    return b_.Make(Op::Rsqrt, {Add(variance, Vector(i_->attrs<BatchNormAttrs>().epsilon))}, AccuracyAttrs{});
  }
  Instruction* Normalised(Instruction* centred, Instruction* inverse, Instruction* scale, Instruction* offset) {
    Instruction* y = Add(Mul(centred, Wide(Mul(inverse, scale))), Wide(offset));
    return b_.Convert(y, shape_.type());
  }

  Instruction* Training() {
    Instruction* x = In(0);
    Instruction* mean = Mean(Sum(x));
    Instruction* centred = Sub(x, Wide(mean));
    Instruction* variance = Mean(Sum(Mul(centred, centred)));
    Instruction* y = Normalised(centred, InverseDeviation(variance), In(1), In(2));
    const ElementType statistics = i_->shape().element(1).type();
    Instruction* parts[] = {y, b_.Convert(mean, statistics), b_.Convert(variance, statistics)};
    return b_.Tuple(parts);
  }

  Instruction* Inference() {
    Instruction* centred = Sub(In(0), Wide(In(3)));
    return Normalised(centred, InverseDeviation(In(4)), In(1), In(2));
  }

  // operands: x, scale, mean, variance, dy
  Instruction* Grad() {
    Instruction* dy = In(4);
    Instruction* centred = Sub(In(0), Wide(In(2)));
    Instruction* inverse = InverseDeviation(In(3));
    Instruction* sum_dy = Sum(dy);
    Instruction* sum_dy_centred = Sum(Mul(dy, centred));
    Instruction* correlation = Mul(Mean(sum_dy_centred), Mul(inverse, inverse));
    Instruction* inner = Sub(Sub(dy, Wide(Mean(sum_dy))), Mul(centred, Wide(correlation)));
    Instruction* dx = b_.Convert(Mul(inner, Wide(Mul(In(1), inverse))), shape_.type());
    const ElementType statistics = i_->shape().element(1).type();
    Instruction* parts[] = {dx, b_.Convert(Mul(sum_dy_centred, inverse), statistics), b_.Convert(sum_dy, statistics)};
    return b_.Tuple(parts);
  }

  Instruction* i_;
  Builder b_;
  int64_t feature_;
  Shape shape_;
  ElementType compute_;
  Dims reduced_;
  double count_;
  Computation* add_ = nullptr;
};

struct BatchNormExpander final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t expanded = 0;
    const std::vector<Computation*> computations = module.computations();  // reducers are added on the way
    for (Computation* c : computations) {
      for (Instruction* i : c->instructions()) {
        const bool batch_norm =
            i->op() == Op::BatchNormTraining || i->op() == Op::BatchNormInference || i->op() == Op::BatchNormGrad;
        if (!batch_norm || !i->operand(0)->shape().IsStatic()) continue;
        STROP_ASSIGN(Instruction * value, Expander(i).Run());
        c->Replace(i, value);
        ++expanded;
      }
    }
    context.Count("batch-norm-expander.expanded", expanded);
    return expanded > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeBatchNormExpander() { return std::make_unique<BatchNormExpander>(); }

}  // namespace strop
