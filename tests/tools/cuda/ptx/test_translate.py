"""Which instructions are translated, and which are refused by their name. What they do is in tests/include/ptx."""

import pytest

from tools.cuda.ptx.text import PtxError
from tools.cuda.ptx.translate import as_cpp, covered

TAKEN = """
mov.b64 {%0, %1}, %2;
@p bra L; L: ;
cp.async.cg.shared.global.L2::128B [%0], [%1], 16;
cp.async.ca.shared::cta.global [%0], [%1], 4, %2;
cp.async.wait_group %0;
ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%0, %1, %2, %3}, [%4];
bar.sync %0, 128;
barrier.sync 1, 64;
bar.warp.sync 0xffffffff;
ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];
fence.acq_rel.gpu;
red.release.gpu.global.add.s32 [%0], %1;
mov.u32 %0, %%globaltimer_lo;
createpolicy.fractional.L2::evict_first.b64 %0, 1.0;
vshl.u32.u32.u32.clamp.add %0, %1, 4, %2;
vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;
wmma.load.a.sync.aligned.row.m16n16k16.shared.bf16 {%0, %1, %2, %3}, [%4];
wmma.store.d.sync.aligned.col.m8n8k4.global.f64 [%0], {%1, %2}, 8;
""".strip().splitlines()
PARTS = "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3}"
REFUSED = {
    # What is not known is not passed over.
    "add.wrong.u32 %0, %1, %2;": "the instruction add.wrong.u32: .wrong",
    "add.ftz.u32 %0, %1, %2;": "the instruction add.ftz.u32: .ftz",
    "add.sat.u32 %0, %1, %2;": "the instruction add.sat.u32: .sat",
    "add.f64.f32 %0, %1, %2;": "the instruction add.f64.f32: .f64",
    "add.u32 %0, %1;": "the instruction add.u32: its operands",
    "add.u32 %0, %1, %2, %3;": "the instruction add.u32: its operands",
    "mov.u32 %0, %unknown;": "the instruction mov.u32: the name %unknown",
    "frobnicate.u32 %0;": "the instruction frobnicate.u32",
    "bra NOWHERE;": "the instruction bra: its label",
    "ld.param.u32 %0, [%1];": "the instruction ld.param.u32: .param",
    "ld.v2.u32 {%0, %1, %2}, [%3];": "the instruction ld.v2.u32: its operands",
    "cvt.s32.f32 %0, %1;": "the instruction cvt.s32.f32: without a rounding to an integer",
    "exit;": "the instruction exit",
    "vadd.u32.u32 %0, %1, %2;": "its types",
    "vshl.u32.u32.s32.clamp %0, %1, %2;": "its types",
    "vshl.u32.u32.u32 %0, %1, %2;": "without .clamp or .wrap",
    "vadd4.u32.u32.u32.min %0, %1, %2, %3;": ".min",
    "wmma.load.a.sync.aligned.row.m16n16k8.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];": "its shape",
    "wmma.load.a.sync.aligned.row.m16n16k16.bf16 {%0, %1}, [%2];": "its operands",
    "wmma.load.a.sync.aligned.row.m8n8k32.s4 {%0}, [%1];": "its shape",
    "wmma.store.c.sync.aligned.row.m16n16k16.f32 [%0], %1;": ".store",
    "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16.bf16.f32 %0, %1, %2, %3;": "its types",
    "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 %0, %1, %2, %3, %4, 0;": "its operands",
    # Hopper and Blackwell.
    "wgmma.fence.sync.aligned;": "the instruction wgmma.fence.sync.aligned",
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];": (
        "a copy of Hopper's"
    ),
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;": (
        "this form"
    ),
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;": "a copy of Hopper's",
    "mbarrier.arrive.shared.u64 %0, [%1];": "this form",
    "mbarrier.test_wait.shared.b64 %0, [%1];": "its operands",
    "mbarrier.wait.shared.b64 %0, [%1];": ".wait",
    "mapa.shared::cluster.u32 %0, %1, %2;": "the instruction mapa.shared::cluster.u32",
    "barrier.cluster.arrive.aligned;": "the instruction barrier.cluster.arrive.aligned: ",
    "fence.proxy.tensormap::generic.acquire.gpu [%0], 128;": "its operands",
    "fence.proxy.alias;": "the instruction fence.proxy.alias: .proxy.alias",
    "tcgen05.wait::ld.sync.aligned;": "the instruction tcgen05.wait::ld.sync.aligned",
    "redux.sync.max.f32 %0, %1, 0xffffffff;": "the instruction redux.sync.max.f32: .f32",
    # Matrices that PTX does not have, or not before Hopper.
    f"mma.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32 {PARTS};": "its layout",
    f"mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {PARTS};": "its shape",
    f"mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {PARTS};": "its types",
    f"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {PARTS};": "its operands",
    f"mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {PARTS},%4,0;": "its operands",
    "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%0,%1},[%2];": "this form",
}


@pytest.mark.parametrize("template", TAKEN)
def test_what_is_taken(template):
    declared = "{ .reg .pred p; " + template + " }"
    assert covered(declared) == ""


@pytest.mark.parametrize("template", REFUSED)
def test_what_is_refused(template):
    said = covered(template)
    opcode = template.split()[0].rstrip(";")
    assert f"the instruction {opcode}" in said and REFUSED[template] in said


def test_operands():
    pieces = as_cpp("add.u32 %0, %1, %2;", [("=r", 1)], [("r", 2), ("0", 3)])
    text = "".join(piece if isinstance(piece, str) else f"<{piece}>" for piece in pieces)
    assert "auto& ptx_out0 = (<1>)" in text and "in<::cuda_ptx::u32>(<2>)" in text
    assert "ptx0 = ptx2;" in text and text.startswith("({ ") and text.endswith(" })")
    with pytest.raises(PtxError, match="the constraint '=x'"):
        as_cpp("mov.u32 %0, 1;", [("=x", 1)], [])
    with pytest.raises(PtxError, match="the operand %1"):
        as_cpp("mov.u32 %0, %1;", [("=r", 1)], [])
