// RUN: strop translate %s --function=second | FileCheck %s --check-prefix=HLO
// RUN: strop translate %s --to=mlir | FileCheck %s --check-prefix=MLIR
// RUN: strop translate %s --to=mlir -o %t.mlir && strop translate %t.mlir --to=mlir | FileCheck %s --check-prefix=MLIR
// RUN: strop check %s
// RUN: not strop translate %s 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not strop translate %s --function=third 2>&1 | FileCheck %s --check-prefix=THIRD
// RUN: strop translate %s --function=first -o %t.hlo && not strop translate %t.hlo --to=mlir 2>&1 | FileCheck %s --check-prefix=HLOIN
// HLO: ROOT {{.*}} s32[2]{{.*}} multiply(
// MLIR: "stablehlo.add"
// MLIR: "stablehlo.multiply"
// NONE: several functions, but none is called @main
// THIRD: no function @third
// HLOIN: only MLIR is written as MLIR

func.func @first(%a: tensor<2xi32>) -> tensor<2xi32> {
  %0 = stablehlo.add %a, %a : tensor<2xi32>
  return %0 : tensor<2xi32>
}
func.func @second(%a: tensor<2xi32>) -> tensor<2xi32> {
  %0 = stablehlo.multiply %a, %a : tensor<2xi32>
  return %0 : tensor<2xi32>
}
