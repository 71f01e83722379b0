// What a release cannot say is refused, with the line of the program.
// RUN: not strop translate --to=portable --target=1.3.0 %s 2>&1 | FileCheck %s --check-prefix=TAN
// RUN: not strop translate --to=portable --target=1.7.0 %s 2>&1 | FileCheck %s --check-prefix=F4
// RUN: not strop translate --to=portable --target=2.0.0 %s 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not strop translate --to=portable --target=1.9 %s 2>&1 | FileCheck %s --check-prefix=FORM
// TAN: 'stablehlo.tan': the operation cannot be said in StableHLO 1.3 [at {{.*}}refused.mlir:12:
// F4: f4E2M1FN came with StableHLO 1.8 and cannot be said in 1.7 [at {{.*}}refused.mlir:11:
// RANGE: portable artifacts are written for StableHLO 1.0.0 to 1.{{[0-9]+}}.0, not 2.0.0
// FORM: "1.9" is no StableHLO release
func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xf4E2M1FN>
  %1 = stablehlo.tan %arg0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
