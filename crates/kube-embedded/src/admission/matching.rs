//! Decides whether an admission policy or a policy's binding applies to a request.

use kube_values::selector::Selector;
use serde_json::Value;

/// The operation of a request, as the match rules of admission policies name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A POST request, which creates an object.
    Create,
    /// A PUT or PATCH request for an existing object.
    Update,
    /// A DELETE request.
    Delete,
    /// A connection to a subresource, such as `pods/exec`.
    Connect,
}

impl Operation {
    /// Returns the name of the operation in match rules, such as `CREATE`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// The attributes of a request that admission policies can use.
pub struct Admission<'a> {
    /// The operation of the request.
    pub operation: Operation,
    /// The API group of the resource; empty for the core group.
    pub group: &'a str,
    /// The API version in the request.
    pub version: &'a str,
    /// The plural name of the resource.
    pub resource: &'a str,
    /// The subresource of the request; empty for the object itself.
    pub subresource: &'a str,
    /// The namespace of the object; None for a cluster-scoped object.
    pub namespace: Option<&'a str>,
    /// The name of the object; empty if the API will generate it.
    pub name: &'a str,
    /// The kind of the object.
    pub kind: &'a str,
    /// The new state of the object; None if the request deletes it.
    pub object: Option<&'a Value>,
    /// The stored state of the object; None if the request creates it.
    pub old_object: Option<&'a Value>,
    /// The Namespace object of the object's namespace; None if the object is cluster-scoped.
    pub namespace_object: Option<&'a Value>,
    /// The name of the user who sends the request.
    pub username: &'a str,
    /// The groups of the user who sends the request.
    pub groups: &'a [String],
    /// Whether the request is a dry run, which stores nothing.
    pub dry_run: bool,
    /// A function that returns whether the user has the permission in a query. Expressions ask it through
    /// `authorizer`.
    pub allowed: &'a dyn Fn(&bounded_cel::AccessQuery) -> bool,
}

/// The requests to which a policy (`matchConstraints`) or a binding (`matchResources`) applies.
#[derive(Debug, Clone, Default)]
pub(super) struct Match {
    rules: Vec<RequestRule>,
    excluded: Vec<RequestRule>,
    object_selector: Selector,
    namespace_selector: Selector,
}

#[derive(Debug, Clone)]
struct RequestRule {
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    operations: Vec<String>,
    names: Vec<String>,
    scope: Option<String>,
}

impl Match {
    pub(super) fn read(value: &Value) -> Self {
        Self {
            rules: rules(value.get("resourceRules")),
            excluded: rules(value.get("excludeResourceRules")),
            object_selector: Selector::from_object(&value["objectSelector"]),
            namespace_selector: Selector::from_object(&value["namespaceSelector"]),
        }
    }

    pub(super) fn matches(&self, request: &Admission<'_>) -> bool {
        self.namespace(request)
            && self.object(request)
            && !self.excluded.iter().any(|rule| rule.matches(request))
            && (self.rules.is_empty() || self.rules.iter().any(|rule| rule.matches(request)))
    }

    fn object(&self, request: &Admission<'_>) -> bool {
        let matches = |object: Option<&Value>| {
            object.is_some_and(|object| self.object_selector.matches(labels_of(object)))
        };
        self.object_selector.is_empty() || matches(request.object) || matches(request.old_object)
    }

    fn namespace(&self, request: &Admission<'_>) -> bool {
        let is_namespace = request.resource == "namespaces" && request.group.is_empty();
        if self.namespace_selector.is_empty() || request.namespace.is_none() && !is_namespace {
            return true;
        }
        // For a write of a Namespace object, the namespace selector is compared with the new labels of this object.
        let writes = matches!(request.operation, Operation::Create | Operation::Update);
        let namespace = match is_namespace && request.subresource.is_empty() {
            true if writes => request.object,
            true => request.old_object.or(request.namespace_object),
            false => request.namespace_object,
        };
        self.namespace_selector
            .matches(namespace.map_or(&Value::Null, labels_of))
    }
}

impl RequestRule {
    fn matches(&self, request: &Admission<'_>) -> bool {
        let any = |items: &[String], wanted: &str| items.iter().any(|i| i == "*" || i == wanted);
        let is_namespace = request.resource == "namespaces" && request.group.is_empty();
        let in_namespace = request.namespace.is_some() && !is_namespace;
        let scope = match self.scope.as_deref() {
            None | Some("*") => true,
            Some("Namespaced") => in_namespace,
            Some("Cluster") => !in_namespace,
            Some(_) => false,
        };
        scope
            && any(&self.operations, request.operation.as_str())
            && any(&self.groups, request.group)
            && any(&self.versions, request.version)
            && self.resources.iter().any(|rule| {
                let (resource, subresource) = rule.split_once('/').unwrap_or((rule, ""));
                (resource == "*" || resource == request.resource)
                    && (subresource == "*" || subresource == request.subresource)
            })
            && (self.names.is_empty() || self.names.iter().any(|name| name == request.name))
    }
}

fn rules(value: Option<&Value>) -> Vec<RequestRule> {
    let list = |rule: &Value, key: &str| -> Vec<String> { strings(rule.get(key)) };
    value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|rule| RequestRule {
            groups: list(rule, "apiGroups"),
            versions: list(rule, "apiVersions"),
            resources: list(rule, "resources"),
            operations: list(rule, "operations"),
            names: list(rule, "resourceNames"),
            scope: rule.get("scope").and_then(Value::as_str).map(str::to_owned),
        })
        .collect()
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn labels_of(object: &Value) -> &Value {
    &object["metadata"]["labels"]
}
