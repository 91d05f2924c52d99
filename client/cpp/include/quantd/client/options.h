// The options of a client and of its calls. proto/quantd/v1 defines each
// field.
#ifndef QUANTD_CLIENT_OPTIONS_H_
#define QUANTD_CLIENT_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "quantd/client/shared_region.h"
#include "quantd/client/tensor.h"
#include "quantd/v1/quantization.pb.h"

namespace quantd::client {

// PEM files. An empty one is replaced by QUANTD_TLS_CA, QUANTD_TLS_CERT or QUANTD_TLS_KEY. If none
// of the three is set, here or in the environment, the connection is plain text.
struct TlsOptions {
  std::string ca_file;           // authorities of servers; empty: gRPC's default, if another is set
  std::string certificate_file;  // the client's own, with its key; both or neither
  std::string key_file;
};

struct ClientOptions {
  absl::Duration timeout = absl::Minutes(5);  // of a call with all its attempts; of each piece
  // A call that fails with UNAVAILABLE is repeated: until its timeout while no server has processed
  // anything of it, so that a restart costs no call; this many times in all if its connection was
  // lost on the way. 1: it is not repeated.
  int max_attempts = 5;
  // Of several servers, use one that reports SERVING if there is any; false: do not ask.
  bool health_check = true;
  TlsOptions tls = {};
  // File with the token for the server: its first line that is neither blank nor a comment (#). It
  // is read again when it changes. Empty: QUANTD_AUTH_TOKEN_FILE, if it is set. Without TLS the
  // token is sent only over loopback and Unix sockets, unless allow_insecure_token.
  std::string auth_token_file = {};
  bool allow_insecure_token = false;
  bool split = true;  // send tensors over the server's limit in several calls; false: they fail
  // If set, all calls but the asynchronous ones ask where the server's time went. Called after each
  // of them, on any thread, with the answer, such as "decode=12,queue=834,kernel=410,encode=3", in
  // microseconds.
  std::function<void(const std::string& timing)> on_timing = {};
};

// Which elements share a scale; all unset: one for the tensor (or by the scale's shape).
struct Granularity {
  std::optional<int64_t> axis;  // in [-rank, rank - 1]
  int64_t block_size = 0;       // elements per block along axis; 0: no blocks
  std::vector<int64_t>
      block_shape;  // one length per dimension, -1 for the whole; without axis, block_size
};

struct QuantizeOptions {
  v1::DataType output_type = v1::DATA_TYPE_UNSPECIFIED;  // unset: zero_point's type, else UINT8
  Granularity granularity = {};
  bool saturate = true;  // FLOAT8 only
  v1::DataType precision = v1::DATA_TYPE_UNSPECIFIED;
  v1::ZeroPointOrder zero_point_order = v1::ZERO_POINT_ORDER_UNSPECIFIED;
  bool report_error = false;
  std::optional<SharedSpan> output = {};  // the place of y: large enough, overlaps no argument
};

struct DynamicQuantizeOptions {
  v1::DataType output_type = v1::DATA_TYPE_UNSPECIFIED;  // unset: UINT8
  Granularity granularity = {};
  bool saturate = true;  // FLOAT8 only
  v1::DataType scale_type = v1::DATA_TYPE_UNSPECIFIED;
  v1::Symmetry symmetry = v1::SYMMETRY_UNSPECIFIED;
  v1::NonFinite non_finite = v1::NON_FINITE_UNSPECIFIED;
  bool report_error = false;
  std::optional<SharedSpan> output = {};
};

// Embeddings: the last dimension of x. core/EMBEDDINGS.md lists what each vector database needs.
struct EmbeddingOptions {
  v1::EmbeddingRecipe recipe = v1::EMBEDDING_RECIPE_UNSPECIFIED;  // required
  std::optional<Tensor> ranges = {};  // RANGES: FLOAT [2, d], lowest and highest of each dimension
  v1::DataType output_type = v1::DATA_TYPE_UNSPECIFIED;  // unset: UINT8; UNIT, DIRECTION: INT8
  int64_t dimensions = 0;                                // how many first values are used; 0: all
  bool normalize = false;
  v1::BitOrder bit_order = v1::BIT_ORDER_UNSPECIFIED;              // BITS only
  v1::BitThreshold bit_threshold = v1::BIT_THRESHOLD_UNSPECIFIED;  // BITS only
  v1::SignedBits signed_bits = v1::SIGNED_BITS_UNSPECIFIED;        // BITS to INT8 only
  v1::NonFinite non_finite = v1::NON_FINITE_UNSPECIFIED;
  bool report_error = false;  // not with BITS
  std::optional<SharedSpan> output = {};
};

struct DequantizeOptions {
  v1::DataType output_type = v1::DATA_TYPE_UNSPECIFIED;  // unset: scale's type
  Granularity granularity = {};
  std::optional<Tensor> tensor_scale = {};  // NVFP4's second scale
  std::optional<SharedSpan> output = {};
};

// A quantized tensor with everything that is needed to dequantize it.
struct Quantized {
  Tensor y;                                                // of x's shape
  Tensor scale;                                            // Quantize: as given
  std::optional<Tensor> zero_point;                        // of scale's shape
  std::optional<Tensor> tensor_scale;                      // NVFP4 only
  std::optional<v1::QuantizationError> error;              // set if report_error
  Granularity granularity = {};                            // as requested
  v1::DataType original_type = v1::DATA_TYPE_UNSPECIFIED;  // the type of x
};

struct QuantizedEmbeddings {
  Tensor y;  // shape of x, but the last dimension is the used values, or with BITS bytes
  std::optional<v1::QuantizationError> error;  // set if report_error
};

}  // namespace quantd::client

#endif  // QUANTD_CLIENT_OPTIONS_H_
