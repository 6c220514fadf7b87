"""Right programs whose threads hand data over by flags, locks and barriers of the grid; and each with a part dropped.

`[[...]]` in a pattern is a fence or a barrier. Without it the program is wrong. WAIT and STORE are written in several
ways: volatile or atomic.
"""

import itertools
import re
from dataclasses import dataclass

LOADS = [
    "*(volatile int*)({p})",
    "look({p})",
    "atomicAdd({p}, 0)",
    "atomicOr({p}, 0)",
    "atomicCAS({p}, -1, -1)",
]
WAITS = [
    "while ({load} < {v}) {{}}",
    "while ({load} < {v});",
    "{{ int s; do {{ s = {load}; }} while (s < {v}); }}",
    "for (;;) {{ if ({load} >= {v}) break; }}",
]
STORES = ["*(volatile int*)({p}) = {v};", "atomicExch({p}, {v});", "put({p}, {v});"]
FENCES = ["__threadfence();", "__threadfence_system();"]

# Three blocks of 64 threads; t is the thread, b the block. All memory begins with zeros.
ARRIVE = "atomicAdd(flag, 1); WAIT(flag, n * 3)"
SENSE = """if (atomicAdd(flag + 1, 1) == 2) { STORE(flag + 1, 0) [[OF_VOLATILE]] STORE(flag, n) }
          else { WAIT(flag, n) }"""
ROUNDS = """
        int n = 0;
        for (int r = 0; r < 2; ++r) {{
          data[b * 64 + t] = r; ++n;
          {barrier}
          out[b * 64 + t] += data[(b + 1) % 3 * 64 + 63 - t]; ++n;
          {barrier}
        }}"""
CRITICAL = "data[0] += 1; data[1] = b;"
PATTERNS = {
    "a thread to a thread": """
        if (t) return;
        if (b == 0) { data[0] = 7; [[FENCE]] STORE(flag, 1) }
        if (b == 1) { WAIT(flag, 1) [[FENCE]] out[0] = data[0]; }""",
    "a block to a block": """
        if (b == 0) { data[t] = t; [[FENCE]] [[__syncthreads();]] if (t == 0) { STORE(flag, 1) } }
        if (b == 1) { if (t == 0) { WAIT(flag, 1) [[FENCE]] } [[__syncthreads();]] out[t] = data[63 - t]; }""",
    "a block to a block, by one fence": """
        if (b == 0) { data[t] = t; [[__syncthreads();]] if (t == 0) { [[FENCE]] STORE(flag, 1) } }
        if (b == 1) { if (t == 9) { WAIT(flag, 1) [[FENCE]] } [[__syncthreads();]] out[t] = data[63 - t]; }""",
    "a warp to a warp of another block": """
        if (t >= 32) return;
        if (b == 0) { data[t] = t; [[FENCE]] [[__syncwarp();]] if (t == 5) { STORE(flag, 1) } }
        if (b == 1) { if (t == 0) { WAIT(flag, 1) [[FENCE]] } [[__syncwarp();]] out[t] = data[31 - t]; }""",
    "a warp to a warp of its block": """
        __shared__ int d[32], f;
        if (t == 0) f = 0;
        __syncthreads();
        if (t < 32) { d[t] = t; [[__threadfence_block();]] [[__syncwarp();]] if (t == 0) { STORE(&f, 1) } }
        else { if (t == 32) { WAIT(&f, 1) [[__threadfence_block();]] } [[__syncwarp();]] out[t] = d[63 - t]; }""",
    "a chain of blocks": """
        if (b && t == 0) { WAIT(flag + b - 1, 1) [[FENCE]] }
        [[__syncthreads();]]
        data[b * 64 + t] = b ? data[b * 64 - 1 - t] + 1 : t;
        [[FENCE]] [[__syncthreads();]]
        if (t == 0) { STORE(flag + b, 1) }""",
    "a ring of two": """
        if (t) return;
        for (int i = 0; i < 6; ++i) {
          if (b == 0) { WAIT(flag + 1, i - 1) [[FENCE]] data[i % 2] = i; [[FENCE]] STORE(flag, i + 1) }
          if (b == 1) { WAIT(flag, i + 1) [[FENCE]] out[i] = data[i % 2]; [[FENCE]] STORE(flag + 1, i + 1) }
        }""",
    "a lock": f"""
        if (t) return;
        while (atomicCAS(flag, 0, 1)) {{}}
        [[FENCE]] {CRITICAL} [[FENCE]]
        STORE(flag, 0)""",
    "a lock that is looked at first": f"""
        if (t) return;
        do {{ while (*(volatile int*)flag) {{}} }} while (atomicCAS(flag, 0, 1));
        [[FENCE]] {CRITICAL} [[FENCE]]
        STORE(flag, 0)""",
    "a lock of a block": """
        if (t == 0) { while (atomicExch(flag, 1)) {} [[FENCE]] }
        [[__syncthreads();]]
        data[63 - t] += b;
        [[FENCE]] [[__syncthreads();]]
        if (t == 0) { STORE(flag, 0) }""",
    "a lock by tickets": f"""
        if (t) return;
        const int own = atomicAdd(flag, 1);
        WAIT(flag + 1, own) [[FENCE]] {CRITICAL} [[FENCE]]
        STORE(flag + 1, own + 1)""",
    "a barrier of the grid, all fence": ROUNDS.format(
        barrier=f"[[FENCE]] [[__syncthreads();]] if (t == 0) {{ {ARRIVE} [[FENCE]] }} [[__syncthreads();]]"
    ),
    "a barrier of the grid, one fences": ROUNDS.format(
        barrier=f"[[__syncthreads();]] if (t == 0) {{ [[FENCE]] {ARRIVE} [[FENCE]] }} [[__syncthreads();]]"
    ),
    "a barrier of the grid by its sense": ROUNDS.format(
        barrier=f"[[__syncthreads();]] if (t == 0) {{ [[FENCE]] {SENSE} [[FENCE]] }} [[__syncthreads();]]"
    ),
    "a barrier of the grid by arrays": ROUNDS.format(
        barrier="""[[FENCE]] [[__syncthreads();]]
          if (t == 0) { STORE(flag + b, n) }
          if (b == 0) {
            if (t < 3) { WAIT(flag + t, n) }
            [[FENCE]] [[__syncthreads();]]
            if (t < 3) { STORE(flag + 3 + t, n) }
          }
          if (t == 0) { WAIT(flag + 3 + b, n) [[FENCE]] }
          [[__syncthreads();]]"""
    ),
}
KEPT = 7 * list(PATTERNS).index("a warp to a warp of its block")
HEAD = """#include <cuda_runtime.h>
__device__ int look(int* p) { return *(volatile int*)p; }
__device__ void put(volatile int* p, int value) { *p = value; }
"""
KERNEL = """__global__ void {name}(int* data, int* flag, int* out) {{
  const int t = threadIdx.x, b = blockIdx.x;
  (void)t, (void)b;{body}
}}
"""
MAIN = """int main() {{
  int* all;
  cudaMallocManaged(&all, 4 * 600);
{launches}  return 0;
}}
"""
LAUNCH = (
    "  cudaMemset(all, 0, 4 * 600); {name}<<<3, 64>>>(all, all + 200, all + 300); cudaDeviceSynchronize();\n"
)


@dataclass
class Program:
    """A kernel. `dropped` says what is missing; "" is right."""

    name: str
    pattern: str
    body: str
    dropped: str = ""


def programs(every: int = 1) -> list[Program]:
    """Each pattern in each way, or each `every`th of all, with what is dropped from it.

    KEPT is always there: in it a cast's operand, &f, once was taken for volatile memory.
    """
    ways = [*itertools.product(PATTERNS, range(7))][KEPT % every :: every]
    return [one for number, (pattern, way) in enumerate(ways) for one in _family(f"k{number}", pattern, way)]


def _family(name: str, pattern: str, way: int) -> list[Program]:
    """The right one, and those without one of its parts. The ways differ in all their loads, waits and stores."""
    load, wait, store = LOADS[way % len(LOADS)], WAITS[way % len(WAITS)], STORES[way % len(STORES)]
    text = PATTERNS[pattern].replace("[[OF_VOLATILE]]", "FENCE" if "Exch" in store else "[[FENCE]]")
    text = text.replace("FENCE", FENCES[way % len(FENCES)])
    text = re.sub(
        r"WAIT\((.*?), (.*?)\)(?= |$)", lambda m: wait.format(load=load.format(p=m[1]), v=m[2]), text
    )
    text = re.sub(r"STORE\((.*?), (.*?)\)(?= |$)", lambda m: store.format(p=m[1], v=m[2]), text, flags=re.M)
    parts = re.split(r"\[\[(.*?)\]\]", text)  # the odd ones can be dropped
    made = [Program(name, pattern, "".join(parts))]
    for at in range(1, len(parts), 2):
        left = [part for number, part in enumerate(parts) if number != at]
        made.append(Program(f"{name}_{at // 2}", pattern, "".join(left), f"{at // 2}: {parts[at]}"))
    return made


def file_of(some: list[Program]) -> str:
    """One .cu with these kernels, each launched once."""
    kernels = "".join(KERNEL.format(name=one.name, body=one.body) for one in some)
    return HEAD + kernels + MAIN.format(launches="".join(LAUNCH.format(name=one.name) for one in some))
