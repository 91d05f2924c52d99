// Random sets, and a folder that is removed with the test.
#ifndef QUANTD_TESTS_SERVER_STORED_PARAMETERS_SETS_TESTING_H_
#define QUANTD_TESTS_SERVER_STORED_PARAMETERS_SETS_TESTING_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "quantd/v1/parameters.pb.h"
#include "server/stored_parameters/canonical.h"
#include "server/stored_parameters/hash.h"
#include "server/stored_parameters/reference.h"

namespace quantd::stored_parameters {

using Random = std::mt19937_64;

inline wire::BytesView View(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Stores it as PutParameters does.
inline absl::StatusOr<std::string> EncodeSet(const v1::ParameterSet& set) {
  const std::string bytes = set.SerializeAsString();
  const wire::Split split = wire::SplitSet(View(bytes));
  v1::ParameterSet skeleton;
  EXPECT_TRUE(split.ok && skeleton.ParseFromString(split.skeleton));
  return Encode(skeleton, split.raw);
}

inline v1::ParameterSet ScaleSet(float scale) {
  v1::ParameterSet set;
  v1::Tensor& tensor = *set.mutable_quantize()->mutable_scale();
  tensor.set_data_type(v1::DATA_TYPE_FLOAT);
  tensor.set_raw_data(std::string(reinterpret_cast<const char*>(&scale), sizeof(scale)));
  return set;
}

// A set of `scales` scales, about four bytes each.
inline v1::ParameterSet LargeSet(size_t scales, float value) {
  v1::ParameterSet set;
  set.mutable_quantize()->set_axis(0);
  v1::Tensor& tensor = *set.mutable_quantize()->mutable_scale();
  tensor.set_data_type(v1::DATA_TYPE_FLOAT);
  tensor.add_shape(static_cast<int64_t>(scales));
  for (size_t i = 0; i < scales; ++i) {
    tensor.mutable_raw_data()->append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return set;
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "quantd-parameters-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << bytes;
  }
  size_t files() const {
    const std::filesystem::directory_iterator all(path_);
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }

 private:
  std::string path_;
};

}  // namespace quantd::stored_parameters

#endif  // QUANTD_TESTS_SERVER_STORED_PARAMETERS_SETS_TESTING_H_
