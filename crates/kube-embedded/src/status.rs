//! Failures of requests, and the `Status` answers for them. The messages are those of kube-apiserver.

use http::StatusCode;
use serde_json::{Value, json};

/// The start of each message about an internal error.
pub(super) const INTERNAL: &str = "Internal error occurred: ";

/// The resource of the object that a failure is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The API group of the resource; empty for the core group.
    pub group: String,
    /// The plural name of the resource.
    pub plural: String,
    /// The kind of the resource's objects.
    pub kind: String,
}

impl Subject {
    /// Returns a subject for the options of a request, because invalid options are reported like an invalid object.
    /// `kind` is the kind of the options.
    pub fn options(kind: &str) -> Subject {
        Subject {
            group: "meta.k8s.io".into(),
            plural: String::new(),
            kind: kind.into(),
        }
    }

    /// Returns the subject for the options of a request with this HTTP method.
    pub fn options_of(method: &http::Method) -> Subject {
        Subject::options(match *method {
            http::Method::PUT => "UpdateOptions",
            http::Method::PATCH => "PatchOptions",
            http::Method::DELETE => "DeleteOptions",
            _ => "CreateOptions",
        })
    }

    /// Returns `Kind.group`, or only `Kind` in the core group.
    pub fn qualified_kind(&self) -> String {
        qualified(&self.kind, &self.group)
    }

    fn resource(&self) -> String {
        qualified(&self.plural, &self.group)
    }
}

/// Returns `name.group`, or only `name` in the core group.
pub fn qualified(name: &str, group: &str) -> String {
    match group {
        "" => name.to_owned(),
        group => format!("{name}.{group}"),
    }
}

/// One of the errors in a failure, with its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The reason code of the error, such as `FieldValueInvalid`.
    pub reason: String,
    /// The message about the error for users, without the path of the field.
    pub message: String,
    /// The path of the wrong field; empty if the error is not about a field.
    pub field: String,
}

/// The failure of a request, from which the `Status` answer is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The HTTP status code of the answer.
    pub code: u16,
    /// The reason code of the failure, such as `NotFound`.
    pub reason: &'static str,
    /// The message about the failure for users.
    pub message: String,
    /// The field `details` of the answer, with the object and the causes; None if there is none.
    pub details: Option<Value>,
    /// For an expired list, the continue token with which the client can continue the list at the newest revision;
    /// None for all other failures.
    pub resume: Option<String>,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl Failure {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Failure {
            code,
            reason,
            message: message.into(),
            details: None,
            resume: None,
        }
    }

    fn about(mut self, subject: &Subject, name: &str) -> Self {
        let mut details = json!({"kind": subject.plural});
        if !name.is_empty() {
            details["name"] = name.into();
        }
        if !subject.group.is_empty() {
            details["group"] = subject.group.as_str().into();
        }
        self.details = Some(details);
        self
    }

    /// 404: the object does not exist.
    pub fn not_found(subject: &Subject, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", subject.resource());
        Failure::new(404, "NotFound", message).about(subject, name)
    }

    /// 409: an object with this name already exists.
    pub fn already_exists(subject: &Subject, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", subject.resource());
        Failure::new(409, "AlreadyExists", message).about(subject, name)
    }

    /// 409: another client has changed the object since this client read it.
    pub fn stale(subject: &Subject, name: &str) -> Self {
        Failure::conflict(
            subject,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 409: the request conflicts with the state of the object, for the reason `why`.
    pub fn conflict(subject: &Subject, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            subject.resource()
        );
        Failure::new(409, "Conflict", message).about(subject, name)
    }

    /// 409: a server-side apply has conflicts with other managers. Each cause is about one field.
    pub fn apply_conflict(message: String, causes: Vec<Cause>) -> Self {
        let mut failure = Failure::new(409, "Conflict", message);
        failure.details = Some(json!({"causes": causes_json(&causes)}));
        failure
    }

    /// 422: the object is invalid. Each cause is about one broken rule.
    pub fn invalid(subject: &Subject, name: &str, causes: Vec<Cause>) -> Self {
        let lines: Vec<String> = causes
            .iter()
            .map(|cause| match cause.field.as_str() {
                "" => cause.message.clone(),
                field => format!("{field}: {}", cause.message),
            })
            .collect();
        let list = match lines.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let kind = qualified(&subject.kind, &subject.group);
        let mut failure = Failure::new(
            422,
            "Invalid",
            format!("{kind} \"{name}\" is invalid: {list}"),
        )
        .about(subject, name);
        if let Some(details) = &mut failure.details {
            details["kind"] = subject.kind.as_str().into();
            details["causes"] = causes_json(&causes);
        }
        failure
    }

    /// 403: a rule or a policy denies the request.
    pub fn forbidden(subject: &Subject, name: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", subject.resource());
        Failure::new(403, "Forbidden", message).about(subject, name)
    }

    /// 403: the namespace of a new object is being deleted.
    pub fn terminating(subject: &Subject, name: &str, namespace: &str) -> Self {
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let mut failure = Failure::forbidden(subject, name, &why);
        if let Some(details) = &mut failure.details {
            details["causes"] = json!([{
                "reason": "NamespaceTerminating",
                "message": format!("namespace {namespace} is being terminated"),
                "field": "metadata.namespace",
            }]);
        }
        failure
    }

    /// 400: the request is malformed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Failure::new(400, "BadRequest", message)
    }

    /// 405: the resource does not support the method.
    pub fn method_not_allowed() -> Self {
        Failure::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .with_empty_details()
    }

    /// 404: the path of the request does not exist in the API.
    pub fn no_such_resource() -> Self {
        Failure::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
        .with_empty_details()
    }

    /// 406: the API supports none of the formats that the client accepts. `offered` lists the supported
    /// formats.
    pub fn not_acceptable(offered: &str) -> Self {
        Failure::new(
            406,
            "NotAcceptable",
            format!("406: Not Acceptable\n\nAvailable representations: {offered}"),
        )
    }

    /// 413: the request body is larger than `limit` bytes.
    pub fn too_large(limit: usize) -> Self {
        Failure::new(
            413,
            "RequestEntityTooLarge",
            format!("Request entity too large: limit is {limit}"),
        )
    }

    /// 415: the resource does not accept the media type of the request body.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        Failure::new(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {}",
                accepted.join(", ")
            ),
        )
    }

    /// 422: the name of the field manager is too long.
    pub fn manager_too_long(method: &http::Method) -> Self {
        let cause = Cause {
            reason: "FieldValueTooLong".into(),
            message: "Too long: may not be more than 128 bytes".into(),
            field: "fieldManager".into(),
        };
        Failure::invalid(&Subject::options_of(method), "", vec![cause])
    }

    /// 422: a request option has an unknown value.
    pub fn unsupported_option(method: &http::Method, field: &str, why: &str) -> Self {
        let cause = Cause {
            reason: "FieldValueNotSupported".into(),
            message: format!("Unsupported value: {why}"),
            field: field.into(),
        };
        Failure::invalid(&Subject::options_of(method), "", vec![cause])
    }

    /// 410: the history of the requested revision is compacted.
    pub fn expired(message: impl Into<String>) -> Self {
        Failure::new(410, "Expired", message)
    }

    /// 504: the requested revision does not exist yet.
    pub fn too_large_revision(asked: u64, newest: u64) -> Self {
        let mut failure = Failure::new(
            504,
            "Timeout",
            format!("Too large resource version: {asked}, current: {newest}"),
        );
        failure.details = Some(json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        }));
        failure
    }

    /// 500: the store or this crate failed.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        let mut failure = Failure::new(500, "InternalError", format!("{INTERNAL}{message}"));
        failure.details = Some(json!({"causes": [{"message": message.to_string()}]}));
        failure
    }

    /// Creates a failure with any other status code.
    pub fn other(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Failure::new(code, reason, message)
    }

    fn with_empty_details(mut self) -> Self {
        self.details = Some(json!({}));
        self
    }

    /// Returns the HTTP status code of the answer.
    pub fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Returns the `Status` object for the answer.
    pub fn to_json(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if let Some(resume) = &self.resume {
            status["metadata"]["continue"] = resume.as_str().into();
        }
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status
    }
}

fn causes_json(causes: &[Cause]) -> Value {
    causes
        .iter()
        .map(|cause| {
            let mut item = json!({"reason": cause.reason, "message": cause.message});
            if !cause.field.is_empty() {
                item["field"] = cause.field.as_str().into();
            }
            item
        })
        .collect()
}
