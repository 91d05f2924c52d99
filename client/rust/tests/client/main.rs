//! Against the real server: ./tests/run.sh clients starts it and says where it is. Without the suite's variables these fail.

mod calls;
mod hostile;
mod support;
mod tensors;
mod tls;
mod vectors;
