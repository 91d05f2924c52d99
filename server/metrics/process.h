// What the kernel says about this process, for the process_* metrics.
#ifndef QUANTD_SERVER_METRICS_PROCESS_H_
#define QUANTD_SERVER_METRICS_PROCESS_H_

namespace quantd::metrics {

// Fields that can't be read are 0.
struct ProcessStatus {
  double cpu_seconds = 0;
  double resident_bytes = 0;
  double virtual_bytes = 0;
  double open_fds = 0;
  double max_fds = 0;
  double threads = 0;
  double start_time_seconds = 0;  // since 1970
};

// Thread-safe.
ProcessStatus ReadProcessStatus();

}  // namespace quantd::metrics

#endif  // QUANTD_SERVER_METRICS_PROCESS_H_
