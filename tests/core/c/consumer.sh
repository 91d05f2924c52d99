#!/usr/bin/env bash
# consumer.sh INSTALLED SOURCES BUILD: compiles C programs against an installed libquantd_core.so, with nothing but pkg-config,
# runs them, and checks the library's symbols. The folder is moved first: an installation must not depend on its place.
set -euo pipefail

installed=$1 sources=$2 build=$3
rm -rf "$build"
mkdir -p "$build"
cp -r "$installed" "$build/moved"
PKG_CONFIG_PATH=$(dirname "$(find "$build/moved" -name quantd_core.pc)")
export PKG_CONFIG_PATH
libraries=$(dirname "$PKG_CONFIG_PATH")
read -ra flags < <(pkg-config --cflags --libs quantd_core)
version=$(pkg-config --modversion quantd_core)

for source in "$sources/tests/core/c/known_answers.c" "$sources/core/c/example/"*.c; do
  "${CC:-cc}" -std=c99 -pedantic -Wall -Wextra -Werror -Wno-missing-field-initializers \
    "-DVERSION_OF_PKG_CONFIG=\"$version\"" "$source" -o "$build/$(basename "$source" .c)" \
    "${flags[@]}" -lm "-Wl,-rpath,$libraries"
done
"$build/known_answers"
diff - <("$build/dynamic_quantize") <<'TEXT'
-1 -> -1
0 -> 0
7 -> 7
0.5 -> 1
-3.5 -> -7
2 -> 4
scales 1, 0.5; 3 bytes
TEXT

diff - <("$build/embeddings") <<'TEXT'
bits: 167 0 127 128
ranges: 254 0 191 63 127 254 254 254 0 0 254 254 254 254 254 254 254 254
TEXT

# Exactly the functions that the header declares, and no symbol of C++.
diff <(grep -oE 'quantd_[a-z_]+\(' "$sources/core/c/include/quantd/core.h" | tr -d '(' | grep -vE 'sizeof' | sort -u) \
  <(nm -D --defined-only "$libraries/libquantd_core.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u)
[[ $(readelf -d "$libraries/libquantd_core.so" | sed -n 's/.*soname: \[\(.*\)\]/\1/p') == libquantd_core.so.0 ]]
