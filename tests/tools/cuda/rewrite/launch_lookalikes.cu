// What only looks like a launch stays as it is: k<<<1, 2>>>(x).
#include <iostream>
#include <string>
#include <vector>
/* k<<<1, 2>>>(x); */
struct Bits { int value; };
template <typename T> Bits operator<< (Bits a, T) { return a; }
inline Bits shift(Bits a) { return operator<< <int>(a, 2); }
std::vector<std::vector<std::vector<int>>> nested;
void print(int a, int b) {
  std::cout << "k<<<1, 2>>>(x)" << (1 << a) << R"(raw " k<<<1, 2>>>(x))" << '<' << '\'' << a << b << 1'000 << "\n";
  std::string text = R"end(
__global__ )" k<<<1,2>>>(x)
)end";
  a <<= b;
  // k<<<1, 2>>>(x) \
     k<<<1, 2>>>(x)
}
#if 0
isn't even C: k<<<1, 2>>>(x) __global__
#endif
