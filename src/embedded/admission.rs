//! Rules that hold whoever writes: CRD rules and admission policies.
use serde_json::Value;
#[derive(Debug)]
pub struct CrdRules;
pub struct Violation {
    pub path: String,
    pub reason: String,
    pub message: String,
}
impl Violation {
    pub fn cause_message(&self) -> String {
        self.message.clone()
    }
}
impl CrdRules {
    pub fn compile(_: &Value) -> (CrdRules, Vec<String>) {
        (CrdRules, vec![])
    }
    pub fn check(&self, _: &Value, _: Option<&Value>) -> Vec<Violation> {
        vec![]
    }
}
pub struct Policies;
impl Policies {
    pub fn compile(_: &[Value], _: &[Value]) -> (Policies, Vec<String>) {
        (Policies, vec![])
    }
    pub fn is_empty(&self) -> bool {
        true
    }
    pub fn check(&self, _: &Admission) -> Verdict {
        Verdict {
            warnings: vec![],
            denial: None,
        }
    }
}
pub enum Verb {
    Create,
    Update,
    Delete,
}
pub struct Admission<'a> {
    pub operation: Verb,
    pub group: &'a str,
    pub version: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub kind: &'a str,
    pub namespace: Option<&'a str>,
    pub name: &'a str,
    pub object: Option<&'a Value>,
    pub old_object: Option<&'a Value>,
    pub namespace_object: Option<&'a Value>,
    pub username: &'a str,
    pub groups: &'a [String],
    pub dry_run: bool,
    pub allowed: &'a (dyn Fn(&()) -> bool + Sync),
}
pub struct Verdict {
    pub warnings: Vec<String>,
    pub denial: Option<Denial>,
}
#[derive(Debug)]
pub struct Denial {
    pub reason: String,
}
impl std::fmt::Display for Denial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)
    }
}
