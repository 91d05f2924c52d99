/* Quantizes six floats to INT4, two a byte, with a scale for each row. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "quantd/core.h"

int main(void) {
  const float x[2][3] = {{-1.0f, 0.0f, 7.0f}, {0.5f, -3.5f, 2.0f}};
  const int64_t shape[] = {2, 3};

  quantd_parameters parameters = {sizeof parameters};
  parameters.operation = QUANTD_DYNAMIC_QUANTIZE;
  parameters.x_type = QUANTD_FLOAT;
  parameters.x_rank = 2;
  parameters.x_shape = shape;
  parameters.output_type = QUANTD_INT4;
  parameters.symmetry = QUANTD_SYMMETRY_SYMMETRIC;
  parameters.has_axis = 1;
  parameters.axis = 0;

  quantd_plan* plan = NULL;
  quantd_error error = {sizeof error};
  if (quantd_plan_create(&parameters, &plan, &error) != QUANTD_OK) {
    fprintf(stderr, "%s: %s\n", error.field, error.message);
    return 1;
  }
  quantd_plan_info info = {sizeof info};
  quantd_plan_describe(plan, &info, NULL);

  uint8_t* const y = malloc(info.y_size);
  float* const scale = malloc(info.scale_size);
  quantd_call call = {sizeof call};
  call.threads = 1;
  call.x = x;
  call.x_size = sizeof x;
  call.y = y;
  call.y_size = info.y_size;
  call.scale = scale;
  call.scale_size = info.scale_size;
  const int32_t code = quantd_plan_run(plan, &call, &error);
  if (code != QUANTD_OK) {
    fprintf(stderr, "%s: %s\n", error.field, error.message);
  } else {
    /* Element i is in byte i / 2, the even ones in the low nibble. */
    for (int i = 0; i < 6; ++i) {
      const int nibble = y[i / 2] >> (i % 2 * 4) & 15;
      printf("%g -> %d\n", x[i / 3][i % 3], nibble < 8 ? nibble : nibble - 16);
    }
    printf("scales %g, %g; %" PRIu64 " bytes\n", scale[0], scale[1], info.y_size);
  }
  free(scale);
  free(y);
  quantd_plan_free(plan);
  return code == QUANTD_OK ? 0 : 1;
}
