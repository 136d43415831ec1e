"""A row times several panels of weights at once, as each step of a sequence alone has it.

One panel's two sums wait for each other's end; eight of them keep the processor busy. Each number
is summed as :data:`~daskdl.kernels.products.microkernel.multiply_one` does it, with its bits.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from daskdl.kernels.products.finish import added_if, all_lanes
from daskdl.kernels.products.microkernel import BYTE, COLUMNS, LANES, load, store, whole

#: Panels that are multiplied together.
TOGETHER = 4


@intrinsic
def multiply_panels(context, like, row, depth, panels, step, target, add):
    """Write, or add, a row's products with ``TOGETHER`` panels of weights.

    Arguments: an array of the dtype; the row's address and its length; the first panel's address
    and the bytes to the next one; the address of the results; whether to add to what is there.
    """
    signature = types.void(like, *[types.intp] * 5, types.boolean)

    def generate(context, builder, signature, args):
        kind = signature.args[0].dtype
        number, size = context.get_data_type(kind), kind.bitwidth // 8
        _, row, depth, panels, step, target, add = args
        vector, width = ir.VectorType(number, LANES), LANES * size
        nothing = ir.Constant(vector, [0.0] * LANES)
        to = builder.inttoptr(target, BYTE)
        places = [builder.gep(to, [whole(i * width)]) for i in range(2 * TOGETHER)]
        starts = [
            builder.inttoptr(builder.add(panels, builder.mul(step, whole(i))), BYTE)
            for i in range(TOGETHER)
        ]
        before, inner = builder.block, builder.append_basic_block("summand")
        after = builder.append_basic_block("result")
        builder.branch(inner)

        builder.position_at_end(inner)
        k = builder.phi(whole(0).type)
        totals = [builder.phi(vector) for _ in places]
        at_a = builder.gep(builder.inttoptr(row, BYTE), [builder.mul(k, whole(size))])
        factors = all_lanes(builder, vector, load(builder, at_a, 0, number, size))
        behind, sums = builder.mul(k, whole(COLUMNS * size)), []
        for i, total in enumerate(totals):
            place = builder.gep(starts[i // 2], [behind])
            value = load(builder, place, i % 2 * width, vector, size)
            product = builder.fmul(factors, value, flags=("contract",))
            sums.append(builder.fadd(total, product, flags=("contract",)))
        following = builder.add(k, whole(1))
        for phi, first, new in [
            (k, whole(0), following),
            *((phi, nothing, new) for phi, new in zip(totals, sums, strict=True)),
        ]:
            phi.add_incoming(first, before)
            phi.add_incoming(new, inner)
        builder.cbranch(builder.icmp_signed("<", following, depth), inner, after)

        builder.position_at_end(after)
        for value, place in zip(added_if(builder, add, sums, places), places, strict=True):
            store(builder, value, place, 0, size)
        return context.get_dummy_value()

    return signature, generate
