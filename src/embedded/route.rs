//! From method, path and query to a typed request.
