static inline int inner(int *p, int d) {
  return *p / d;
}
