/* Float: an n by n picture of reflecting spheres in f32, with square roots and recursion. */
#include "bench.h"

typedef struct {
  float x, y, z;
} Vector;
typedef struct {
  Vector centre;
  float radius, shine;
} Sphere;

static const Sphere SPHERES[] = {
    {{0, -0.3f, 3}, 1, 0.4f}, {{1.4f, 0.5f, 4}, 1.1f, 0.3f}, {{-1.5f, 0.2f, 3.5f}, 0.9f, 0.5f}, {{0.3f, 1.2f, 2.2f}, 0.3f, 0.1f}, {{0, -1001, 3}, 1000, 0.2f}};

static Vector add(Vector a, Vector b) { return (Vector){a.x + b.x, a.y + b.y, a.z + b.z}; }
static Vector scale(Vector a, float by) { return (Vector){a.x * by, a.y * by, a.z * by}; }
static float dot(Vector a, Vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static Vector unit(Vector a) { return scale(a, 1 / __builtin_sqrtf(dot(a, a))); }

static float hit(const Sphere *s, Vector from, Vector along) {
  Vector to = add(s->centre, scale(from, -1));
  float b = dot(to, along), c = dot(to, to) - s->radius * s->radius, d = b * b - c;
  if (d < 0) return 1e30f;
  float root = __builtin_sqrtf(d), near = b - root;
  return near > 1e-3f ? near : b + root > 1e-3f ? b + root : 1e30f;
}

static float trace(Vector from, Vector along, i32 depth) {
  float nearest = 1e30f;
  const Sphere *found = 0;
  for (u32 i = 0; i < sizeof SPHERES / sizeof *SPHERES; i++) {
    float distance = hit(&SPHERES[i], from, along);
    if (distance < nearest) nearest = distance, found = &SPHERES[i];
  }
  if (!found) return 0.5f + 0.5f * along.y;
  Vector at = add(from, scale(along, nearest)), normal = unit(add(at, scale(found->centre, -1)));
  Vector light = unit((Vector){-1, 2, -1});
  float lit = dot(normal, light);
  for (u32 i = 0; i < sizeof SPHERES / sizeof *SPHERES && lit > 0; i++) {
    if (hit(&SPHERES[i], at, light) < 1e29f) lit = 0;
  }
  float colour = lit > 0 ? 0.1f + 0.7f * lit : 0.1f;
  if (depth == 0) return colour;
  Vector mirrored = add(along, scale(normal, -2 * dot(along, normal)));
  return colour * (1 - found->shine) + found->shine * trace(at, mirrored, depth - 1);
}

EXPORT i32 run(i32 n) {
  u32 sum = 0;
  for (i32 y = 0; y < n; y++) {
    for (i32 x = 0; x < n; x++) {
      Vector along = unit((Vector){2.0f * x / n - 1, 1 - 2.0f * y / n, 1.5f});
      sum = mix(sum, (u32)(i32)(255 * trace((Vector){0, 0, -2}, along, 3)));
    }
  }
  return (i32)sum;
}
