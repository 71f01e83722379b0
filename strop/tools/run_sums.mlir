// Long sums of floats are cut into partial sums: 262144 tenths one after the other make 26149.6 instead of 26214.4.
// RUN: strop run --check %s | FileCheck %s
// CHECK: 3 checks passed

func.func @main() {
  %scale = stablehlo.constant dense<1.0e-1> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>

  // Down the columns, along the rows, and across both ends.
  %i = stablehlo.iota dim = 0 : tensor<262144x4xf32>
  %s = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> tensor<262144x4xf32>
  %x0 = stablehlo.add %i, %s : tensor<262144x4xf32>
  %x = stablehlo.minimum %x0, %s : tensor<262144x4xf32>
  %columns = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<262144x4xf32>, tensor<f32>) -> tensor<4xf32>
  check.expect_almost_eq_const %columns, dense<26214.4> : tensor<4xf32>, tolerance = 0.05

  %j = stablehlo.iota dim = 1 : tensor<2x262144xf32>
  %t = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> tensor<2x262144xf32>
  %y0 = stablehlo.add %j, %t : tensor<2x262144xf32>
  %y = stablehlo.minimum %y0, %t : tensor<2x262144xf32>
  %rows = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x262144xf32>, tensor<f32>) -> tensor<2xf32>
  check.expect_almost_eq_const %rows, dense<26214.4> : tensor<2xf32>, tolerance = 0.05

  %k = stablehlo.iota dim = 0 : tensor<16384x3x16xf32>
  %u = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> tensor<16384x3x16xf32>
  %z0 = stablehlo.add %k, %u : tensor<16384x3x16xf32>
  %z = stablehlo.minimum %z0, %u : tensor<16384x3x16xf32>
  %both = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [0, 2] : (tensor<16384x3x16xf32>, tensor<f32>) -> tensor<3xf32>
  check.expect_almost_eq_const %both, dense<26214.4> : tensor<3xf32>, tolerance = 0.05
  return
}
