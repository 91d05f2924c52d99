#include "c_error.h"

#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "absl/strings/string_view.h"
#include "quantd/field_error.h"

namespace quantd::c {
namespace {

static_assert(QUANTD_CANCELLED == static_cast<int>(absl::StatusCode::kCancelled));
static_assert(QUANTD_INVALID_ARGUMENT == static_cast<int>(absl::StatusCode::kInvalidArgument));
static_assert(QUANTD_RESOURCE_EXHAUSTED == static_cast<int>(absl::StatusCode::kResourceExhausted));
static_assert(QUANTD_INTERNAL == static_cast<int>(absl::StatusCode::kInternal));

template <size_t kSize>
void Copy(absl::string_view text, char (&to)[kSize]) {
  const size_t size = text.copy(to, kSize - 1);
  std::memset(to + size, 0, kSize - size);
}

int32_t Report(quantd_error* error, int32_t code, absl::string_view field,
               absl::string_view message) {
  if (error == nullptr) return code;
  error->code = code;
  Copy(field, error->field);
  Copy(message, error->message);
  return code;
}

}  // namespace

int32_t CatchExceptions(quantd_error* error, absl::FunctionRef<absl::Status()> body) noexcept {
  try {
    // A caller that has set no size, or that of another struct, may have no room for the texts.
    if (error != nullptr && error->struct_size < sizeof(quantd_error)) {
      return QUANTD_INVALID_ARGUMENT;
    }
    const absl::Status status = body();
    return Report(error, static_cast<int32_t>(status.code()), ErrorField(status), status.message());
  } catch (const std::bad_alloc&) {
    return Report(error, QUANTD_RESOURCE_EXHAUSTED, "", "no memory");
  } catch (const std::exception& exception) {
    return Report(error, QUANTD_INTERNAL, "", exception.what());
  } catch (...) {
    return Report(error, QUANTD_INTERNAL, "", "unknown exception");
  }
}

}  // namespace quantd::c
