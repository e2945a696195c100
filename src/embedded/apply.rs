//! Server-side apply and the ownership of fields.
use super::schema::Schema;
use serde_json::Value;
pub enum Operation {
    Apply,
    Update,
}
pub struct Manager<'a> {
    pub name: &'a str,
    pub operation: Operation,
    pub api_version: &'a str,
    pub subresource: Option<&'a str>,
    pub time: &'a str,
}
pub fn track_update(_: &Schema, _: Option<&Value>, _: &mut Value, _: &Manager) {}
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error("x")]
    Conflict(Vec<Conflict>),
    #[error("y")]
    Other,
}
#[derive(Debug)]
pub struct Conflict {
    pub field: String,
}
impl Conflict {
    pub fn cause_message(&self) -> String {
        String::new()
    }
}
pub fn conflict_message(_: &[Conflict]) -> String {
    String::new()
}
pub fn apply(
    _: &Schema,
    _: Option<&Value>,
    a: &Value,
    _: &Manager,
    _: bool,
) -> Result<Value, ApplyError> {
    Ok(a.clone())
}
