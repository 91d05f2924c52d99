// Sees that files have changed, and has them read again: also when a link on the way was turned to
// another place, as Kubernetes does with a Secret's ..data. Asks once a second: that works on every
// file system, and says the same whether a file is written, replaced or reached by another way.
//
//   FileWatch watch;
//   watch.Add({cert, key}, [&] { ... read them again ... });
//   watch.Start();
#ifndef QUANTD_SERVER_ACCESS_FILE_WATCH_H_
#define QUANTD_SERVER_ACCESS_FILE_WATCH_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace quantd::access {

class FileWatch {
 public:
  explicit FileWatch(std::chrono::milliseconds every = std::chrono::seconds(1)) : every_(every) {}
  ~FileWatch();

  // Before Start, and before the files are read for the first time. `changed` is called on the
  // watch's thread when one of the files is another one than it was, and has been for one interval:
  // whoever writes two files that belong together has that long.
  void Add(std::vector<std::string> paths, std::function<void()> changed);
  void Start();

  // Calls every `changed`, soon. From any thread.
  void Reread();

 private:
  struct Group {
    std::vector<std::string> paths;
    std::function<void()> changed;
    std::string read;  // what the files were when they were read
    std::string seen;  // and when they were looked at last
  };
  // What tells a file from others and from itself before, of all of them.
  static std::string Stamp(const std::vector<std::string>& paths);
  void Run();
  void Look(bool reread);

  const std::chrono::milliseconds every_;
  std::vector<Group> groups_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool reread_ = false;  // guarded by mutex_, as the next
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace quantd::access

#endif  // QUANTD_SERVER_ACCESS_FILE_WATCH_H_
