//! Turns a target into a `kube::Client`. The only file that names a backend.
