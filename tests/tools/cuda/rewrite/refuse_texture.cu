// error: 2: texture reference
texture<float, 1> table;
