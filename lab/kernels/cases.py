"""The kernels that called.py calls, by repository, with what each should compute."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from .case import CASES, case

__all__ = ["CASES"]

D = torch.float64
R = torch.randn


def up(n: int, d: int) -> int:
    return -(-n // d)


def zeros(*shape, dtype=torch.float32):
    return torch.zeros(*shape, dtype=dtype)


# ------------------------------------------------------------------------------------------- elementwise


def _sum(first: str, second: str, result: str, count: str, n: int = 1000, block: int = 256):
    """Two vectors of n elements are added. The names are the kernel's, and the block its file's, if that says one."""

    def check(call):
        a, b, c = R(n), R(n), zeros(n)
        call(**{first: a, second: b, result: c, count: n}, grid=up(n, block), block=block)
        return f"[{n}]", [(c, a.to(D) + b)]

    return check


# The first file's own length is a million.
case("Mantissagithub+learn_cuda/streams/without_pinned_mem.cu", "matrix_add_gpu", "matrix_add_gpu_shared")(
    _sum("a", "b", "c", "n", 1_000_000)
)
case("Mantissagithub+learn_cuda/streams/without_stream.cu", "vectorAdd")(_sum("a", "b", "c", "n"))
case("abeleinin+gpu-kernels/pmpp/vector_addition/vector_addition.cu", "vecAddKernel")(
    _sum("A", "B", "C", "n")
)
case("krmdel+120_days_of_CUDA_challenge/daily_projects/day_1/vector_addition.cu", "vecadd_kernel")(
    _sum("x", "y", "z", "N")
)
case("brucefan1983+CUDA-Programming/src/05-prerequisites-for-speedup/add3memcpy.cu", "add")(
    _sum("x", "y", "z", "N", block=128)
)


@case("brucefan1983+CUDA-Programming/src/05-prerequisites-for-speedup/arithmetic2gpu.cu", "arithmetic")
def counts_up(call):
    """Adds 1 until the root is at least x0."""
    x = torch.rand(300) * 50
    start = x.clone()
    call(d_x=x, x0=6.0, N=300, grid=3, block=128)
    steps = torch.ceil((36 - start.to(D)).clamp_min(0))
    return "[300]", [(x, start.to(D) + steps)]


@case("Mantissagithub+learn_cuda/CUDA_API/cuDNN/sigmoid.cu", "naive_sigmoid_kernel")
def sigmoid(call):
    x, y = R(1000), zeros(1000)
    call(input=x, output=y, size=1000, grid=4, block=256)
    return "[1000]", [(y, x.to(D).sigmoid())]


@case("Firojpaudel+100_days_of_CUDA/Day_71/tanh1.cu", "tanh_kernel")
def tanh(call):
    x, y = R(37, 53), zeros(37, 53)
    call(input=x, output=y, rows=37, columns=53, grid=(up(53, 16), up(37, 16)), block=(16, 16))
    return "[37, 53]", [(y, x.to(D).tanh())]


@case("Firojpaudel+100_days_of_CUDA/Day_79/swish3.cu", "swishKernel")
def swish(call):
    x, y = R(5, 1024), zeros(5, 1024)
    call(a=x, c=y, m=5, n=1024, grid=(4, 5), block=256)
    return "[5, 1024]", [(y, F.silu(x.to(D)))]


@case("BhargavKumarNath+custom_cuda_kernals/csrc/kernels/swiglu.cu", "swiglu_kernel_scalar")
def swiglu(call):
    g, u, y = R(1003), R(1003), zeros(1003)
    call(gate=g, up=u, y=y, n=1003, grid=4, block=256)
    return "[1003]", [(y, F.silu(g.to(D)) * u)]


@case("BhargavKumarNath+custom_cuda_kernals/csrc/kernels/swiglu.cu", "swiglu_kernel_vec4_f32")
def swiglu_vectors(call):
    g, u, y = R(1000), R(1000), zeros(1000)
    call(gate=g, up=u, y=y, n_vec=250, grid=1, block=256)
    return "[1000]", [(y, F.silu(g.to(D)) * u)]


@case("abeleinin+gpu-kernels/gpu-puzzles/src/broadcast.cu", "broadcast_kernel")
def broadcast(call):
    a, b, o = R(2), R(2), zeros(2, 2)
    call(a=a, b=b, out=o, n=2, grid=(2, 2))
    return "[2] [2]", [(o, a.to(D)[None] + b[:, None])]


@case("abeleinin+gpu-kernels/gpu-puzzles/src/guard.cu", "guard_kernel")
@case("abeleinin+gpu-kernels/gpu-puzzles/src/map.cu", "map_kernel")
def ten_more(call):
    a, o = R(4), zeros(8)
    call(a=a, out=o, n=4, grid=1, block=8)
    return "[4]", [(o[:4], a.to(D) + 10)]


@case("abeleinin+gpu-kernels/gpu-puzzles/src/blocks.cu", "map_block_kernel")
def ten_more_in_blocks(call):
    a, o = R(9), zeros(9)
    call(a=a, out=o, n=9, grid=4, block=3)
    return "[9]", [(o, a.to(D) + 10)]


@case("abeleinin+gpu-kernels/gpu-puzzles/src/map2D.cu", "map_2D_kernel")
def ten_more_2d(call):
    a, o = R(2, 2), zeros(2, 2)
    call(a=a, out=o, n=2, grid=(1, 1), block=(3, 3))
    return "[2, 2]", [(o, a.to(D) + 10)]


@case("abeleinin+gpu-kernels/gpu-puzzles/src/blocks2D.cu", "map_block_2D_kernel")
def ten_more_2d_in_blocks(call):
    a, o = R(5, 5), zeros(5, 5)
    call(a=a, out=o, n=5, grid=(2, 2), block=(3, 3))
    return "[5, 5]", [(o, a.to(D) + 10)]


@case("satidev+pmpp_cuda/pmpp/03_color_gray_scale/color_gray_scale.cu", "color2GrayKernel")
def gray(call):
    x = torch.randint(0, 256, (13, 29, 3), dtype=torch.uint8)
    y = zeros(13, 29)
    call(color_data=x, gray_data=y, num_rows=13, num_cols=29, grid=(2, 1), block=(16, 16))
    weights = torch.tensor([0.299, 0.587, 0.114], dtype=D)
    return "[13, 29, 3]", [(y, (x.to(D) * weights).sum(-1))]


@case(
    "rwatling+CUDA_Programming/sample_kernels/hybrid/simpleCUFFT/simpleCUFFT.cu",
    "ComplexPointwiseMulAndScale",
)
def complex_product(call):
    a, b = R(100, 2), R(100, 2)
    expected = torch.view_as_complex(a.to(D)) * torch.view_as_complex(b.to(D)) * 0.5
    call(a=a, b=b, size=100, scale=0.5, workThreads=64, idleThreads=0, grid=1, block=64)
    return "[100] complex", [(torch.view_as_complex(a), expected)]


@case("karpathy+llm.c/dev/cuda/residual_forward.cu", "residual_forward_kernel1", tolerance=4e-3)
def residual_bf16(call):
    a, b, o = (R(1000).bfloat16() for _ in range(3))
    call(out=o, inp1=a, inp2=b, N=1000, grid=4, block=256)
    return "[1000] bfloat16", [(o, a.to(D) + b.to(D))]


@case("karpathy+llm.c/dev/cuda/gelu_backward.cu", "gelu_backward1", tolerance=8e-3)
def gelu_backward_bf16(call):
    x, g, o = (R(1000).bfloat16() for _ in range(3))
    call(dinp=o, inp=x, dout=g, N=1000, grid=4, block=256)
    leaf = x.to(D).requires_grad_()
    F.gelu(leaf, approximate="tanh").backward(g.to(D))
    return "[1000] bfloat16", [(o, leaf.grad)]


# ------------------------------------------------------------------------------ reductions, scans, histograms


@case("Mantissagithub+learn_cuda/practice/kernels/max_element.cu", "find_max_interleaved_addressing",
      "find_max_interleaved_addressing_1", "find_max_sequential_addressing")  # fmt: skip
def block_maxima(call):
    x, y = R(5 * 256), zeros(5)
    call(g_idata=x, g_odata=y, grid=5, block=256, shared_bytes=1024)
    return "[1280]", [(y, x.to(D).view(5, 256).amax(1))]


@case("Mantissagithub+learn_cuda/practice/kernels/max_element.cu", "find_max_first_add_during_load")
def block_maxima_of_pairs(call):
    x, y = R(5 * 512), zeros(5)
    call(g_idata=x, g_odata=y, grid=5, block=256, shared_bytes=1024)
    return "[2560]", [(y, x.to(D).view(5, 512).amax(1))]


@case("LiuYiyang-Canton+cuda_llm_ops/src/cplusplus/ReduceSum/reducesum_kernel.cu", "ReduceSumFp32Kernel")
def row_sums(call):
    x, y = R(12, 1000), zeros(12)
    call(matrix=x, rowSum=y, cols=1000, grid=3, block=256)
    return "[12, 1000]", [(y, x.to(D).sum(1))]


@case("krmdel+120_days_of_CUDA_challenge/daily_projects/day_11/reduction.cu", "sum_reduction")
def block_sums(call):
    x, y = R(1024), zeros(4)
    call(input=x, output=y, n=1024, grid=4, block=256, shared_bytes=1024)
    return "[1024]", [(y.sum(), x.to(D).sum())]


@case("Firojpaudel+100_days_of_CUDA/Day_94/product_over_dim_2.cu", "prod_reduce_kernel")
def products(call):
    x, y = torch.rand(3, 40, 7) + 0.5, zeros(3, 7)
    call(input=x, output=y, M=3, S_d=40, N=7, grid=21, block=64)
    return "[3, 40, 7]", [(y, x.to(D).prod(1))]


@case("Firojpaudel+100_days_of_CUDA/Day_74/shared.cu", "prefix_sum_kernel")
def prefix_sums(call):
    x, y = R(512), zeros(512)
    call(input=x, output=y, N=512, grid=2, block=256, shared_bytes=1024)
    return "[512]", [(y, x.to(D).cumsum(0))]


@case("satidev+pmpp_cuda/pmpp/11_scan/cum_sum_dev.cu", "kogge_stone_kernel")
def kogge_stone(call):
    x, y = R(128), zeros(128)
    call(input=x, output=y, grid=1, block=128, shared_bytes=128 * 4)
    return "[128]", [(y, x.to(D).cumsum(0))]


@case("satidev+pmpp_cuda/pmpp/08_stencil/stencil_1d.cu", "diff_kernel")
def differences(call):
    x, y = R(200), zeros(199)
    call(ip=x, op=y, num_elems_ip=200, grid=2, block=128)
    return "[200]", [(y, x.to(D).diff())]


@case("Firojpaudel+100_days_of_CUDA/Day_25/coarserning.cu", "histo_coarsening_contiguous")
def letters(call):
    x, h = torch.randint(90, 127, (3000,), dtype=torch.int8), zeros(26, dtype=torch.int32)
    call(data=x, length=3000, histo=h, grid=12, block=256)
    return "[3000] int8", [(h, torch.stack([(x == 97 + i).sum() for i in range(26)]))]


@case("satidev+pmpp_cuda/pmpp/09_histogram/histogram.cu", "hist_kern")
def histogram(call):
    x = torch.randint(0, 3, (3000,), dtype=torch.int16)
    h = zeros(2, dtype=torch.int32)
    call(data=x, hist=h, num_data_elems=3000, grid=12, block=256)
    return "[3000] int16", [(h, torch.stack([(x == 0).sum(), (x != 0).sum()]))]


@case("Mantissagithub+learn_cuda/practice/csr/main.cu", "countNonZerosPerRow")
def nonzeros(call):
    x, c = torch.randint(0, 3, (40, 30), dtype=torch.int32), zeros(40, dtype=torch.int32)
    call(d_mat=x, d_rowCounts=c, r=40, c=30, grid=40, block=256)
    return "[40, 30] int32", [(c, (x != 0).sum(1))]


def _csr(rows, columns):
    x = torch.randint(0, 3, (rows, columns), dtype=torch.int32)
    sparse = x.to_sparse_csr()
    return x, sparse.crow_indices().int(), sparse.col_indices().int(), sparse.values()


@case("Mantissagithub+learn_cuda/practice/csr/main.cu", "encode")
def to_csr(call):
    x, rows, columns, values = _csr(40, 30)
    got = torch.zeros_like(columns), torch.zeros_like(values)
    call(d_mat=x, d_row=rows, d_col=got[0], d_val=got[1], r=40, c=30, grid=40, block=256)
    return "[40, 30] int32", [(got[0], columns), (got[1], values)]


@case("Mantissagithub+learn_cuda/practice/csr/main.cu", "decode")
def from_csr(call):
    x, rows, columns, values = _csr(40, 30)
    got = torch.zeros_like(x)
    call(d_mat=got, d_row=rows, d_col=columns, d_val=values, r=40, c=30, grid=40, block=256)
    return "[40, 30] int32", [(got, x)]


# ------------------------------------------------------------------------------------------ linear algebra


@case("Mantissagithub+learn_cuda/matrix_mul.cu", "matmul_gpu")
def product(call):
    m, n, k = 512, 256, 256  # the file's
    a, b, c = R(m, k), R(k, n), zeros(m, n)
    call(a=a, b=b, c=c, m=m, n=n, k=k, grid=(8, 16), block=(32, 32))
    return f"[{m}, {k}] [{k}, {n}]", [(c, a.to(D) @ b.to(D))]


@case("Mantissagithub+learn_cuda/practice/kernels/transpose_matrix.cu", "transpose_matrix_naive_gpu",
      "transpose_matrix_tiled_gpu")  # fmt: skip
def transpose(call):
    a, b = R(100, 100), zeros(100, 100)
    call(a=a, b=b, size=100, grid=(7, 7), block=(16, 16))
    return "[100, 100]", [(b, a.T.to(D))]


@case(
    "brucefan1983+CUDA-Programming/src/07-global-memory/matrix.cu", "transpose1", "transpose2", "transpose3"
)
def transpose_real(call):
    a, b = R(70, 70), zeros(70, 70)
    call(A=a, B=b, N=70, grid=(3, 3), block=(32, 32))
    return "[70, 70]", [(b, a.T.to(D))]


@case("Olajide-Badejo+CUDA-Kernel-Library/src/gemv/gemv_vectorized.cu", "gemv_vectorized_kernel")
def gemv(call):
    a, x, y = R(37, 120), R(120), R(37)
    expected = 1.5 * (a.to(D) @ x.to(D)) + 0.5 * y.to(D)
    call(a=a, x=x, y=y, m=37, n=120, alpha=1.5, beta=0.5, grid=37, block=256)
    return "[37, 120] [120]", [(y, expected)]


def _gemm(m, n, k, tile):
    def check(call):
        a, b, c = R(m, k), R(k, n), R(m, n)
        expected = 1.5 * (a.to(D) @ b.to(D)) + 0.5 * c.to(D)
        call(a=a, b=b, c=c, m=m, n=n, k=k, alpha=1.5, beta=0.5, grid=(up(n, tile), up(m, tile)), block=256)
        return f"[{m}, {k}] [{k}, {n}]", [(c, expected)]

    return check


case("Olajide-Badejo+CUDA-Kernel-Library/src/gemm/gemm_cp_async.cu", "gemm_cp_async_kernel")(
    _gemm(128, 256, 64, 128)
)
case("Olajide-Badejo+CUDA-Kernel-Library/src/gemm/gemm_tiled.cu", "gemm_tiled_kernel")(_gemm(67, 50, 45, 32))


@case("Olajide-Badejo+CUDA-Kernel-Library/src/sparse/spmv_csr_warp.cu", "spmv_csr_warp_kernel")
def spmv(call):
    _, rows, columns, values = _csr(40, 90)
    values, x, y = values.float(), R(90), R(40)
    dense = torch.sparse_csr_tensor(rows, columns, values.to(D), (40, 90)).to_dense()
    expected = 1.5 * (dense @ x.to(D)) + 0.5 * y.to(D)
    call(row_ptr=rows, col_idx=columns, values=values, x=x, y=y, m=40, alpha=1.5, beta=0.5, grid=5, block=256)
    return "[40, 90] CSR", [(y, expected)]


@case("Olajide-Badejo+CUDA-Kernel-Library/src/trsm/trsm_blocked.cu", "scale_kernel")
def scaled(call):
    b = R(1000)
    expected = b.to(D) * 1.5
    call(b=b, count=1000, alpha=1.5, grid=4, block=256)
    return "[1000]", [(b, expected)]


@case("Olajide-Badejo+CUDA-Kernel-Library/src/trsm/trsm_blocked.cu", "block_solve_kernel")
def solved(call):
    a, b = R(16, 16).tril() + 8 * torch.eye(16), R(16, 20)
    expected = torch.linalg.solve_triangular(a.to(D), b.to(D), upper=False)
    call(a=a, b=b, m=16, n=20, k=0, kb=16, grid=1, block=256)
    return "[16, 16] [16, 20]", [(b, expected)]


@case("Olajide-Badejo+CUDA-Kernel-Library/src/trsm/trsm_blocked.cu", "trailing_update_kernel")
def updated(call):
    a, b = R(40, 40), R(40, 20)
    expected = b.to(D).clone()
    expected[16:] -= a.to(D)[16:, 8:16] @ b.to(D)[8:16]
    call(a=a, b=b, m=40, n=20, k=8, kb=8, grid=(20, 24), block=(16, 16))
    return "[40, 40] [40, 20]", [(b, expected)]


@case("BhargavKumarNath+custom_cuda_kernals/csrc/kernels/matmul_add_bias.cu", "matmul_add_bias_kernel_naive",
      "matmul_add_bias_kernel_blocked")  # fmt: skip
def linear(call):
    x, w, b, y = R(70, 45), R(50, 45), R(50), zeros(70, 50)
    call(x=x, weight=w, bias=b, y=y, m=70, k=45, n=50)
    return "[70, 45] [50, 45]", [(y, F.linear(x.to(D), w.to(D), b.to(D)))]


@case("karpathy+llm.c/dev/cuda/matmul_forward.cu", "matmul_forward_kernel1")
def linear_llm(call):
    x, w, b, y = R(70, 45), R(50, 45), R(50), zeros(70, 50)
    call(out=y, inp=x, weight=w, bias=b, BT=70, C=45, OC=50, grid=(5, 4), block=(16, 16))
    return "[70, 45] [50, 45]", [(y, F.linear(x.to(D), w.to(D), b.to(D)))]


@case("karpathy+llm.c/dev/cuda/matmul_forward.cu", "matmul_forward_kernel4")
@case("karpathy+llm.c/train_gpt2_fp32.cu", "matmul_forward_kernel4")
def linear_llm_tiled(call):
    x, w, b, y = R(128, 64), R(256, 64), R(256), zeros(128, 256)
    call(out=y, inp=x, weight=w, bias=b, C=64, OC=256, grid=(1, 2), block=(16, 16))
    return "[128, 64] [256, 64]", [(y, F.linear(x.to(D), w.to(D), b.to(D)))]


@case("karpathy+llm.c/dev/cuda/matmul_forward.cu", "add_bias")
def biased(call):
    y, b = R(2, 7, 50), R(50)
    expected = y.to(D) + b
    call(out=y, bias=b, B=2, T=7, OC=50, grid=3, block=256)
    return "[2, 7, 50]", [(y, expected)]


# ---------------------------------------------------------------------------------------------- networks


@case("BhargavKumarNath+custom_cuda_kernals/csrc/kernels/rmsnorm_residual.cu", "rmsnorm_residual_kernel")
def rmsnorm_residual(call):
    x, r, w = R(6, 500), R(6, 500), R(500)
    y, out = zeros(6, 500), zeros(6, 500)
    call(x=x, residual=r, weight=w, y=y, residual_out=out, cols=500, eps=1e-6, grid=6, block=256)
    both = x.to(D) + r
    expected = both * torch.rsqrt(both.pow(2).mean(1, keepdim=True) + 1e-6) * w
    return "[6, 500]", [(y, expected), (out, both)]


@case("LiuYiyang-Canton+cuda_llm_ops/src/cplusplus/RMSNorm/rmsnorm_kernel.cu", "RMSNormFp32Kernel")
def rmsnorm(call):
    x, w, y = R(6, 512), R(512), zeros(6, 512)
    call(x=x, weight=w, rmsnormOut=y, hiddenSize=512, grid=6, block=256)
    wide = x.to(D)
    best = min(
        (1e-5, 1e-6, 1e-8), key=lambda e: (y - _rms(wide, w, e)).abs().max().item()
    )  # the file's constant
    return "[6, 512]", [(y, _rms(wide, w, best))]


def _rms(x, w, eps):
    return x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + eps) * w


@case("LiuYiyang-Canton+cuda_llm_ops/src/cplusplus/LayerNorm/layernorm_backward_kernel.cu",
      "LayerNormBackwardKernel")  # fmt: skip
def layernorm_backward(call):
    x, g, w = R(2, 3, 256), R(2, 3, 256), R(256)
    leaf, mean = x.to(D).requires_grad_(), x.to(D).mean(-1)
    rstd = torch.rsqrt(x.to(D).var(-1, unbiased=False) + 1e-5)
    F.layer_norm(leaf, (256,), w.to(D)).backward(g.to(D))
    gx, gw = zeros(2, 3, 256), zeros(2, 3, 256)
    call(
        gradX=gx, gradGamma=gw, x=x, gradOutput=g, gamma=w, invStdDev=rstd.float(), mean=mean.float(),
        batchSize=2, seqLength=3, hiddenDim=256, grid=6, block=64, shared_bytes=2048,
    )  # fmt: skip
    normal = (x.to(D) - mean[..., None]) * rstd[..., None]
    return "[2, 3, 256]", [(gx, leaf.grad), (gw, g.to(D) * normal)]


@case("BhargavKumarNath+custom_cuda_kernals/csrc/kernels/moe_router.cu", "moe_router_kernel")
def router(call):
    x = R(9, 40)
    w, i = zeros(9, 4), zeros(9, 4, dtype=torch.int64)
    call(logits=x, topk_weights=w, topk_indices=i, num_tokens=9, num_experts=40, k=4, renormalize=True,
         grid=3, block=128)  # fmt: skip
    top = x.to(D).softmax(1).topk(4)
    return "[9, 40]", [(w, top.values / top.values.sum(1, keepdim=True)), (i, top.indices)]


@case("BhargavKumarNath+custom_cuda_kernals/csrc/kernels/viterbi.cu", "viterbi_kernel")
def viterbi(call):
    b, length, states = 3, 12, 20
    e, t, p = R(b, length, states), R(states, states), R(states)
    psi, path, score = (
        zeros(b, length, states, dtype=torch.int64),
        zeros(b, length, dtype=torch.int64),
        zeros(b),
    )
    call(
        log_emission=e, log_trans=t, log_pi=p, psi=psi, best_path=path, best_score=score, seq_len=length,
        num_states=states, grid=b, block=32, shared_bytes=4 * (states * states + 2 * states),
    )  # fmt: skip
    delta, back = p.to(D) + e.to(D)[:, 0], []
    for s in range(1, length):
        best = (delta[:, :, None] + t.to(D)).max(1)
        back.append(best.indices)
        delta = best.values + e.to(D)[:, s]
    want = [delta.argmax(1)]
    for indices in reversed(back):
        want.insert(0, indices.gather(1, want[0][:, None])[:, 0])
    return "[3, 12, 20]", [(score, delta.amax(1)), (path, torch.stack(want, 1))]


@case("Firojpaudel+100_days_of_CUDA/Day_20/3D.cu", "convolution3D_basic_kernel")
def conv3d(call):
    x, f, y = R(9, 10, 11), R(3, 3, 3), zeros(9, 10, 11)
    call(N=x, F=f, P=y, r=1, width=11, height=10, depth=9, grid=(11, 10, 9), block=(8, 8, 8))
    expected = F.conv3d(x.to(D)[None, None], f.to(D)[None, None], padding=1)[0, 0]
    return "[9, 10, 11] [3, 3, 3]", [(y, expected)]


@case("Firojpaudel+100_days_of_CUDA/Day_100/2d_max.cu", "maxPoolKernelOpt")
def max_pool(call):
    x, y = R(40, 50), zeros(40, 50)
    call(input=x, output=y, H=40, W=50, kernel_size=3, stride=1, padding=1, dilation=1, H_out=40, W_out=50,
         grid=(4, 3), block=(16, 16))  # fmt: skip
    return "[40, 50]", [(y, F.max_pool2d(x.to(D)[None], 3, 1, 1)[0])]


@case("karpathy+llm.c/dev/cuda/encoder_forward.cu", "encoder_forward_kernel1", "encoder_forward_kernel2",
      "encoder_forward_kernel3", tolerance=4e-3)  # fmt: skip
def encoder_bf16(call):
    i = torch.randint(0, 30, (2, 8), dtype=torch.int32)
    e, p, o = R(30, 64).bfloat16(), R(8, 64).bfloat16(), torch.zeros(2, 8, 64, dtype=torch.bfloat16)
    call(out=o, inp=i, wte=e, wpe=p, B=2, T=8, C=64, grid=64, block=16)
    return "[2, 8, 64] bfloat16", [(o, e.to(D)[i.long()] + p.to(D))]


LLM = "karpathy+llm.c/train_gpt2_fp32.cu"


@case(LLM, "encoder_forward_kernel3")
def encoder(call):
    i = torch.randint(0, 30, (2, 8), dtype=torch.int32)
    e, p, o = R(30, 64), R(8, 64), zeros(2, 8, 64)
    call(out=o, inp=i, wte=e, wpe=p, B=2, T=8, C=64)
    return "[2, 8, 64]", [(o, e.to(D)[i.long()] + p.to(D))]


@case(LLM, "encoder_backward_kernel")
def encoder_backward(call):
    i, g = torch.randint(0, 30, (2, 8), dtype=torch.int32), R(2, 8, 64)
    ge, gp = zeros(30, 64), zeros(8, 64)
    call(dwte=ge, dwpe=gp, dout=g, inp=i, B=2, T=8, C=64)
    expected = torch.zeros(30, 64, dtype=D).index_add(0, i.long().flatten(), g.to(D).view(16, 64))
    return "[2, 8, 64]", [(ge, expected), (gp, g.to(D).sum(0))]


@case(LLM, "layernorm_forward_kernel3")
def layernorm(call):
    x, w, b = R(12, 100), R(100), R(100)
    y, mean, rstd = zeros(12, 100), zeros(12), zeros(12)
    call(out=y, mean=mean, rstd=rstd, inp=x, weight=w, bias=b, N=12, C=100)
    wide = x.to(D)
    expected = torch.rsqrt(wide.var(1, unbiased=False) + 1e-5)
    pairs = [(y, F.layer_norm(wide, (100,), w.to(D), b.to(D))), (mean, wide.mean(1)), (rstd, expected)]
    return "[12, 100]", pairs


@case(LLM, "layernorm_backward_kernel2", tolerance=3e-5)
def layernorm_backward_llm(call):
    x, g, w, b = R(2, 6, 96), R(2, 6, 96), R(96), R(96)
    leaves = [t.to(D).requires_grad_() for t in (x, w, b)]
    F.layer_norm(leaves[0], (96,), leaves[1], leaves[2]).backward(g.to(D))
    mean, rstd = x.mean(-1), torch.rsqrt(x.var(-1, unbiased=False) + 1e-5)
    gx, gw, gb = zeros(2, 6, 96), zeros(96), zeros(96)
    call(dinp=gx, dweight=gw, dbias=gb, dout=g, inp=x, weight=w, mean=mean, rstd=rstd, B=2, T=6, C=96)
    return "[2, 6, 96]", [(gx, leaves[0].grad), (gw, leaves[1].grad), (gb, leaves[2].grad)]


@case(LLM, "permute_kernel")
def permuted(call):
    x = R(2, 5, 3, 4, 6)
    q, k, v = (zeros(2, 4, 5, 6) for _ in range(3))
    call(q=q, k=k, v=v, inp=x, B=2, N=5, NH=4, d=6, grid=1, block=256)
    return "[2, 5, 3, 4, 6]", list(zip((q, k, v), x.to(D).permute(2, 0, 3, 1, 4), strict=True))


@case(LLM, "permute_kernel_backward")
def permuted_back(call):
    q, k, v = (R(2, 4, 5, 6) for _ in range(3))
    x = zeros(2, 5, 3, 4, 6)
    call(dinp=x, dq=q, dk=k, dv=v, B=2, N=5, NH=4, d=6, grid=1, block=256)
    return "[2, 4, 5, 6] * 3", [(x, torch.stack((q, k, v)).to(D).permute(1, 3, 0, 2, 4))]


@case(LLM, "unpermute_kernel")
def unpermuted(call):
    x, y = R(2, 4, 5, 6), zeros(2, 5, 4, 6)
    call(inp=x, out=y, B=2, N=5, NH=4, d=6, grid=1, block=256)
    return "[2, 4, 5, 6]", [(y, x.to(D).transpose(1, 2))]


@case(LLM, "softmax_forward_kernel5")
def causal_softmax(call):
    x, y = R(6, 20, 20), zeros(6, 20, 20)
    call(out=y, inv_temperature=0.3, inp=x, N=6, T=20, grid=up(6 * 20 * 32, 256), block=256)
    hidden = torch.ones(20, 20).triu(1).bool()
    return "[6, 20, 20]", [(y, (0.3 * x.to(D)).masked_fill(hidden, -math.inf).softmax(-1))]


@case(LLM, "softmax_autoregressive_backward_kernel", tolerance=3e-5)
def causal_softmax_backward(call):
    hidden = torch.ones(20, 20).triu(1).bool()
    leaf, g = R(6, 20, 20).to(D).requires_grad_(), R(6, 20, 20)
    a = (0.3 * leaf).masked_fill(hidden, -math.inf).softmax(-1)
    a.backward(g.to(D))
    out = zeros(6, 20, 20)
    # Four rows a block, 256 threads; C only gives the grid.
    call(dpreatt=out, datt=g, att=a.detach().float(), B=2, T=20, C=0, scale=0.3, grid=(5, 6), block=256)
    return "[6, 20, 20]", [(out.tril(), leaf.grad)]


@case(LLM, "residual_forward_kernel")
def residual(call):
    a, b, o = R(1000), R(1000), zeros(1000)
    call(out=o, inp1=a, inp2=b, N=1000, grid=4, block=256)
    return "[1000]", [(o, a.to(D) + b)]


@case(LLM, "gelu_forward_kernel")
def gelu(call):
    x, o = R(1000), zeros(1000)
    call(out=o, inp=x, N=1000, grid=8, block=128)
    return "[1000]", [(o, F.gelu(x.to(D), approximate="tanh"))]


@case(LLM, "gelu_backward_kernel")
def gelu_backward(call):
    x, g, o = R(1000), R(1000), zeros(1000)
    call(dinp=o, inp=x, dout=g, N=1000)
    leaf = x.to(D).requires_grad_()
    F.gelu(leaf, approximate="tanh").backward(g.to(D))
    return "[1000]", [(o, leaf.grad)]


@case(LLM, "matmul_backward_bias_kernel4")
def bias_gradient(call):
    g, b = R(3, 20, 96), R(96)
    expected = b.to(D) + g.to(D).sum((0, 1))
    call(dbias=b, dout=g, B=3, T=20, OC=96, grid=3, block=1024, shared_bytes=4096)
    return "[3, 20, 96]", [(b, expected)]


@case(LLM, "adamw_kernel2")
def adamw(call):
    p, g, m, v = R(500), R(500), R(500), torch.rand(500)
    wide = [t.to(D) for t in (p, g, m, v)]
    call(
        params_memory=p, grads_memory=g, m_memory=m, v_memory=v, num_parameters=500, learning_rate=1e-2, beta1=0.9,
        beta2=0.99, beta1_correction=0.19, beta2_correction=0.02, eps=1e-8, weight_decay=0.1, grid=1, block=512,
    )  # fmt: skip
    wm, wv = 0.9 * wide[2] + 0.1 * wide[1], 0.99 * wide[3] + 0.01 * wide[1] ** 2
    wp = wide[0] - 1e-2 * (wm / 0.19 / ((wv / 0.02).sqrt() + 1e-8) + 0.1 * wide[0])
    return "[500]", [(p, wp), (m, wm), (v, wv)]


@case("karpathy+llm.c/dev/cuda/crossentropy_softmax_backward.cu", "crossentropy_softmax_backward_kernel1")
def cross_entropy_backward(call):
    p, g = R(2, 5, 33).softmax(-1), R(2, 5)
    t, o = torch.randint(0, 33, (2, 5), dtype=torch.int32), zeros(2, 5, 33)
    call(dlogits=o, dlosses=g, probs=p, targets=t, B=2, T=5, V=33, grid=2, block=256)
    return "[2, 5, 33]", [(o, (p.to(D) - F.one_hot(t.long(), 33)) * g.to(D)[..., None])]


@case("krmdel+120_days_of_CUDA_challenge/daily_projects/day_54/tiled_qkt.cu", "matmul_naive")
def scores(call):
    q, k, s = R(40, 24), R(40, 24), zeros(40, 40)
    call(Q=q, K=k, S=s, L=40, d=24, grid=(3, 3), block=(16, 16))
    return "[40, 24]", [(s, q.to(D) @ k.to(D).T)]


DAY = "krmdel+120_days_of_CUDA_challenge/daily_projects/day_41/encoder.cu"


@case(DAY, "tiled_mat_mul_kernel", "tiledMatMulKernel")
def tiled(call):
    a, b, c = R(40, 24), R(24, 50), zeros(40, 50)
    call(A=a, B=b, C=c, M=40, K=24, N=50, grid=(4, 3), block=(16, 16))
    return "[40, 24] [24, 50]", [(c, a.to(D) @ b.to(D))]


# --------------------------------------------------------------------------------------- points, boxes, images

SAMPLING = "charlesq34+pointnet2/tf_ops/sampling/tf_sampling_g.cu"
SAMPLING_2 = "dgriffiths3+pointnet2-tensorflow2/tf_ops/sampling/tf_sampling_g.cu"
GROUPING = "charlesq34+pointnet2/tf_ops/grouping/tf_grouping_g.cu"
GROUPING_2 = "dgriffiths3+pointnet2-tensorflow2/tf_ops/grouping/tf_grouping_g.cu"


@case(SAMPLING, "cumsumKernel")
@case(SAMPLING_2, "cumsumKernel")
def sums(call):
    x, y = torch.rand(3, 9001), zeros(3, 9001)
    call(b=3, n=9001, inp=x, out=y)
    return "[3, 9001]", [(y, x.to(D).cumsum(1))]


@case(SAMPLING, "binarysearchKernel")
@case(SAMPLING_2, "binarysearchKernel")
def searched(call):
    x, q = torch.rand(3, 100).cumsum(1), torch.rand(3, 40)
    r = zeros(3, 40, dtype=torch.int32)
    call(b=3, n=100, m=40, dataset=x, query=q, result=r)
    return "[3, 100] [3, 40]", [(r, torch.searchsorted(x, q * x[:, -1:]).clamp_max(99))]


@case(SAMPLING, "gatherpointKernel")
@case(SAMPLING_2, "gatherpointKernel")
def gathered(call):
    x, i = R(3, 100, 3), torch.randint(0, 100, (3, 40), dtype=torch.int32)
    y = zeros(3, 40, 3)
    call(b=3, n=100, m=40, inp=x, idx=i, out=y)
    return "[3, 100, 3]", [(y, torch.stack([x[b, i[b].long()] for b in range(3)]).to(D))]


@case(SAMPLING, "scatteraddpointKernel")
@case(SAMPLING_2, "scatteraddpointKernel")
def scattered(call):
    g, i, y = R(3, 40, 3), torch.randint(0, 100, (3, 40), dtype=torch.int32), zeros(3, 100, 3)
    call(b=3, n=100, m=40, out_g=g, idx=i, inp_g=y)
    expected = [torch.zeros(100, 3, dtype=D).index_add(0, i[b].long(), g[b].to(D)) for b in range(3)]
    return "[3, 40, 3]", [(y, torch.stack(expected))]


@case(GROUPING, "query_ball_point_gpu")
@case(GROUPING_2, "query_ball_point_gpu")
def balls(call):
    x, y = torch.rand(2, 200, 3), torch.rand(2, 30, 3)
    idx, count = zeros(2, 30, 16, dtype=torch.int32), zeros(2, 30, dtype=torch.int32)
    call(b=2, n=200, m=30, radius=0.3, nsample=16, xyz1=x, xyz2=y, idx=idx, pts_cnt=count, grid=2, block=256)
    near = torch.cdist(y.to(D), x.to(D)) < 0.3
    expected = torch.zeros(2, 30, 16, dtype=torch.int64)
    for b in range(2):
        for j in range(30):
            found = near[b, j].nonzero()[:16, 0]
            if len(found):
                expected[b, j] = found[0]
                expected[b, j, : len(found)] = found
    return "[2, 200, 3] [2, 30, 3]", [(idx, expected), (count, near.sum(2).clamp_max(16))]


@case(GROUPING, "group_point_gpu")
@case(GROUPING_2, "group_point_gpu")
def grouped(call):
    x, i, y = R(2, 50, 8), torch.randint(0, 50, (2, 9, 4), dtype=torch.int32), zeros(2, 9, 4, 8)
    call(b=2, n=50, c=8, m=9, nsample=4, points=x, idx=i, out=y, grid=2, block=256)
    return "[2, 50, 8]", [(y, torch.stack([x[b][i[b].long()] for b in range(2)]).to(D))]


@case(GROUPING, "group_point_grad_gpu")
@case(GROUPING_2, "group_point_grad_gpu")
def grouped_backward(call):
    i, g, y = torch.randint(0, 50, (2, 9, 4), dtype=torch.int32), R(2, 9, 4, 8), zeros(2, 50, 8)
    call(b=2, n=50, c=8, m=9, nsample=4, grad_out=g, idx=i, grad_points=y, grid=2, block=256)
    flat = [
        torch.zeros(50, 8, dtype=D).index_add(0, i[b].long().flatten(), g[b].to(D).view(36, 8))
        for b in (0, 1)
    ]
    return "[2, 9, 4, 8]", [(y, torch.stack(flat))]


@case(GROUPING, "selection_sort_gpu")
@case(GROUPING_2, "selection_sort_gpu")
def least(call):
    x, y, i = R(2, 7, 40), zeros(2, 7, 40), zeros(2, 7, 40, dtype=torch.int32)
    call(b=2, n=40, m=7, k=6, dist=x, outi=i, out=y, grid=2, block=256)
    top = x.to(D).topk(6, largest=False)
    return "[2, 7, 40]", [(y[..., :6], top.values), (i[..., :6], top.indices)]


@case("charlesq34+pointnet2/tf_ops/grouping/test/query_ball_point_block.cu", "group_point_gpu")
def grouped_by_threads(call):
    x, i, y = R(2, 50, 8), torch.randint(0, 50, (2, 9, 4), dtype=torch.int32), zeros(2, 9, 4, 8)
    call(b=2, n=50, c=8, m=9, nsample=4, points=x, idx=i, out=y, grid=1, block=2)
    return "[2, 50, 8]", [(y, torch.stack([x[b][i[b].long()] for b in range(2)]).to(D))]


@case("brucefan1983+CUDA-Programming/src/13-md/force-only/neighbor.cu", "gpu_find_neighbor")
def neighbors(call):
    n, side, cut = 60, 5.0, 2.0
    x = torch.rand(3, n) * side
    count, near = zeros(n, dtype=torch.int32), zeros(n, n, dtype=torch.int32)
    box = {f"box_l{a}": side for a in "xyz"} | {f"box_l{a}2": side / 2 for a in "xyz"}
    call(N=n, MN=n, g_NN=count, g_NL=near, g_x=x[0].clone(), g_y=x[1].clone(), g_z=x[2].clone(), cutoff2=cut, **box,
         grid=1, block=128)  # fmt: skip
    d = x.to(D)[:, :, None] - x.to(D)[:, None]
    d = d - side * (d / side).round()
    inside = (d.pow(2).sum(0) < cut) & ~torch.eye(n).bool()
    expected = torch.zeros(n, n, dtype=torch.int64)
    for j in range(n):
        found = inside[j].nonzero()[:, 0]
        expected[: len(found), j] = found
    return "[60] * 3", [(count, inside.sum(1)), (near, expected)]


@case("brucefan1983+CUDA-Programming/src/13-md/whole-code/integrate.cu", "gpu_scale_velocity")
def velocities(call):
    v = [R(100) for _ in range(3)]
    expected = [x.to(D) * 1.25 for x in v]
    call(N=100, scale_factor=1.25, g_vx=v[0], g_vy=v[1], g_vz=v[2], grid=1, block=128)
    return "[100] * 3", list(zip(v, expected, strict=True))


@case("jwyang+faster-rcnn.pytorch/lib/model/roi_pooling/src/roi_pooling_kernel.cu", "ROIPoolForward")
def roi_pool(call):
    x = R(2, 3, 20, 24)
    rois = torch.tensor([[0, 2, 3, 15, 12], [1, 0, 0, 23, 19], [1, 5, 5, 6, 6]]).float()
    y, at = zeros(3, 3, 4, 4), zeros(3, 3, 4, 4, dtype=torch.int32)
    call(nthreads=144, bottom_data=x, spatial_scale=1.0, height=20, width=24, channels=3, pooled_height=4,
         pooled_width=4, bottom_rois=rois, top_data=y, argmax_data=at, grid=1, block=256)  # fmt: skip
    expected = torch.zeros(3, 3, 4, 4, dtype=D)
    for r, (b, x1, y1, x2, y2) in enumerate(rois.int().tolist()):
        h, w = (y2 - y1 + 1) / 4, (x2 - x1 + 1) / 4
        for i in range(4):
            for j in range(4):
                rows = slice(max(0, math.floor(i * h) + y1), min(20, math.ceil((i + 1) * h) + y1))
                columns = slice(max(0, math.floor(j * w) + x1), min(24, math.ceil((j + 1) * w) + x1))
                expected[r, :, i, j] = x[b, :, rows, columns].to(D).amax((1, 2))
    return "[2, 3, 20, 24]", [(y, expected)]


@case("krmdel+120_days_of_CUDA_challenge/daily_projects/day_94/double_threshold.cu", "classify_kernel")
def classes(call):
    x, lab = torch.rand(500), zeros(500, dtype=torch.uint8)
    call(mag=x, lab=lab, highT=0.7, lowT=0.3, N=500, grid=2, block=256)
    strong, weak = x >= 0.7, (x >= 0.3) & (x < 0.7)
    values = [int(lab[strong].max()), int(lab[weak].max()), int(lab[~strong & ~weak].max())]
    expected = strong * values[0] + weak * values[1] + (~strong & ~weak) * values[2]
    if len(set(values)) != 3:
        raise ValueError(f"classes {values}")
    return "[500]", [(lab, expected)]
