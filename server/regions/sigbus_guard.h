// Mapped memory that may vanish: reading or writing pages that a mapped file no longer has raises
// SIGBUS. With the guard the process does not end: the pages become zeros, and the range is marked
// as damaged.
//
//   InstallSigbusGuard();                      // once
//   const int slot = ProtectFromSigbus(data, size);  // < 0: all are taken
//   ... compute ...
//   if (IsDamaged(slot)) ...             // the result is meaningless
//   Unguard(slot);
//
// A SIGBUS anywhere else is handled as before.
#ifndef QUANTD_SERVER_REGIONS_SIGBUS_GUARD_H_
#define QUANTD_SERVER_REGIONS_SIGBUS_GUARD_H_

#include <cstddef>
#include <cstdint>

namespace quantd::regions {

// The most ranges that are guarded at the same time.
inline constexpr size_t kMaxGuarded = 2048;

// May be called several times, from any thread.
void InstallSigbusGuard();

// REQUIRES: [data, data + size) is a mapping of its own that starts at a page. From any thread.
int ProtectFromSigbus(uint8_t* data, size_t size);

// Whether pages of the range were replaced. A damaged range stays damaged.
bool IsDamaged(int slot);

// The number of ranges that were damaged since the process started.
uint64_t CountDamaged();

// Call this before unmapping. REQUIRES: no thread reads or writes the range any more.
void Unguard(int slot);

}  // namespace quantd::regions

#endif  // QUANTD_SERVER_REGIONS_SIGBUS_GUARD_H_
