#include "flags.h"

#include "absl/flags/flag.h"

// The help texts are what `quantctl COMMAND --help` prints; lines are broken there.
ABSL_FLAG(std::string, address, "127.0.0.1:50051",
          "The server: host:port, or unix:/path. The environment variable QUANTD_ADDRESS does the "
          "same; the flag wins.");
ABSL_FLAG(double, timeout, 300, "Seconds that a call may take.");
ABSL_FLAG(bool, json, false, "Print one JSON document instead of text.");
ABSL_FLAG(bool, quiet, false, "Print nothing but errors; no progress bar.");
ABSL_FLAG(std::string, output, "",
          "-o OUT: where to write, a .safetensors (holds everything) or a .npy (scale, zero point "
          "and a description in files beside it).");
ABSL_FLAG(std::vector<std::string>, tensor, {},
          "Names of tensors in a .safetensors, such as 'model.*.weight' ('*' and '?' match as in a "
          "shell). Default: all that can be worked on. Others are copied as they are.");
ABSL_FLAG(std::string, type, "",
          "Type of y: uint8 (default) int8 uint16 int16 uint4 int4 uint2 int2 float8e4m3fn "
          "float8e4m3fnuz float8e5m2 float8e5m2fnuz float4e2m1; or a format of blocks along the "
          "last axis: mxfp8 mxfp8e5m2 mxfp4 mxint8 (blocks of 32, a power of two for each), nvfp4 "
          "(blocks of 16). For dequantize: the type of x where the file does not say it.");
ABSL_FLAG(std::string, output_type, "",
          "Type of y: float, float16 or bfloat16. Default: that of the scale if it is one of them, "
          "else float.");
ABSL_FLAG(std::vector<std::string>, shape, {},
          "Shape of x where the file does not say it (packed types), such as 1000,768.");
ABSL_FLAG(absl::optional<long>, axis, absl::nullopt,
          "One scale for each index along this dimension; with --block_size the dimension that is "
          "cut into blocks. Counts from the end when negative.");
ABSL_FLAG(long, block_size, 0, "One scale for this many elements along --axis (default 1).");
ABSL_FLAG(std::vector<std::string>, block_shape, {},
          "One scale for each block of this shape, such as 128,128; -1: the whole dimension.");
ABSL_FLAG(bool, symmetric, false, "A range centred on zero, without a zero point.");
ABSL_FLAG(std::string, scale_type, "",
          "Type of the scale: float (default), float16, bfloat16, float8e8m0, float8e4m3fn.");
ABSL_FLAG(std::string, scale, "",
          "The scale, instead of finding it in the data: a number, one for each index along --axis "
          "(0.1,0.2), or a .npy file.");
ABSL_FLAG(std::string, zero_point, "", "The zero point for --scale, in the same form.");
ABSL_FLAG(std::string, tensor_scale, "", "NVFP4's second scale, a number.");
ABSL_FLAG(std::string, precision, "",
          "With --scale: type in which x / scale is computed: float, float16 or bfloat16.");
ABSL_FLAG(std::string, zero_point_order, "after_rounding",
          "With --scale: when the zero point is added: after_rounding (ONNX) or before_rounding "
          "(oneDNN).");
ABSL_FLAG(bool, saturate, true,
          "float8: values past the largest become the largest. --nosaturate: infinity or NaN.");
ABSL_FLAG(
    std::string, non_finite, "reject",
    "NaN and infinities in x: reject (an error), or ignore (they take no part in the range).");
ABSL_FLAG(bool, report_error, true,
          "Measure how far y is from x. --noreport_error saves a little time.");
ABSL_FLAG(unsigned long, piece_bytes, 0,
          "Send tensors in messages of at most about this many bytes. Default: whole when the "
          "server allows it, else in pieces of 16 MiB. The result is the same.");
ABSL_FLAG(int, bins, 16, "Lines of a histogram.");
ABSL_FLAG(std::string, service, "",
          "Service to ask about, such as quantd.v1.QuantizationService. Default: the server.");
