/* Quantizes two embeddings of nine values as vector databases store them: bits, and bytes by ranges. */
#include <stdint.h>
#include <stdio.h>

#include "quantd/core.h"

static int quantize(quantd_embeddings* embeddings, const char* name) {
  quantd_error error = {sizeof error};
  if (quantd_quantize_embeddings(embeddings, &error) != QUANTD_OK) {
    fprintf(stderr, "%s: %s\n", error.field, error.message);
    return 1;
  }
  const uint8_t* const y = embeddings->y;
  printf("%s:", name);
  for (uint64_t i = 0; i < embeddings->y_size; ++i) printf(" %d", y[i]);
  printf("\n");
  return 0;
}

int main(void) {
  const float x[2][9] = {{1, -1, 0.5f, -0.5f, 0, 1, 1, 1, -1}, {-1, 1, 1, 1, 1, 1, 1, 1, 1}};
  const float ranges[2][9] = {{-1, -1, -1, -1, -1, -1, -1, -1, -1}, {1, 1, 1, 1, 1, 1, 1, 1, 1}};
  const int64_t shape[] = {2, 9};
  uint8_t bits[2][2]; /* ceil(9 / 8) bytes an embedding */
  uint8_t bytes[2][9];

  quantd_embeddings embeddings = {sizeof embeddings};
  embeddings.x_type = QUANTD_FLOAT;
  embeddings.x_rank = 2;
  embeddings.x_shape = shape;
  embeddings.x = x;
  embeddings.x_size = sizeof x;
  embeddings.recipe = QUANTD_EMBEDDING_BITS;
  embeddings.y = bits;
  embeddings.y_size = sizeof bits;
  if (quantize(&embeddings, "bits") != 0) return 1;

  const quantd_tensor lowest_and_highest = {QUANTD_FLOAT, 2, shape, ranges, sizeof ranges};
  embeddings.recipe = QUANTD_EMBEDDING_RANGES;
  embeddings.ranges = &lowest_and_highest;
  embeddings.y = bytes;
  embeddings.y_size = sizeof bytes;
  return quantize(&embeddings, "ranges");
}
