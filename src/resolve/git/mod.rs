//! Files at commits of git repositories, fetched once into a bare cache that processes share.
