// Files of clients that were killed before they could remove them: names that begin with "quantd-"
// and that nobody holds a lock on (flock), as the clients here do as long as they live. Whoever
// wants files of his own left alone gives them other names.
#ifndef QUANTD_SERVER_REGIONS_LEFTOVERS_H_
#define QUANTD_SERVER_REGIONS_LEFTOVERS_H_

#include <chrono>
#include <cstddef>

namespace quantd::regions {

// A client needs some time between creating a file and locking it.
inline constexpr std::chrono::seconds kLeftoverAge{10};

// Removes those that have not changed for `age`, and nothing else. Returns how many.
size_t RemoveLeftovers(int directory, std::chrono::nanoseconds age = kLeftoverAge);

}  // namespace quantd::regions

#endif  // QUANTD_SERVER_REGIONS_LEFTOVERS_H_
