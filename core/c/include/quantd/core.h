/* quantd's engine for every language that can call C: Quantize, Dequantize, DynamicQuantize and
 * QuantizeEmbeddings over the caller's memory, with the same bits as the server.
 *
 *   quantd_parameters parameters = {sizeof parameters};
 *   parameters.operation = QUANTD_DYNAMIC_QUANTIZE;
 *   ... type and shape of x ...
 *   quantd_plan* plan;
 *   quantd_error error = {sizeof error};
 *   if (quantd_plan_create(&parameters, &plan, &error) != QUANTD_OK) { ... error.message ... }
 *   quantd_plan_info info = {sizeof info};
 *   quantd_plan_describe(plan, &info, &error);          how many bytes each output takes
 *   quantd_call call = {sizeof call};
 *   ... x and the outputs, with their sizes ...
 *   quantd_plan_run(plan, &call, &error);
 *   quantd_plan_free(plan);
 *
 * Fill every struct that begins with struct_size with zeros first, and set struct_size to sizeof. A
 * later library knows by it which fields the caller has. An earlier one refuses fields that it does
 * not know, unless they are 0. The comment at each field says what 0 or NULL means.
 *
 * Every function that can fail returns a code, writes field and message to `error` (which may be
 * NULL), and throws and prints nothing. After an error the outputs may hold anything.
 *
 * All functions are safe from any thread. A plan may be run by any number of threads at once, and
 * must not be freed while one does. After fork() the child may go on, with the thread that it has.
 *
 * A message names the field and both numbers. Little-endian machines only.
 */
#ifndef QUANTD_CORE_H_
#define QUANTD_CORE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define QUANTD_CORE_API __attribute__((visibility("default")))
#else
#define QUANTD_CORE_API
#endif

/* The soname's number: grows when a program that was built with an earlier one could not run. */
#define QUANTD_CORE_ABI 0

/* Most dimensions that a tensor may have. */
#define QUANTD_MAX_RANK 64

/* Codes, with gRPC's numbers. */
enum {
  QUANTD_OK = 0,
  QUANTD_CANCELLED = 1,          /* the flag of the call was set */
  QUANTD_INVALID_ARGUMENT = 3,   /* `field` says which */
  QUANTD_RESOURCE_EXHAUSTED = 8, /* no memory */
  QUANTD_INTERNAL = 13           /* should not happen */
};

/* What to do. */
enum {
  QUANTD_QUANTIZE = 1,        /* ONNX QuantizeLinear 10 to 28, oneDNN Graph Quantize */
  QUANTD_DEQUANTIZE = 2,      /* ONNX DequantizeLinear 10 to 28, oneDNN Graph Dequantize */
  QUANTD_DYNAMIC_QUANTIZE = 3 /* ONNX DynamicQuantizeLinear 11, OCP MX 1.0, NVFP4 */
};

/* Element types, with the numbers of ONNX TensorProto.DataType. Bytes: little endian, row-major, no
 * padding. Types narrower than a byte are packed over the flattened tensor, lowest bits first, over
 * the ends of rows: 4 bits are two a byte, element 0 in the low nibble, ceil(N / 2) bytes; 2 bits
 * are four a byte, x0 | x1 << 2 | x2 << 4 | x3 << 6, ceil(N / 4) bytes; 6 bits are four in three
 * bytes, x0 | x1 << 6 | x2 << 12 | x3 << 18 in little endian, ceil(6 N / 8) bytes. The unused high
 * bits of the last byte are written as 0 and ignored when read. */
enum {
  QUANTD_UNSPECIFIED = 0,
  QUANTD_FLOAT = 1,
  QUANTD_UINT8 = 2,
  QUANTD_INT8 = 3,
  QUANTD_UINT16 = 4,
  QUANTD_INT16 = 5,
  QUANTD_INT32 = 6,
  QUANTD_FLOAT16 = 10,
  QUANTD_BFLOAT16 = 16,
  QUANTD_FLOAT8E4M3FN = 17,
  QUANTD_FLOAT8E4M3FNUZ = 18,
  QUANTD_FLOAT8E5M2 = 19,
  QUANTD_FLOAT8E5M2FNUZ = 20,
  QUANTD_UINT4 = 21,
  QUANTD_INT4 = 22,
  QUANTD_FLOAT4E2M1 = 23,
  QUANTD_FLOAT8E8M0 = 24,
  QUANTD_UINT2 = 25,
  QUANTD_INT2 = 26,
  QUANTD_FLOAT6E2M3 = 27,
  QUANTD_FLOAT6E3M2 = 28
};

/* saturate: what FLOAT8 outputs make of values past the largest. */
enum {
  QUANTD_SATURATE_DEFAULT = 0, /* ON */
  QUANTD_SATURATE_ON = 1,      /* the largest */
  QUANTD_SATURATE_OFF = 2      /* NaN or infinity */
};

/* zero_point_order: when the zero point is added. */
enum {
  QUANTD_ZERO_POINT_ORDER_DEFAULT = 0,        /* AFTER_ROUNDING */
  QUANTD_ZERO_POINT_ORDER_AFTER_ROUNDING = 1, /* ONNX: clamp(rint(x / scale) + zero_point) */
  QUANTD_ZERO_POINT_ORDER_BEFORE_ROUNDING = 2 /* oneDNN: clamp(rint(x / scale + zero_point)) */
};

/* symmetry: of a range that is found in x. */
enum {
  QUANTD_SYMMETRY_DEFAULT = 0,    /* ASYMMETRIC for integers, SYMMETRIC for the other types */
  QUANTD_SYMMETRY_ASYMMETRIC = 1, /* [min(0, min x), max(0, max x)], with a zero point */
  QUANTD_SYMMETRY_SYMMETRIC = 2   /* [-max|x|, max|x|], without one */
};

/* non_finite: what the range makes of NaN and infinities. */
enum {
  QUANTD_NON_FINITE_DEFAULT = 0, /* REJECT */
  QUANTD_NON_FINITE_REJECT = 1,  /* an error that names the index of the first one */
  QUANTD_NON_FINITE_IGNORE = 2   /* they take no part in it */
};

/* A tensor that a plan reads when it is made, and does not look at again. */
typedef struct quantd_tensor {
  int32_t data_type;
  int32_t rank;         /* 0 to QUANTD_MAX_RANK */
  const int64_t* shape; /* `rank` lengths, outermost first, each >= 0; NULL if rank is 0 */
  const void* data;     /* at any address; NULL if size is 0 */
  uint64_t size;        /* bytes; must be what data_type and shape say */
} quantd_tensor;

/* What is asked for. Fields of another operation than `operation` must be 0 or NULL. */
typedef struct quantd_parameters {
  uint32_t struct_size;
  int32_t operation;

  /* x: type and shape; its bytes come with the call. Quantize and DynamicQuantize take FLOAT,
   * FLOAT16, BFLOAT16 and INT32, Dequantize what Quantize gives, and INT32. */
  int32_t x_type;
  int32_t x_rank;         /* 0 to QUANTD_MAX_RANK */
  const int64_t* x_shape; /* as in quantd_tensor */

  /* Quantize and Dequantize. FLOAT, FLOAT16, BFLOAT16, INT32 or FLOAT8E8M0; Dequantize also
   * FLOAT8E4M3FN. Quantize: neither 0 nor NaN nor infinite. Required. */
  const quantd_tensor* scale;
  /* Quantize and Dequantize. Of scale's shape and of the quantized type. NULL: none. */
  const quantd_tensor* zero_point;
  /* Dequantize. One FLOAT that every scale is multiplied by. NULL: 1. */
  const quantd_tensor* tensor_scale;

  /* y's type. 0: Quantize: zero_point's, else UINT8; Dequantize: scale's; DynamicQuantize: UINT8. */
  int32_t output_type;

  /* Which scale belongs to which element. None of these: one scale for x; Quantize and Dequantize:
   * as scale's shape says (1-D: along axis 1; of x's rank: groups). */
  int32_t has_axis;           /* 1: `axis` counts; 0: it must be 0 */
  int64_t axis;               /* in [-rank, rank - 1] */
  int64_t block_size;         /* elements in a block along axis (default 1), the last may be short;
                                 0: not blocked */
  const int64_t* block_shape; /* one length per dimension of x, -1 for the whole; not together with
                                 axis or block_size */
  int32_t block_shape_rank;   /* lengths at block_shape; 0: none */

  int32_t saturate;         /* Quantize, DynamicQuantize */
  int32_t precision;        /* Quantize: type of x / scale. 0: scale's, FLOAT for INT32 and E8M0 */
  int32_t zero_point_order; /* Quantize */
  int32_t
      scale_type; /* DynamicQuantize: FLOAT (0), FLOAT16, BFLOAT16, FLOAT8E8M0 (MX), FLOAT8E4M3FN */
  int32_t symmetry;     /* DynamicQuantize */
  int32_t non_finite;   /* DynamicQuantize */
  int32_t report_error; /* Quantize, DynamicQuantize: 1: calls fill `report`; 0: they have none */
} quantd_parameters;

/* What a plan takes and gives. Sizes are bytes; a type is 0, and a size, where there is no such
 * output. */
typedef struct quantd_plan_info {
  uint32_t struct_size;
  int32_t operation;
  int32_t x_type;
  int32_t y_type;
  int32_t scale_type;        /* DynamicQuantize only, as all of these: */
  int32_t zero_point_type;   /* 0 when symmetric */
  int32_t tensor_scale_type; /* FLOAT for FLOAT4E2M1 with FLOAT8E4M3FN scales (NVFP4), else 0 */
  int32_t scale_rank;        /* of the scales and zero points */
  int64_t scale_shape[QUANTD_MAX_RANK];
  int64_t elements; /* of x and y */
  int64_t scales;
  uint64_t x_size;
  uint64_t y_size;
  uint64_t scale_size;
  uint64_t zero_point_size;
  uint64_t tensor_scale_size;
} quantd_plan_info;

/* How far y is from x, over the finite elements of x, with x^ = Dequantize(y) in double. Filled if
 * the plan has report_error. */
typedef struct quantd_report {
  double sqnr_db;               /* 10 log10(sum x^2 / sum (x - x^)^2); infinity when exact */
  double mean_squared_error;    /* mean((x - x^)^2) */
  double max_absolute_error;    /* max |x - x^| */
  uint64_t saturated_elements;  /* outside of y's range before the clamp; NaN never */
  uint64_t non_finite_elements; /* NaN and infinities in x */
} quantd_report;

/* One run of a plan. Addresses may be any; each size must be exactly what the plan's info says, and
 * no output may overlap x or another output. */
typedef struct quantd_call {
  uint32_t struct_size;
  /* How many threads may work, the caller's included. 0: one for each CPU that the process may use,
   * which is also the most; 1: the caller's alone. Results do not depend on it. */
  int32_t threads;
  const void* x;
  uint64_t x_size;
  void* y;
  uint64_t y_size;
  void* scale; /* DynamicQuantize, as the next two; NULL where the plan gives none */
  uint64_t scale_size;
  void* zero_point;
  uint64_t zero_point_size;
  void* tensor_scale;
  uint64_t tensor_scale_size;
  quantd_report* report; /* exactly when the plan has report_error */
  /* Read now and then (at least every MiB of a thread's work): once it is not 0, the call ends soon
   * with QUANTD_CANCELLED. Set it atomically. NULL: the call cannot be cancelled. */
  const int32_t* cancelled;
} quantd_call;

/* What went wrong. Texts end with 0 and are cut where they would not fit. */
typedef struct quantd_error {
  uint32_t struct_size;
  int32_t code;
  char field[64]; /* such as "scale" or "x_shape"; empty if no field is wrong */
  char message[960];
} quantd_error;

/* recipe: how embeddings are encoded. core/EMBEDDINGS.md has the rules, and says who uses which. */
enum {
  QUANTD_EMBEDDING_RANGES =
      1,                     /* floor((x - low) / step), step = (high - low) / 255 of a dimension */
  QUANTD_EMBEDDING_UNIT = 2, /* [-1, 1] to [-128, 127] */
  QUANTD_EMBEDDING_DIRECTION = 3, /* x * 127 / the embedding's length */
  QUANTD_EMBEDDING_BITS = 4       /* one bit per value: whether it is more than 0 */
};

/* bit_order: of eight bits in a byte. */
enum {
  QUANTD_BIT_ORDER_DEFAULT = 0,   /* MSB_FIRST */
  QUANTD_BIT_ORDER_MSB_FIRST = 1, /* the first value is the highest bit */
  QUANTD_BIT_ORDER_LSB_FIRST = 2
};

/* bit_threshold: the bit of 0 and -0. */
enum {
  QUANTD_BIT_THRESHOLD_DEFAULT = 0,         /* GREATER */
  QUANTD_BIT_THRESHOLD_GREATER = 1,         /* x > 0 */
  QUANTD_BIT_THRESHOLD_GREATER_OR_EQUAL = 2 /* x >= 0 */
};

/* signed_bits: what an INT8 that holds eight bits is. */
enum {
  QUANTD_SIGNED_BITS_DEFAULT = 0,        /* OFFSET */
  QUANTD_SIGNED_BITS_OFFSET = 1,         /* their number less 128 */
  QUANTD_SIGNED_BITS_TWOS_COMPLEMENT = 2 /* the same bits */
};

/* One call of quantd_quantize_embeddings. */
typedef struct quantd_embeddings {
  uint32_t struct_size;
  int32_t recipe; /* required */

  /* x: FLOAT, FLOAT16 or BFLOAT16 of one dimension at least. The last one, D values, is an
   * embedding, the others count embeddings. */
  int32_t x_type;
  int32_t x_rank;         /* 1 to QUANTD_MAX_RANK */
  const int64_t* x_shape; /* as in quantd_tensor */
  const void* x;          /* at any address */
  uint64_t x_size;        /* bytes; must be what x_type and x_shape say */

  int64_t dimensions; /* d: the number of values used of each embedding, the first ones; 0: all */
  int32_t normalize;  /* 1: the values that are used are divided by their length first */
  int32_t non_finite; /* as above; IGNORE gives NaN and infinities codes, too */

  /* RANGES, required there: FLOAT [2, d], the lowest and the highest value of each dimension that
   * is used, after dimensions and normalize. NULL for the others. */
  const quantd_tensor* ranges;
  int32_t output_type; /* UINT8 (RANGES, BITS) or INT8 (all). 0: UINT8, or INT8 where that is all */
  int32_t bit_order;   /* BITS */
  int32_t bit_threshold; /* BITS */
  int32_t signed_bits;   /* BITS to INT8 */

  /* y: a byte per used value; with BITS each embedding takes ceil(d / 8). It overlaps neither
   * x nor ranges. */
  void* y;
  uint64_t y_size; /* must be exactly that */

  quantd_report* report;    /* NULL: none. Not with BITS */
  int32_t threads;          /* as in quantd_call */
  int32_t reserved;         /* 0 */
  const int32_t* cancelled; /* as in quantd_call */
} quantd_embeddings;

typedef struct quantd_plan quantd_plan;

/* Version of the library, such as "0.1.0". */
QUANTD_CORE_API const char* quantd_core_version(void);

/* QUANTD_CORE_ABI of the library, for programs that load it by name. */
QUANTD_CORE_API int32_t quantd_core_abi(void);

/* The instruction set in use, such as "avx2"; QUANTD_SIMD in the environment forces another. */
QUANTD_CORE_API const char* quantd_core_target(void);

/* Checks everything but the elements of x, and makes all decisions. *plan is the caller's, to be
 * freed by quantd_plan_free; NULL after an error. The plan keeps nothing of the caller's memory: it
 * copies the scales. */
QUANTD_CORE_API int32_t quantd_plan_create(const quantd_parameters* parameters, quantd_plan** plan,
                                           quantd_error* error);

/* What the plan's calls take and give. */
QUANTD_CORE_API int32_t quantd_plan_describe(const quantd_plan* plan, quantd_plan_info* info,
                                             quantd_error* error);

/* Runs it. Waits until it is done. Errors of x's elements (a NaN, a range whose scale under- or
 * overflows) are those of the field "x". */
QUANTD_CORE_API int32_t quantd_plan_run(const quantd_plan* plan, const quantd_call* call,
                                        quantd_error* error);

/* Does nothing if plan is NULL. */
QUANTD_CORE_API void quantd_plan_free(quantd_plan* plan);

/* Encodes embeddings in the format of a vector database. There is no plan: making one would take no
 * longer than to quantize a few embeddings. */
QUANTD_CORE_API int32_t quantd_quantize_embeddings(const quantd_embeddings* embeddings,
                                                   quantd_error* error);

#ifdef __cplusplus
}
#endif

#endif /* QUANTD_CORE_H_ */
