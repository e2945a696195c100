//! Evaluates ValidatingAdmissionPolicies and their bindings.

use bounded_cel::{AccessQuery, Bindings, Budget, Program};
use serde_json::{Map, Value, json};

use super::matching::{Admission, Match};
use super::{compile, real_words, request_budget, worded};

pub(super) const NAMES: [&str; 7] = [
    "object",
    "oldObject",
    "request",
    "params",
    "namespaceObject",
    "variables",
    "authorizer",
];

/// All admission policies of a store in compiled form, with their bindings.
#[derive(Debug, Clone, Default)]
pub struct Policies {
    policies: Vec<Policy>,
}

#[derive(Debug, Clone)]
struct Policy {
    name: String,
    constraints: Match,
    conditions: Vec<Program>,
    variables: Vec<(String, Program)>,
    validations: Vec<Validation>,
    ignores_failures: bool,
    bindings: Vec<Binding>,
}

#[derive(Debug, Clone)]
struct Validation {
    program: Program,
    message: Option<String>,
    message_expression: Option<Program>,
    reason: Option<String>,
}

#[derive(Debug, Clone)]
struct Binding {
    name: String,
    constraints: Match,
    denies: bool,
    warns: bool,
}

/// The decision of all admission policies about one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The texts of the Warning headers for the client.
    pub warnings: Vec<String>,
    /// Why the request is denied; None if all policies accept it.
    pub denial: Option<Denial>,
}

/// The decision of the first policy that denies the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The name of the denying policy.
    pub policy: String,
    /// The name of the policy's binding that applies to the request.
    pub binding: String,
    /// The full message for the Status cause: `ValidatingAdmissionPolicy 'x' with binding 'y' denied request: ...`.
    pub message: String,
    /// The reason in the Status answer, such as `Invalid` or `Forbidden`.
    pub reason: String,
    /// The HTTP status code that belongs to the reason.
    pub code: u16,
}

impl Denial {
    /// Returns the message of the Status answer, which also contains the name of the object.
    pub fn status_message(&self, request: &Admission<'_>) -> String {
        let resource = match request.group {
            "" => request.resource.to_owned(),
            group => format!("{}.{group}", request.resource),
        };
        let named = |key: &str| {
            request
                .object
                .and_then(|o| o.get("metadata"))
                .and_then(|m| m.get(key))
                .and_then(Value::as_str)
                .filter(|name| !name.is_empty())
        };
        let name = match request.name {
            "" => named("name")
                .or_else(|| named("generateName"))
                .unwrap_or("Unknown"),
            name => name,
        };
        format!("{resource} \"{name}\" is forbidden: {}", self.message)
    }
}

/// A validation of a policy that denies the request.
struct Decision {
    message: String,
    reason: Option<String>,
}

impl Policies {
    /// Compiles the policies, each with its bindings. Also returns a warning for each part that cannot be compiled
    /// and is therefore not enforced.
    pub fn compile(policies: &[Value], bindings: &[Value]) -> (Self, Vec<String>) {
        let mut warnings = Vec::new();
        let mut compiled: Vec<Policy> = policies
            .iter()
            .filter_map(|policy| Policy::compile(policy, bindings, &mut warnings))
            .collect();
        compiled.sort_by(|a, b| a.name.cmp(&b.name));
        (Self { policies: compiled }, warnings)
    }

    /// Returns whether all requests are accepted, because no policy has a binding.
    pub fn is_empty(&self) -> bool {
        self.policies
            .iter()
            .all(|policy| policy.bindings.is_empty())
    }

    /// Evaluates all policies for a request.
    pub fn check(&self, request: &Admission<'_>) -> Verdict {
        let mut verdict = Verdict::default();
        // No policy applies to policies and bindings, so that a user can always delete a wrong policy.
        if request.group == "admissionregistration.k8s.io" {
            return verdict;
        }
        let mut budget = request_budget();
        let mut described = None;
        for policy in &self.policies {
            if policy.bindings.is_empty() || !policy.constraints.matches(request) {
                continue;
            }
            // The decisions are computed only once per policy. They are the same for all its bindings, because
            // parameters are not supported.
            let mut decisions = None;
            for binding in &policy.bindings {
                if !binding.constraints.matches(request) {
                    continue;
                }
                let described = described.get_or_insert_with(|| describe(request));
                let decisions =
                    decisions.get_or_insert_with(|| policy.decide(request, described, &mut budget));
                for decision in decisions.iter() {
                    policy.record(binding, decision, &mut verdict);
                }
            }
        }
        verdict
    }
}

impl Policy {
    fn compile(policy: &Value, bindings: &[Value], warnings: &mut Vec<String>) -> Option<Self> {
        let name = name(policy);
        let spec = policy.get("spec").unwrap_or(&Value::Null);
        if spec.get("paramKind").is_some_and(|kind| !kind.is_null()) {
            warnings.push(format!(
                "ValidatingAdmissionPolicy '{name}' is not enforced here: parameters are not supported"
            ));
            return None;
        }
        let mut read = |value: &Value, what: &str| {
            let source = text(value, "expression").unwrap_or_default();
            compile(source, &NAMES)
                .map_err(|error| {
                    warnings.push(format!(
                        "ValidatingAdmissionPolicy '{name}': {what} is not enforced here: {error}: {source}"
                    ));
                })
                .ok()
        };
        let mut conditions = Vec::new();
        for condition in array(spec.get("matchConditions")) {
            // The whole policy is left out if one of its match conditions cannot be compiled. Without this condition,
            // it could deny requests that it must not apply to.
            conditions.push(read(condition, "the policy, for its match condition")?);
        }
        let mut variables = Vec::new();
        for variable in array(spec.get("variables")) {
            let program = read(variable, "a variable");
            let name = text(variable, "name").unwrap_or_default().to_owned();
            variables.extend(program.map(|program| (name, program)));
        }
        let mut validations = Vec::new();
        for validation in array(spec.get("validations")) {
            let Some(program) = read(validation, "a validation") else {
                continue;
            };
            let message_expression = text(validation, "messageExpression")
                .filter(|source| !source.trim().is_empty())
                .and_then(|source| compile(source, &NAMES).ok());
            validations.push(Validation {
                program,
                message: text(validation, "message")
                    .map(|m| m.trim().to_owned())
                    .filter(|m| !m.is_empty()),
                message_expression,
                reason: text(validation, "reason").map(str::to_owned),
            });
        }
        let bindings = bindings
            .iter()
            .filter(|binding| {
                let policy = binding
                    .get("spec")
                    .and_then(|spec| text(spec, "policyName"));
                policy == Some(name.as_str())
            })
            .map(Binding::read)
            .collect();
        Some(Self {
            constraints: Match::read(spec.get("matchConstraints").unwrap_or(&Value::Null)),
            conditions,
            variables,
            validations,
            ignores_failures: text(spec, "failurePolicy") == Some("Ignore"),
            bindings,
            name,
        })
    }

    /// Evaluates the policy for a request. Returns the validations that deny the request.
    fn decide(
        &self,
        request: &Admission<'_>,
        described: &Value,
        budget: &mut Budget,
    ) -> Vec<Decision> {
        let mut bindings = Bindings::new()
            .with("request", described)
            .with_absent("params")
            .with_request_resource(AccessQuery {
                group: request.group.to_owned(),
                resource: request.resource.to_owned(),
                subresource: request.subresource.to_owned(),
                namespace: request.namespace.unwrap_or_default().to_owned(),
                name: request.name.to_owned(),
                ..AccessQuery::default()
            })
            .with_authorizer(request.allowed);
        for (name, value) in [
            ("object", request.object),
            ("oldObject", request.old_object),
            ("namespaceObject", request.namespace_object),
        ] {
            bindings = match value {
                Some(value) => bindings.with(name, value),
                None => bindings.with_absent(name),
            };
        }
        for (name, program) in &self.variables {
            bindings = bindings.with_variable(name, program);
        }
        match self.applies(&bindings, budget) {
            Ok(true) => {}
            Ok(false) => return Vec::new(),
            Err(failure) => return self.failed(failure).into_iter().collect(),
        }
        self.validations
            .iter()
            .filter_map(|validation| self.validate(validation, &bindings, budget))
            .collect()
    }

    /// Returns whether all match conditions of the policy are true. If one condition is false, errors of the others
    /// are ignored.
    fn applies(&self, bindings: &Bindings<'_>, budget: &mut Budget) -> Result<bool, String> {
        let mut failures = Vec::new();
        for condition in &self.conditions {
            match condition.holds(bindings, budget) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => failures.push(failure(condition, &error)),
            }
        }
        match failures.as_slice() {
            [] => Ok(true),
            [failure] => Err(failure.clone()),
            failures => Err(format!("[{}]", failures.join(", "))),
        }
    }

    fn validate(
        &self,
        validation: &Validation,
        bindings: &Bindings<'_>,
        budget: &mut Budget,
    ) -> Option<Decision> {
        match validation.program.holds(bindings, budget) {
            Ok(true) => None,
            Ok(false) => {
                let message = validation
                    .message_expression
                    .as_ref()
                    .and_then(|program| worded(program, bindings, budget))
                    .or_else(|| validation.message.clone())
                    .unwrap_or_else(|| {
                        format!("failed expression: {}", validation.program.source().trim())
                    });
                Some(Decision {
                    message,
                    reason: validation.reason.clone(),
                })
            }
            Err(error) => self.failed(failure(&validation.program, &error)),
        }
    }

    fn failed(&self, message: String) -> Option<Decision> {
        (!self.ignores_failures).then_some(Decision {
            message,
            reason: None,
        })
    }

    fn record(&self, binding: &Binding, decision: &Decision, verdict: &mut Verdict) {
        let (policy, by, message) = (&self.name, &binding.name, &decision.message);
        if binding.warns {
            verdict.warnings.push(format!(
                "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{by}': {message}"
            ));
        }
        if binding.denies && verdict.denial.is_none() {
            let reason = decision
                .reason
                .clone()
                .unwrap_or_else(|| "Invalid".to_owned());
            verdict.denial = Some(Denial {
                policy: policy.clone(),
                binding: by.clone(),
                message: format!(
                    "ValidatingAdmissionPolicy '{policy}' with binding '{by}' denied request: {message}"
                ),
                code: match reason.as_str() {
                    "Forbidden" => 403,
                    "Unauthorized" => 401,
                    "RequestEntityTooLarge" => 413,
                    _ => 422,
                },
                reason,
            });
        }
    }
}

impl Binding {
    fn read(binding: &Value) -> Self {
        let spec = binding.get("spec").unwrap_or(&Value::Null);
        let does = |action: &str| {
            array(spec.get("validationActions"))
                .iter()
                .any(|a| a.as_str() == Some(action))
        };
        Self {
            name: name(binding),
            constraints: Match::read(spec.get("matchResources").unwrap_or(&Value::Null)),
            denies: does("Deny"),
            warns: does("Warn"),
        }
    }
}

fn failure(program: &Program, error: &bounded_cel::CelError) -> String {
    format!(
        "expression '{}' resulted in error: {}",
        program.source(),
        real_words(error)
    )
}

/// Returns the value of the CEL variable `request`. Empty fields are left out, as in kube-apiserver.
fn describe(request: &Admission<'_>) -> Value {
    let kind = json!({"group": request.group, "version": request.version, "kind": request.kind});
    let resource =
        json!({"group": request.group, "version": request.version, "resource": request.resource});
    let mut user = Map::new();
    let mut described = Map::from_iter([
        ("kind".to_owned(), kind.clone()),
        ("resource".to_owned(), resource.clone()),
        ("requestKind".to_owned(), kind),
        ("requestResource".to_owned(), resource),
        (
            "operation".to_owned(),
            Value::from(request.operation.as_str()),
        ),
        ("dryRun".to_owned(), Value::from(request.dry_run)),
    ]);
    for (key, value) in [
        ("subResource", request.subresource),
        ("requestSubResource", request.subresource),
        ("name", request.name),
        ("namespace", request.namespace.unwrap_or_default()),
    ] {
        if !value.is_empty() {
            described.insert(key.to_owned(), Value::from(value));
        }
    }
    if !request.username.is_empty() {
        user.insert("username".to_owned(), Value::from(request.username));
    }
    if !request.groups.is_empty() {
        user.insert("groups".to_owned(), Value::from(request.groups.to_vec()));
    }
    described.insert("userInfo".to_owned(), Value::Object(user));
    Value::Object(described)
}

fn name(object: &Value) -> String {
    let name = object.get("metadata").and_then(|m| text(m, "name"));
    name.unwrap_or_default().to_owned()
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn array(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
