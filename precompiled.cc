// What there is to compile for a target that is there for its headers (precompiled.cmake).
int main() { return 0; }
