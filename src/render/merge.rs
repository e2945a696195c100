//! Parameters over parameters: maps merge deeply, lists are replaced, null removes.
