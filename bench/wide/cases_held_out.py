"""All modules of the wide set; the name is that of the split whose place it takes (README.md)."""

import attention_cases  # noqa: F401
import decode_cases  # noqa: F401
import dispatch_cases  # noqa: F401
import grid_cases  # noqa: F401
import index_cases  # noqa: F401
import length_cases  # noqa: F401
import linalg_cases  # noqa: F401
import loop_cases  # noqa: F401
import model_cases  # noqa: F401
import movement_cases  # noqa: F401
import narrow_cases  # noqa: F401
import neighbour_cases  # noqa: F401
import op_cases  # noqa: F401
import order_cases  # noqa: F401
import part_cases  # noqa: F401
import product_cases  # noqa: F401
import program_cases  # noqa: F401
import row_cases  # noqa: F401
import sample_cases  # noqa: F401
import scalar_loop_cases  # noqa: F401
import segment_cases  # noqa: F401
import several_results_cases  # noqa: F401
import short_side_cases  # noqa: F401
import simulation_cases  # noqa: F401
import type_cases  # noqa: F401
import window_cases  # noqa: F401
