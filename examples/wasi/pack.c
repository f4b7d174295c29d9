/* A compressor: `pack compress|decompress [IN [OUT]]` (standard input and output by default). LZ77 with hash chains
 * over a 64 KiB window, then an adaptive binary range coder over literals, lengths and distances; a checksum at the
 * end. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0x314b5057u /* "WPK1" */
#define WINDOW 65536
#define LONGEST 258
#define SHORTEST 3

static _Noreturn void fail(const char *what, const char *name) {
  fprintf(stderr, "pack: %s%s%s%s%s\n", name, name[0] ? ": " : "", what, errno ? ": " : "", errno ? strerror(errno) : "");
  exit(1);
}

typedef struct {
  uint8_t *bytes;
  size_t size, space;
} Buffer;

static void put(Buffer *b, uint8_t byte) {
  if (b->size == b->space) {
    b->space = b->space ? b->space * 2 : 4096;
    b->bytes = realloc(b->bytes, b->space);
    if (!b->bytes) fail("out of memory", "");
  }
  b->bytes[b->size++] = byte;
}

/* The coder: 12-bit probabilities that adapt by 1/32. */
typedef struct {
  uint16_t is_match, literal[256], length[256], high[256], low[256][256];
} Model;

static Model *new_model(void) {
  Model *m = malloc(sizeof *m);
  if (!m) fail("out of memory", "");
  for (size_t i = 0; i < sizeof *m / sizeof(uint16_t); i++) ((uint16_t *)m)[i] = 2048;
  return m;
}

typedef struct {
  uint32_t low, high;
  Buffer *out;
} Encoder;

static void encode_bit(Encoder *e, uint16_t *p, int bit) {
  uint32_t middle = e->low + (uint32_t)(((uint64_t)(e->high - e->low) * *p) >> 12);
  if (bit) e->high = middle, *p += (4096 - *p) >> 5;
  else e->low = middle + 1, *p -= *p >> 5;
  for (; ((e->low ^ e->high) & 0xff000000u) == 0; e->low <<= 8, e->high = e->high << 8 | 255) put(e->out, (uint8_t)(e->high >> 24));
}

static void encode_byte(Encoder *e, uint16_t *tree, unsigned byte) {
  for (unsigned node = 1, i = 8; i--;) {
    int bit = byte >> i & 1;
    encode_bit(e, &tree[node], bit);
    node = node << 1 | (unsigned)bit;
  }
}

typedef struct {
  uint32_t low, high, code;
  const uint8_t *at, *end;
} Decoder;

static uint8_t next(Decoder *d) { return d->at < d->end ? *d->at++ : 0; }

static int decode_bit(Decoder *d, uint16_t *p) {
  uint32_t middle = d->low + (uint32_t)(((uint64_t)(d->high - d->low) * *p) >> 12);
  int bit = d->code <= middle;
  if (bit) d->high = middle, *p += (4096 - *p) >> 5;
  else d->low = middle + 1, *p -= *p >> 5;
  for (; ((d->low ^ d->high) & 0xff000000u) == 0; d->low <<= 8, d->high = d->high << 8 | 255) d->code = d->code << 8 | next(d);
  return bit;
}

static unsigned decode_byte(Decoder *d, uint16_t *tree) {
  unsigned node = 1;
  while (node < 256) node = node << 1 | (unsigned)decode_bit(d, &tree[node]);
  return node & 255;
}

static uint32_t checksum(const Buffer *b) {
  uint32_t low = 1, high = 0; /* Adler-32 */
  for (size_t i = 0; i < b->size; i++) low = (low + b->bytes[i]) % 65521, high = (high + low) % 65521;
  return high << 16 | low;
}

static void put_u32(Buffer *b, uint32_t value) {
  for (int i = 0; i < 4; i++) put(b, (uint8_t)(value >> (8 * i)));
}
static uint32_t get_u32(const uint8_t *at) { return at[0] | at[1] << 8 | at[2] << 16 | (uint32_t)at[3] << 24; }

static void compress(const Buffer *in, Buffer *out) {
  put_u32(out, MAGIC);
  put_u32(out, (uint32_t)in->size);
  put_u32(out, checksum(in));
  Model *m = new_model();
  Encoder e = {0, ~0u, out};
  int32_t *heads = malloc(65536 * sizeof *heads), *chain = malloc((in->size + 1) * sizeof *chain);
  if (!heads || !chain) fail("out of memory", "");
  memset(heads, 255, 65536 * sizeof *heads);
  const uint8_t *b = in->bytes;
  for (size_t at = 0; at < in->size;) {
    size_t best = 0, distance = 0, most = in->size - at < LONGEST ? in->size - at : LONGEST;
    if (most >= SHORTEST) {
      uint32_t hash = ((uint32_t)b[at] << 16 | b[at + 1] << 8 | b[at + 2]) * 2654435761u >> 16;
      int tries = 32;
      for (int32_t other = heads[hash]; other >= 0 && at - (size_t)other < WINDOW && tries--; other = chain[other]) {
        size_t length = 0;
        while (length < most && b[(size_t)other + length] == b[at + length]) length++;
        if (length > best) best = length, distance = at - (size_t)other;
      }
    }
    size_t used = best >= SHORTEST ? best : 1;
    encode_bit(&e, &m->is_match, best >= SHORTEST);
    if (best >= SHORTEST) {
      encode_byte(&e, m->length, (unsigned)(best - SHORTEST));
      encode_byte(&e, m->high, (unsigned)(distance >> 8));
      encode_byte(&e, m->low[distance >> 8], (unsigned)(distance & 255));
    } else {
      encode_byte(&e, m->literal, b[at]);
    }
    for (; used--; at++) {
      if (at + SHORTEST > in->size) continue;
      uint32_t hash = ((uint32_t)b[at] << 16 | b[at + 1] << 8 | b[at + 2]) * 2654435761u >> 16;
      chain[at] = heads[hash];
      heads[hash] = (int32_t)at;
    }
  }
  put_u32(out, __builtin_bswap32(e.high));
}

static void decompress(const Buffer *in, Buffer *out, const char *name) {
  errno = 0;
  if (in->size < 16 || get_u32(in->bytes) != MAGIC) fail("not a packed file", name);
  uint32_t size = get_u32(in->bytes + 4);
  Model *m = new_model();
  Decoder d = {0, ~0u, 0, in->bytes + 12, in->bytes + in->size};
  for (int i = 0; i < 4; i++) d.code = d.code << 8 | next(&d);
  while (out->size < size) {
    if (!decode_bit(&d, &m->is_match)) {
      put(out, (uint8_t)decode_byte(&d, m->literal));
      continue;
    }
    size_t length = decode_byte(&d, m->length) + SHORTEST, distance = decode_byte(&d, m->high) << 8;
    distance |= decode_byte(&d, m->low[distance >> 8]);
    if (distance == 0 || distance > out->size || length > size - out->size) fail("damaged", name);
    while (length--) put(out, out->bytes[out->size - distance]);
  }
  if (checksum(out) != get_u32(in->bytes + 8)) fail("damaged: the checksum differs", name);
}

int main(int argc, char **argv) {
  if (argc < 2 || argc > 4 || (strcmp(argv[1], "compress") && strcmp(argv[1], "decompress"))) {
    fprintf(stderr, "usage: pack compress|decompress [IN [OUT]]\n");
    return 2;
  }
  const char *in_name = argc > 2 ? argv[2] : "-", *out_name = argc > 3 ? argv[3] : "-";
  FILE *in = strcmp(in_name, "-") ? fopen(in_name, "rb") : stdin;
  if (!in) fail("cannot open", in_name);
  Buffer input = {0}, output = {0};
  uint8_t piece[8192];
  for (size_t n; (n = fread(piece, 1, sizeof piece, in)) > 0;) {
    for (size_t i = 0; i < n; i++) put(&input, piece[i]);
  }
  if (ferror(in)) fail("cannot read", in_name);
  if (argv[1][0] == 'c') compress(&input, &output);
  else decompress(&input, &output, in_name);
  FILE *out = strcmp(out_name, "-") ? fopen(out_name, "wb") : stdout;
  if (!out) fail("cannot create", out_name);
  if (fwrite(output.bytes, 1, output.size, out) != output.size || fclose(out)) fail("cannot write", out_name);
  fprintf(stderr, "%zu -> %zu bytes\n", input.size, output.size);
  return 0;
}
