#include "significands.h"

#include <string_view>

bool quantd::exhaustive = false;

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--exhaustive") quantd::exhaustive = true;
  }
  return RUN_ALL_TESTS();
}
