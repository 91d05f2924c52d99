// What there is to compile for a target that is there for its precompiled headers (precompiled.cmake).
int main() { return 0; }
