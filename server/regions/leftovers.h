// Files of clients that were killed before they could remove them: those whose names begin with
// "quantd-" and on which no process holds a lock (flock). The clients here hold a lock as long as
// they live. Files with other names are never removed.
#ifndef QUANTD_SERVER_REGIONS_LEFTOVERS_H_
#define QUANTD_SERVER_REGIONS_LEFTOVERS_H_

#include <chrono>
#include <cstddef>

namespace quantd::regions {

// The time that a client may need between creating a file and locking it.
inline constexpr std::chrono::seconds kLeftoverAge{10};

// Removes the leftovers that have not changed for `age`, and nothing else. Returns their number.
size_t RemoveLeftovers(int directory, std::chrono::nanoseconds age = kLeftoverAge);

}  // namespace quantd::regions

#endif  // QUANTD_SERVER_REGIONS_LEFTOVERS_H_
