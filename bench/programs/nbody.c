/* Float: the planets' orbits, f64 with square roots and divisions. */
#include "bench.h"

typedef struct {
  double x, y, z, vx, vy, vz, mass;
} Body;

#define PI 3.141592653589793
#define SOLAR_MASS (4 * PI * PI)
#define DAYS 365.24
#define BODIES 5

static const Body START[BODIES] = {
    {0, 0, 0, 0, 0, 0, SOLAR_MASS},
    {4.84143144246472090e+00, -1.16032004402742839e+00, -1.03622044471123109e-01, 1.66007664274403694e-03 * DAYS,
     7.69901118419740425e-03 * DAYS, -6.90460016972063023e-05 * DAYS, 9.54791938424326609e-04 * SOLAR_MASS},
    {8.34336671824457987e+00, 4.12479856412430479e+00, -4.03523417114321381e-01, -2.76742510726411899e-03 * DAYS,
     4.99852801234917238e-03 * DAYS, 2.30417297573763929e-05 * DAYS, 2.85885980666130812e-04 * SOLAR_MASS},
    {1.28943695621391310e+01, -1.51111514016986312e+01, -2.23307578892655734e-01, 2.96460137564761618e-03 * DAYS,
     2.37847173959480950e-03 * DAYS, -2.96589568540237556e-05 * DAYS, 4.36624404335156298e-05 * SOLAR_MASS},
    {1.53796971148509165e+01, -2.59193146099879641e+01, 1.79258772950371181e-01, 2.68067772490389322e-03 * DAYS,
     1.62824170038242295e-03 * DAYS, -9.51592254519715870e-05 * DAYS, 5.15138902046611451e-05 * SOLAR_MASS},
};

static Body bodies[BODIES];

static void advance(double step) {
  for (i32 i = 0; i < BODIES; i++) {
    Body *a = &bodies[i];
    for (i32 j = i + 1; j < BODIES; j++) {
      Body *b = &bodies[j];
      double dx = a->x - b->x, dy = a->y - b->y, dz = a->z - b->z;
      double squared = dx * dx + dy * dy + dz * dz;
      double magnitude = step / (squared * __builtin_sqrt(squared));
      a->vx -= dx * b->mass * magnitude;
      a->vy -= dy * b->mass * magnitude;
      a->vz -= dz * b->mass * magnitude;
      b->vx += dx * a->mass * magnitude;
      b->vy += dy * a->mass * magnitude;
      b->vz += dz * a->mass * magnitude;
    }
  }
  for (i32 i = 0; i < BODIES; i++) {
    bodies[i].x += step * bodies[i].vx;
    bodies[i].y += step * bodies[i].vy;
    bodies[i].z += step * bodies[i].vz;
  }
}

EXPORT double run(i32 n) {
  for (i32 i = 0; i < BODIES; i++) bodies[i] = START[i];
  for (i32 i = 0; i < n; i++) advance(0.01);
  double energy = 0;
  for (i32 i = 0; i < BODIES; i++) {
    Body *b = &bodies[i];
    energy += b->mass * (b->vx * b->vx + b->vy * b->vy + b->vz * b->vz) / 2;
  }
  return energy;
}
