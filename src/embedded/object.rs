//! The life of one object: what the server adds, keeps and refuses.
