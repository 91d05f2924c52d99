// Notices that files have changed and has them read again. This includes a link on the path that
// now points elsewhere, such as ..data of a Kubernetes Secret. It polls once a second: polling
// works on every file system, however a file is written, replaced or reached.
//
//   FileWatch watch;
//   watch.Add({cert, key}, [&] { ... read them again ... });
//   watch.Look();  // once a second
#ifndef QUANTD_SERVER_ACCESS_FILE_WATCH_H_
#define QUANTD_SERVER_ACCESS_FILE_WATCH_H_

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace quantd::access {

class FileWatch {
 public:
  // Call this before the files are read for the first time. Look calls `changed` once a file
  // differs from the one that was read and has not changed since the previous look; a program that
  // writes two files that belong together has that long. If `changed` returns false, the files
  // could not be read for a reason that may pass; it is called again after 2 looks, then after 4,
  // up to 64.
  void Add(std::vector<std::string> paths, std::function<bool()> changed);
  // Called by one thread only.
  void Look();
  // Makes the next Look call every `changed`. Safe from any thread.
  void Reread() { reread_.store(true); }

 private:
  struct Group {
    std::vector<std::string> paths;
    std::function<bool()> changed;
    std::string read;  // the stamp of the files when they were read
    std::string seen;  // the stamp of the files at the last look
    int failures = 0;  // consecutive failures of `changed`
    int looks = 0;     // looks until `changed` is called again; 0: when the files change
  };
  // Identifies the current version of all these files.
  static std::string Stamp(const std::vector<std::string>& paths);

  std::vector<Group> groups_;
  std::atomic<bool> reread_{false};
};

}  // namespace quantd::access

#endif  // QUANTD_SERVER_ACCESS_FILE_WATCH_H_
