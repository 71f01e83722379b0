// Squares of elements turned in registers, by the shuffles that processors have.
#pragma once
#include <vector>

#include "strop/codegen/vector_builder.h"

namespace strop {

// rows[i] holds element i of each column, a column a lane; as many rows as lanes. Afterwards rows[c] holds column c.
// (log2(lanes) stages that exchange parts of pairs of vectors: Eklundh, "A Fast Computer Method for Matrix
// Transposing", 1972.)
void Turn(VectorBuilder& b, std::vector<llvm::Value*>& rows);

// The same for each `piece` lanes by themselves (a power of two, at most 16 bytes), where there are so many rows:
// lanes p * piece onwards of rows[c] become column p * piece + c.
void TurnPieces(VectorBuilder& b, std::vector<llvm::Value*>& rows, int piece);

// rows[i] holds runs of so many lanes, one behind the other, as many as there are rows (a power of two) and perhaps
// lanes that no run fills. Afterwards rows[c] holds run c of each row, in the order of the rows.
void TurnRuns(VectorBuilder& b, std::vector<llvm::Value*>& rows, int run);

}  // namespace strop
