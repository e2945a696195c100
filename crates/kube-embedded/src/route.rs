//! Parses the method, the path and the query of a request. The functions are pure, so that tests can use tables.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;

use super::status::Failure;

/// The endpoint of the API to which the path of a request leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// A resource, one of its objects, or a subresource.
    Resource(Target),
    /// The path `/api`.
    LegacyGroup,
    /// The path `/apis`.
    Groups,
    /// The path `/apis/{group}`.
    Group(String),
    /// The path `/api/v1` or `/apis/{group}/{version}`.
    GroupVersion(String, String),
    /// The path `/version`.
    Version,
    /// The path `/openapi/v2`.
    OpenApiV2,
    /// The path `/openapi/v3`.
    OpenApiIndex,
    /// The path `/openapi/v3/{path}`. Contains the API group and version in it.
    OpenApi(String, String),
    /// The path `/healthz`, `/livez` or `/readyz`.
    Health,
    /// A path that does not exist in this API.
    Unknown,
}

/// The resource, the object or the subresource in a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The API group in the path; empty for the core group.
    pub group: String,
    /// The API version in the path.
    pub version: String,
    /// The namespace in the path; None for cluster-scoped objects, or for the objects of all namespaces.
    pub namespace: Option<String>,
    /// The plural name of the resource in the path.
    pub plural: String,
    /// The name of the object in the path; None if the path names all objects.
    pub name: Option<String>,
    /// The subresource in the path, such as `status` or `scale`; None for the object itself.
    pub subresource: Option<String>,
}

/// Parses the path of a request. A path that cannot be percent-decoded is unknown.
pub fn route(path: &str) -> Route {
    let mut segments = Vec::new();
    for raw in path.split('/').filter(|segment| !segment.is_empty()) {
        match percent_decode_str(raw).decode_utf8() {
            Ok(text) => segments.push(text.into_owned()),
            Err(_) => return Route::Unknown,
        }
    }
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["version"] => Route::Version,
        ["healthz" | "livez" | "readyz", ..] => Route::Health,
        ["openapi", "v2"] => Route::OpenApiV2,
        ["openapi", "v3"] => Route::OpenApiIndex,
        ["openapi", "v3", "api", version] => Route::OpenApi(String::new(), (*version).into()),
        ["openapi", "v3", "apis", group, version] => {
            Route::OpenApi((*group).into(), (*version).into())
        }
        ["api"] => Route::LegacyGroup,
        ["apis"] => Route::Groups,
        ["api", version] => Route::GroupVersion(String::new(), (*version).into()),
        ["apis", group] => Route::Group((*group).into()),
        ["apis", group, version] => Route::GroupVersion((*group).into(), (*version).into()),
        ["api", version, rest @ ..] => resource("", version, rest),
        ["apis", group, version, rest @ ..] => resource(group, version, rest),
        _ => Route::Unknown,
    }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Route {
    let (namespace, rest) = match rest {
        // These paths name a subresource of the namespace itself, and no resource in the namespace.
        ["namespaces", _, "status" | "finalize"] if group.is_empty() => (None, rest),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
        _ => (None, rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (*plural, None, None),
        [plural, name] => (*plural, Some(*name), None),
        [plural, name, subresource] => (*plural, Some(*name), Some(*subresource)),
        _ => return Route::Unknown,
    };
    Route::Resource(Target {
        group: group.into(),
        version: version.into(),
        namespace: namespace.map(Into::into),
        plural: plural.into(),
        name: name.map(Into::into),
        subresource: subresource.map(Into::into),
    })
}

/// What the API does with fields of a request body that are not in the schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Removes unknown fields without a warning.
    Ignore,
    /// Removes unknown fields, and sends a warning to the client.
    #[default]
    Warn,
    /// Refuses a request with unknown fields.
    Strict,
}

/// The options in the query of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether the request is a watch.
    pub watch: bool,
    /// The label selector as text; empty if there is none.
    pub label_selector: String,
    /// The field selector as text; empty if there is none.
    pub field_selector: String,
    /// The largest number of objects on a page of a list; 0 for no limit.
    pub limit: u64,
    /// The token that continues a list, from its previous page; empty for the first page.
    pub continue_token: String,
    /// The revision at which a list is read, or after which a watch begins; empty if the client sends none.
    pub resource_version: String,
    /// How a list uses `resource_version`: `Exact`, `NotOlderThan` or empty.
    pub resource_version_match: String,
    /// Whether a watch sends bookmarks: events without an object that contain only the current revision.
    pub bookmarks: bool,
    /// Whether a watch begins with events for the existing objects; None if the client does not say.
    pub initial_events: Option<bool>,
    /// The time after which a watch ends, in seconds; None for the default.
    pub timeout_seconds: Option<u64>,
    /// Whether the request is a dry run: the API makes all checks and stores nothing.
    pub dry_run: bool,
    /// The name of the field manager; None if the client sends none.
    pub field_manager: Option<String>,
    /// What the API does with unknown and duplicate fields of the body.
    pub field_validation: FieldValidation,
    /// Whether a server-side apply takes over fields that other managers own.
    pub force: bool,
    /// How a deletion treats the dependents: `Foreground`, `Background` or `Orphan`; None for the default.
    pub propagation_policy: Option<String>,
    /// The value of `orphanDependents`, an older form of `propagationPolicy=Orphan`; None if the client does not send
    /// it.
    pub orphan_dependents: Option<bool>,
    /// The time in seconds that a graceful deletion may take; None for the default.
    pub grace_period_seconds: Option<i64>,
    /// Whether the answer is formatted for people (`pretty=true`).
    pub pretty: bool,
    /// The part of each object that the rows of a Table contain: `None`, `Metadata` or `Object`.
    pub include_object: String,
}

/// Parses the query of a request. Unknown options are ignored, as in kube-apiserver.
pub fn options(method: &http::Method, query: &str) -> Result<Options, Failure> {
    let mut found: HashMap<String, String> = HashMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decode = |text: &str| {
            percent_decode_str(&text.replace('+', " "))
                .decode_utf8()
                .map(|text| text.into_owned())
                .map_err(|_| Failure::bad_request(format!("the query {query:?} is not UTF-8")))
        };
        found.entry(decode(name)?).or_insert(decode(value)?);
    }
    let text = |name: &str| found.get(name).cloned().unwrap_or_default();
    let dry_run = match text("dryRun").as_str() {
        "" => false,
        "All" => true,
        other => {
            return Err(Failure::unsupported_option(
                method,
                "dryRun",
                &format!("[{other:?}]: supported values: \"All\""),
            ));
        }
    };
    let field_validation = match text("fieldValidation").as_str() {
        "" | "Warn" => FieldValidation::Warn,
        "Ignore" => FieldValidation::Ignore,
        "Strict" => FieldValidation::Strict,
        other => {
            return Err(Failure::unsupported_option(
                method,
                "fieldValidation",
                &format!("{other:?}: supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""),
            ));
        }
    };
    Ok(Options {
        watch: flag(&found, "watch"),
        label_selector: text("labelSelector"),
        field_selector: text("fieldSelector"),
        // A negative limit becomes 0, which means no limit.
        limit: number::<i64>(&found, "limit")?
            .and_then(|limit| u64::try_from(limit).ok())
            .unwrap_or_default(),
        continue_token: text("continue"),
        resource_version: text("resourceVersion"),
        resource_version_match: text("resourceVersionMatch"),
        bookmarks: flag(&found, "allowWatchBookmarks"),
        initial_events: found
            .contains_key("sendInitialEvents")
            .then(|| flag(&found, "sendInitialEvents")),
        timeout_seconds: number(&found, "timeoutSeconds")?,
        dry_run,
        field_manager: found
            .get("fieldManager")
            .filter(|name| !name.is_empty())
            .cloned(),
        field_validation,
        force: flag(&found, "force"),
        propagation_policy: found.get("propagationPolicy").cloned(),
        orphan_dependents: found
            .contains_key("orphanDependents")
            .then(|| flag(&found, "orphanDependents")),
        grace_period_seconds: number(&found, "gracePeriodSeconds")?,
        pretty: flag(&found, "pretty"),
        include_object: text("includeObject"),
    })
}

/// Returns the value of a boolean option; false if the option is missing. All values except `false`, `False`, `FALSE`
/// and `0` mean true, as in Kubernetes.
fn flag(found: &HashMap<String, String>, name: &str) -> bool {
    match found.get(name).map(String::as_str) {
        None => false,
        Some("false" | "False" | "FALSE" | "0") => false,
        Some(_) => true,
    }
}

fn number<N: std::str::FromStr>(
    found: &HashMap<String, String>,
    name: &str,
) -> Result<Option<N>, Failure> {
    match found.get(name).map(String::as_str) {
        None | Some("") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| {
            Failure::bad_request(format!("{name} takes a whole number, and {text:?} is none"))
        }),
    }
}
