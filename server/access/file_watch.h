// Sees that files have changed, and has them read again: also when a link on the way was turned to
// another place, as Kubernetes does with a Secret's ..data. Asks once a second: that works on every
// file system, and says the same whether a file is written, replaced or reached by another way.
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
  // Before the files are read for the first time. `changed` is called by Look when one of the files
  // is another one than it was, and has been since the look before: whoever writes two files that
  // belong together has that long. When it returns false, the files could not be read for a
  // reason that may pass, and it is called again after 2 looks, then after 4, up to 64.
  void Add(std::vector<std::string> paths, std::function<bool()> changed);
  // From one thread.
  void Look();
  // The next Look calls every `changed`. From any thread.
  void Reread() { reread_.store(true); }

 private:
  struct Group {
    std::vector<std::string> paths;
    std::function<bool()> changed;
    std::string read;  // what the files were when they were read
    std::string seen;  // and when they were looked at last
    int failures = 0;  // of `changed`, one behind the other
    int looks = 0;     // until it is called again; 0: when they change
  };
  // What tells a file from others and from itself before, of all of them.
  static std::string Stamp(const std::vector<std::string>& paths);

  std::vector<Group> groups_;
  std::atomic<bool> reread_{false};
};

}  // namespace quantd::access

#endif  // QUANTD_SERVER_ACCESS_FILE_WATCH_H_
