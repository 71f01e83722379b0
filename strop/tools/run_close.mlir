// RUN: strop run %s --check | FileCheck %s
// RUN: strop run %s --check --interpret | FileCheck %s
// RUN: sed 's/max_ulp_difference = 5, min_ulp_difference = 5/max_ulp_difference = 4/' %s > %t.mlir
// RUN: not strop run %t.mlir 2>&1 | FileCheck %s --check-prefix=FAR
// CHECK: 4 checks passed
// FAR: check.expect_close failed: element 0 is -1.7976931348623157e+308

// Distances in units in the last place are exact integers; what is not finite is as far away as can be told.
func.func @main() {
  %a = stablehlo.constant dense<[0xFFEFFFFFFFFFFFFF, 0x8000000000000001, 1.0]> : tensor<3xf64>
  %b = stablehlo.constant dense<[0xFFEFFFFFFFFFFFFA, 0x0000000000000004, 0x3FF0000000000005]> : tensor<3xf64>
  check.expect_close %a, %b, max_ulp_difference = 5, min_ulp_difference = 5 : tensor<3xf64>, tensor<3xf64>
  %inf = stablehlo.constant dense<[0x7F800000, 0x7F800000]> : tensor<2xf32>
  %far = stablehlo.constant dense<[0xFF800000, 0.0]> : tensor<2xf32>
  check.expect_close %inf, %far, max_ulp_difference = 18446744073709551615, min_ulp_difference = 18446744073709551615 : tensor<2xf32>, tensor<2xf32>

  // Of a complex number, the real part is converted.
  %z = stablehlo.constant dense<[(-1.0, 0.0), (0.0, 1.0), (2.5, 3.5)]> : tensor<3xcomplex<f32>>
  %p = stablehlo.convert %z : (tensor<3xcomplex<f32>>) -> tensor<3xi1>
  check.expect_eq_const %p, dense<[true, false, true]> : tensor<3xi1>
  %i = stablehlo.convert %z : (tensor<3xcomplex<f32>>) -> tensor<3xi32>
  check.expect_eq_const %i, dense<[-1, 0, 2]> : tensor<3xi32>
  return
}
