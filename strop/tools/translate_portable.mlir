// A program becomes a portable artifact and comes back as it was, from the newest release and from the first.
// RUN: strop translate --to=portable %s -o %t.mlirbc
// RUN: strop translate --to=mlir %s > %t.before
// RUN: strop translate --to=mlir %t.mlirbc > %t.after
// RUN: cmp %t.before %t.after
// RUN: strop translate %s --target=1.0.0 -o %t.old.mlirbc
// RUN: strop translate --to=mlir %t.old.mlirbc > %t.after
// RUN: cmp %t.before %t.after
// RUN: head -c 40 %t.old.mlirbc | FileCheck %s --check-prefix=PRODUCER
// RUN: strop check %t.old.mlirbc
// PRODUCER: StableHLO_v1.0.0
module @several attributes {mhlo.num_partitions = 1 : i32, jax.uses_shape_polymorphism = true} {
  func.func @main(%arg0: tensor<4x3xf32> {mhlo.layout_mode = "default"}, %arg1: tensor<?x8xbf16>, %arg2: tensor<2xi32>)
      -> (tensor<4x2xf32>, tensor<?x8xbf16>, tensor<4xi1>, tensor<1x1x2x2xf32>) {
    %w = stablehlo.constant dense<[[1.0, 2.0], [3.0, -0.0], [0x7FC00000, 1.5]]> : tensor<3x2xf32>
    %bits = stablehlo.constant dense<[true, false, true, true]> : tensor<4xi1>
    %splat = stablehlo.constant dense<false> : tensor<4xi1>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %none = stablehlo.constant dense<> : tensor<0x3xf64>
    %0 = stablehlo.dot_general %arg0, %w, contracting_dims = [1] x [0], precision = [DEFAULT, HIGHEST] : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
    %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x2xf32>, tensor<f32>) -> tensor<4xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<4xf32>) -> tensor<4x2xf32>
    %3 = call @negated(%2) : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %4 = stablehlo.dynamic_broadcast_in_dim %arg1, %arg2, dims = [0, 1] : (tensor<?x8xbf16>, tensor<2xi32>) -> tensor<?x8xbf16>
    %5 = stablehlo.exponential %4 : tensor<?x8xbf16>
    %6 = stablehlo.and %bits, %splat : tensor<4xi1>
    %7 = stablehlo.iota dim = 3 : tensor<1x1x4x4xf32>
    %8 = "stablehlo.reduce_window"(%7, %zero) <{window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %m : tensor<f32>
    }) : (tensor<1x1x4x4xf32>, tensor<f32>) -> tensor<1x1x2x2xf32>
    %9 = stablehlo.custom_call @Sharding(%6) {mhlo.sharding = "{replicated}", api_version = 2 : i32} : (tensor<4xi1>) -> tensor<4xi1>
    return %3, %5, %9, %8 : tensor<4x2xf32>, tensor<?x8xbf16>, tensor<4xi1>, tensor<1x1x2x2xf32>
  }
  func.func private @negated(%arg0: tensor<4x2xf32>) -> tensor<4x2xf32> {
    %0 = stablehlo.negate %arg0 : tensor<4x2xf32>
    %1 = stablehlo.slice %0 [0:4, 0:2] : (tensor<4x2xf32>) -> tensor<4x2xf32>
    return %1 : tensor<4x2xf32>
  }
}
