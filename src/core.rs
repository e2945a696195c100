//! The library with the parts of bowline that the command line, the terminal UI and the controllers share.

pub mod api;
pub mod child;
pub mod connect;
pub mod engine;
pub mod fixture;
pub mod git;
pub mod gitops;
pub mod render;
pub mod resolve;
pub mod small_file;
pub mod subjects;
pub mod text;

/// The allocator is set in the library and not in `main.rs`, so that tests and benchmarks use the same
/// allocator as users.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
