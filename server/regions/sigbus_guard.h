// Memory that may vanish: reading or writing pages that a mapped file no longer has raises SIGBUS.
// Under guard that is no end of the process: the pages become zeros, and the range is damaged, for
// whoever asks.
//
//   InstallSigbusGuard();                      // once
//   const int slot = ProtectFromSigbus(data, size);  // < 0: all are taken
//   ... compute ...
//   if (IsDamaged(slot)) ...             // what was computed means nothing
//   Unguard(slot);
//
// A SIGBUS anywhere else does what it did before.
#ifndef QUANTD_SERVER_REGIONS_SIGBUS_GUARD_H_
#define QUANTD_SERVER_REGIONS_SIGBUS_GUARD_H_

#include <cstddef>
#include <cstdint>

namespace quantd::regions {

// Ranges under guard at a time.
inline constexpr size_t kMaxGuarded = 2048;

// Any number of times, from any thread.
void InstallSigbusGuard();

// REQUIRES: [data, data + size) is a mapping of its own from a page's start. From any thread.
int ProtectFromSigbus(uint8_t* data, size_t size);

// Whether pages of it were replaced. Once it is so, it stays so.
bool IsDamaged(int slot);

// Ranges that were, since the process started.
uint64_t CountDamaged();

// Before it is unmapped. REQUIRES: nobody reads or writes the range any more.
void Unguard(int slot);

}  // namespace quantd::regions

#endif  // QUANTD_SERVER_REGIONS_SIGBUS_GUARD_H_
