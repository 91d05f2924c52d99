/* Known results of an installed libquantd_core.so, and its errors for wrong calls. Exits with 0 if all
 * are right. C99, without any header of C++. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "quantd/core.h"

static int failures = 0;

static void check(int right, int line, const char* what) {
  if (right) return;
  fprintf(stderr, "line %d: %s\n", line, what);
  ++failures;
}
#define CHECK(condition) check((condition), __LINE__, #condition)

static quantd_parameters parameters_of(int32_t operation, int32_t x_type, int32_t rank,
                                       const int64_t* shape) {
  quantd_parameters parameters = {sizeof parameters};
  parameters.operation = operation;
  parameters.x_type = x_type;
  parameters.x_rank = rank;
  parameters.x_shape = shape;
  return parameters;
}

static quantd_call call_of(const void* x, uint64_t x_size, void* y, uint64_t y_size) {
  quantd_call call = {sizeof call};
  call.threads = 1;
  call.x = x;
  call.x_size = x_size;
  call.y = y;
  call.y_size = y_size;
  return call;
}

/* Makes, runs and frees a plan. */
static int32_t run(const quantd_parameters* parameters, const quantd_call* call,
                   quantd_error* error) {
  quantd_plan* plan = NULL;
  int32_t code = quantd_plan_create(parameters, &plan, error);
  if (code == QUANTD_OK) code = quantd_plan_run(plan, call, error);
  quantd_plan_free(plan);
  return code;
}

static void quantizes(void) {
  const float x[] = {-1.5f, 0.25f, 100.0f, 0.75f};
  const int64_t shape[] = {4};
  const float one_scale = 0.5f;
  const int8_t one_zero_point = 10;
  const quantd_tensor scale = {QUANTD_FLOAT, 0, NULL, &one_scale, sizeof one_scale};
  const quantd_tensor zero_point = {QUANTD_INT8, 0, NULL, &one_zero_point, 1};
  quantd_parameters parameters = parameters_of(QUANTD_QUANTIZE, QUANTD_FLOAT, 1, shape);
  parameters.scale = &scale;
  parameters.zero_point = &zero_point;
  parameters.report_error = 1;
  int8_t y[4] = {0};
  quantd_report report;
  quantd_call call = call_of(x, sizeof x, y, sizeof y);
  call.report = &report;
  quantd_error error = {sizeof error};
  CHECK(run(&parameters, &call, &error) == QUANTD_OK);
  CHECK(y[0] == 7 && y[1] == 10 && y[2] == 127 && y[3] == 12); /* halves go to even */
  CHECK(report.saturated_elements == 1 && report.non_finite_elements == 0);
  CHECK(report.max_absolute_error == 100.0 - 58.5);

  /* Over memory that is not aligned. */
  unsigned char moved[sizeof x + 1];
  memcpy(moved + 1, x, sizeof x);
  int8_t again[5] = {0};
  call.x = moved + 1;
  call.y = again + 1;
  CHECK(run(&parameters, &call, &error) == QUANTD_OK);
  CHECK(memcmp(again + 1, y, sizeof y) == 0);

  call.report = NULL;
  CHECK(run(&parameters, &call, &error) == QUANTD_INVALID_ARGUMENT);
  CHECK(strcmp(error.field, "report") == 0);
}

static void dequantizes(void) {
  const uint8_t x[] = {0xF2, 0x07}; /* INT4: 2, -1, 7 */
  const int64_t shape[] = {3};
  const float one_scale = 0.25f;
  const uint8_t one_zero_point = 0x01;
  const quantd_tensor scale = {QUANTD_FLOAT, 0, NULL, &one_scale, sizeof one_scale};
  const quantd_tensor zero_point = {QUANTD_INT4, 0, NULL, &one_zero_point, 1};
  quantd_parameters parameters = parameters_of(QUANTD_DEQUANTIZE, QUANTD_INT4, 1, shape);
  parameters.scale = &scale;
  parameters.zero_point = &zero_point;
  float y[3];
  const quantd_call call = call_of(x, sizeof x, y, sizeof y);
  quantd_error error = {sizeof error};
  CHECK(run(&parameters, &call, &error) == QUANTD_OK);
  CHECK(y[0] == 0.25f && y[1] == -0.5f && y[2] == 1.5f);
}

static void quantizes_dynamically(void) {
  /* The example of ONNX DynamicQuantizeLinear. */
  const float x[] = {0.0f, 2.0f, -3.0f, -2.5f, 1.34f, 0.5f};
  const int64_t shape[] = {6};
  const uint8_t expected[] = {153, 255, 0, 26, 221, 179};
  const quantd_parameters parameters =
      parameters_of(QUANTD_DYNAMIC_QUANTIZE, QUANTD_FLOAT, 1, shape);
  uint8_t y[6], zero_point;
  float scale;
  quantd_call call = call_of(x, sizeof x, y, sizeof y);
  call.scale = &scale;
  call.scale_size = sizeof scale;
  call.zero_point = &zero_point;
  call.zero_point_size = 1;
  quantd_error error = {sizeof error};
  CHECK(run(&parameters, &call, &error) == QUANTD_OK);
  CHECK(memcmp(y, expected, sizeof y) == 0);
  CHECK(fabsf(scale - 0.0196078438f) < 1e-9f && zero_point == 153);

  const float bad[] = {0.0f, 1.0f, 2.0f, NAN, 0.0f, 0.0f};
  call.x = bad;
  CHECK(run(&parameters, &call, &error) == QUANTD_INVALID_ARGUMENT);
  CHECK(strcmp(error.field, "x") == 0 && strstr(error.message, "3") != NULL);
}

static void describes(void) {
  const int64_t shape[] = {5, 32};
  quantd_parameters parameters = parameters_of(QUANTD_DYNAMIC_QUANTIZE, QUANTD_FLOAT, 2, shape);
  parameters.output_type = QUANTD_FLOAT4E2M1;
  parameters.scale_type = QUANTD_FLOAT8E4M3FN;
  parameters.block_size = 16;
  quantd_plan* plan = NULL;
  CHECK(quantd_plan_create(&parameters, &plan, NULL) == QUANTD_OK);
  quantd_plan_info info = {sizeof info};
  CHECK(quantd_plan_describe(plan, &info, NULL) == QUANTD_OK);
  CHECK(info.struct_size == sizeof info && info.operation == QUANTD_DYNAMIC_QUANTIZE);
  CHECK(info.x_size == 640 && info.y_size == 80 && info.elements == 160);
  CHECK(info.scale_type == QUANTD_FLOAT8E4M3FN && info.scale_size == 10 && info.scales == 10);
  CHECK(info.scale_rank == 2 && info.scale_shape[0] == 5 && info.scale_shape[1] == 2);
  CHECK(info.zero_point_type == 0 && info.zero_point_size == 0);
  CHECK(info.tensor_scale_type == QUANTD_FLOAT && info.tensor_scale_size == 4);
  quantd_plan_free(plan);
  quantd_plan_free(NULL);
}

static void refuses(void) {
  const float x[4] = {1, 2, 3, 4};
  const int64_t shape[] = {4};
  const float one_scale = 1;
  const quantd_tensor scale = {QUANTD_FLOAT, 0, NULL, &one_scale, sizeof one_scale};
  quantd_parameters parameters = parameters_of(QUANTD_QUANTIZE, QUANTD_FLOAT, 1, shape);
  parameters.scale = &scale;
  uint8_t y[4];
  quantd_call call = call_of(x, sizeof x, y, 3);
  quantd_error error = {sizeof error};
  CHECK(run(&parameters, &call, &error) == QUANTD_INVALID_ARGUMENT);
  CHECK(error.code == QUANTD_INVALID_ARGUMENT && strcmp(error.field, "y") == 0);
  CHECK(strcmp(error.message, "y has 3 bytes, the plan's has 4") == 0);

  call.y = (void*)x;
  call.y_size = 4;
  CHECK(run(&parameters, &call, &error) == QUANTD_INVALID_ARGUMENT);
  CHECK(strcmp(error.field, "y") == 0 && strstr(error.message, "overlaps x") != NULL);

  call.y = y;
  const int32_t cancelled = 1;
  call.cancelled = &cancelled;
  CHECK(run(&parameters, &call, &error) == QUANTD_CANCELLED);
  call.cancelled = NULL;
  CHECK(run(&parameters, &call, &error) == QUANTD_OK);
  CHECK(error.code == QUANTD_OK && error.field[0] == 0 && error.message[0] == 0);

  parameters.axis = 7;
  parameters.has_axis = 1;
  parameters.block_size = 2;
  CHECK(run(&parameters, &call, &error) == QUANTD_INVALID_ARGUMENT);
  CHECK(strcmp(error.field, "axis") == 0);
}

static void quantizes_embeddings(void) {
  const float x[] = {3, -4, 0, 0};
  const int64_t shape[] = {1, 4};
  int8_t y[4];
  quantd_error error = {sizeof error};
  quantd_embeddings embeddings = {sizeof embeddings};
  embeddings.recipe = QUANTD_EMBEDDING_DIRECTION;
  embeddings.x_type = QUANTD_FLOAT;
  embeddings.x_rank = 2;
  embeddings.x_shape = shape;
  embeddings.x = x;
  embeddings.x_size = sizeof x;
  embeddings.y = y;
  embeddings.y_size = sizeof y;
  CHECK(quantd_quantize_embeddings(&embeddings, &error) == QUANTD_OK);
  CHECK(y[0] == 76 && y[1] == -101 && y[2] == 0 && y[3] == 0);
  CHECK(quantd_quantize_embeddings(NULL, &error) == QUANTD_INVALID_ARGUMENT);
  CHECK(strcmp(error.field, "embeddings") == 0);

  embeddings.recipe = QUANTD_EMBEDDING_RANGES;
  CHECK(quantd_quantize_embeddings(&embeddings, &error) == QUANTD_INVALID_ARGUMENT);
  CHECK(strcmp(error.field, "ranges") == 0);
  embeddings.recipe = QUANTD_EMBEDDING_BITS;
  embeddings.reserved = 1;
  CHECK(quantd_quantize_embeddings(&embeddings, &error) == QUANTD_INVALID_ARGUMENT);
  CHECK(strcmp(error.field, "reserved") == 0);
  embeddings.reserved = 0;
  embeddings.y = (void*)(uintptr_t)x;
  embeddings.y_size = 1;
  CHECK(quantd_quantize_embeddings(&embeddings, &error) == QUANTD_INVALID_ARGUMENT);
  CHECK(strcmp(error.field, "y") == 0 && strstr(error.message, "overlaps x") != NULL);
  embeddings.y = NULL;
  CHECK(quantd_quantize_embeddings(&embeddings, &error) == QUANTD_INVALID_ARGUMENT);
  embeddings.y = y;
  embeddings.threads = -1;
  CHECK(quantd_quantize_embeddings(&embeddings, &error) == QUANTD_INVALID_ARGUMENT);
  CHECK(strcmp(error.field, "threads") == 0);
  embeddings.threads = 1;
  embeddings.struct_size = 8;
  CHECK(quantd_quantize_embeddings(&embeddings, &error) == QUANTD_INVALID_ARGUMENT);
  CHECK(strcmp(error.field, "struct_size") == 0);
  embeddings.struct_size = sizeof embeddings;
  CHECK(quantd_quantize_embeddings(&embeddings, &error) == QUANTD_OK);
  CHECK((y[0] & 0xFF) == 0x80);
}

int main(void) {
  CHECK(strcmp(quantd_core_version(), VERSION_OF_PKG_CONFIG) == 0);
  CHECK(quantd_core_abi() == QUANTD_CORE_ABI);
  CHECK(quantd_core_target()[0] != 0);
  quantizes();
  dequantizes();
  quantizes_dynamically();
  describes();
  quantizes_embeddings();
  refuses();
  return failures == 0 ? 0 : 1;
}
