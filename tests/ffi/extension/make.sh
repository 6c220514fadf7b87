#!/usr/bin/env bash
cd src
nvcc -c -o old.cu.o old_kernels.cu -x cu -Xcompiler -fPIC -arch=sm_30 -D THRESHOLD=0.5f \
  -gencode arch=compute_52,code=sm_52
cd ..
python build.py
