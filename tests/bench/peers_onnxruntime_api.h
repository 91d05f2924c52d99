// The fourteen functions of ONNX Runtime's C API that the comparison calls.
//
// OrtGetApiBase()->GetApi(version) gives a table of function pointers that only ever grows at its
// end, so a function's place in it is part of the ABI. The wheel has the library but no header;
// these are the places, and only the arguments that matter here have types of their own.
#ifndef QUANTD_TESTS_BENCH_PEERS_ONNXRUNTIME_API_H_
#define QUANTD_TESTS_BENCH_PEERS_ONNXRUNTIME_API_H_

#include <cstddef>
#include <cstdint>

namespace quantd::bench {

// Objects of the library. Each function that makes one returns it through its last argument.
struct OrtEnv;
struct OrtStatus;
struct OrtMemoryInfo;
struct OrtSession;
struct OrtSessionOptions;
struct OrtRunOptions;
struct OrtValue;

// ONNX TensorProto.DataType, as far as it is used.
enum class OrtElementType : int { kFloat = 1, kUint8 = 2 };

class OrtApi {
 public:
  static constexpr uint32_t kVersion = 1;  // all of these are in the first version

  explicit OrtApi(const void* table) : table_(static_cast<const void* const*>(table)) {}

  const char* GetErrorMessage(const OrtStatus* status) const {
    return Function<const char*(const OrtStatus*)>(2)(status);
  }
  OrtStatus* CreateEnv(int log_level, const char* name, OrtEnv** env) const {
    return Function<OrtStatus*(int, const char*, OrtEnv**)>(3)(log_level, name, env);
  }
  OrtStatus* CreateSession(const OrtEnv* env, const char* path, const OrtSessionOptions* options,
                           OrtSession** session) const {
    return Function<OrtStatus*(const OrtEnv*, const char*, const OrtSessionOptions*, OrtSession**)>(
        7)(env, path, options, session);
  }
  OrtStatus* Run(OrtSession* session, const char* const* input_names, const OrtValue* const* inputs,
                 size_t input_count, const char* const* output_names, size_t output_count,
                 OrtValue** outputs) const {
    return Function<OrtStatus*(OrtSession*, const OrtRunOptions*, const char* const*,
                               const OrtValue* const*, size_t, const char* const*, size_t,
                               OrtValue**)>(9)(session, nullptr, input_names, inputs, input_count,
                                               output_names, output_count, outputs);
  }
  OrtStatus* CreateSessionOptions(OrtSessionOptions** options) const {
    return Function<OrtStatus*(OrtSessionOptions**)>(10)(options);
  }
  OrtStatus* SetIntraOpNumThreads(OrtSessionOptions* options, int threads) const {
    return Function<OrtStatus*(OrtSessionOptions*, int)>(24)(options, threads);
  }
  OrtStatus* CreateTensorWithDataAsOrtValue(const OrtMemoryInfo* memory, void* data, size_t bytes,
                                            const int64_t* shape, size_t rank, OrtElementType type,
                                            OrtValue** value) const {
    return Function<OrtStatus*(const OrtMemoryInfo*, void*, size_t, const int64_t*, size_t,
                               OrtElementType, OrtValue**)>(49)(memory, data, bytes, shape, rank,
                                                                type, value);
  }
  // Of the device allocator and the default memory type.
  OrtStatus* CreateCpuMemoryInfo(OrtMemoryInfo** memory) const {
    return Function<OrtStatus*(int, int, OrtMemoryInfo**)>(69)(0, 0, memory);
  }
  void Release(OrtEnv* env) const { Function<void(OrtEnv*)>(92)(env); }
  void Release(OrtStatus* status) const { Function<void(OrtStatus*)>(93)(status); }
  void Release(OrtMemoryInfo* memory) const { Function<void(OrtMemoryInfo*)>(94)(memory); }
  void Release(OrtSession* session) const { Function<void(OrtSession*)>(95)(session); }
  void Release(OrtValue* value) const { Function<void(OrtValue*)>(96)(value); }
  void Release(OrtSessionOptions* options) const {
    Function<void(OrtSessionOptions*)>(100)(options);
  }

 private:
  template <typename Signature>
  Signature* Function(size_t place) const {
    return reinterpret_cast<Signature*>(const_cast<void*>(table_[place]));
  }

  const void* const* table_;
};

// What OrtGetApiBase() returns.
struct OrtApiBase {
  const void* (*get_api)(uint32_t version);  // null: the library is older
  const char* (*get_version_string)();
};

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_PEERS_ONNXRUNTIME_API_H_
