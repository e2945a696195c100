//! Parses method, path and query into a typed request. Pure, so that it can be tested as a table.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;

use super::status::Failure;

/// The meaning of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// A resource, one of its objects, or a part of that object.
    Resource(Target),
    /// `/api`.
    LegacyGroup,
    /// `/apis`.
    Groups,
    /// `/apis/{group}`.
    Group(String),
    /// `/api/v1` or `/apis/{group}/{version}`.
    GroupVersion(String, String),
    /// `/version`.
    Version,
    /// `/openapi/v2`.
    OpenApiV2,
    /// `/openapi/v3`.
    OpenApiIndex,
    /// `/openapi/v3/{path}`.
    OpenApi(String, String),
    /// `/healthz`, `/livez`, `/readyz`.
    Health,
    /// A path that this server does not serve.
    Unknown,
}

/// A resource, one of its objects, or a part of that object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The API group; empty for the core group.
    pub group: String,
    /// The API version.
    pub version: String,
    /// The namespace in the path; None for cluster-scoped requests and for all namespaces.
    pub namespace: Option<String>,
    /// The plural name of the resource.
    pub plural: String,
    /// The name of the object; None for the whole collection.
    pub name: Option<String>,
    /// The subresource, such as `status` or `scale`.
    pub subresource: Option<String>,
}

/// Parses a path. Segments are percent-decoded; a path with an empty or undecodable segment is unknown.
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
        // A subresource of the namespace itself, not a resource in the namespace.
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

/// The treatment of fields that are not in the schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drop unknown fields silently.
    Ignore,
    /// Drop unknown fields with a warning.
    #[default]
    Warn,
    /// Refuse the request.
    Strict,
}

/// The options in the query of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether to stream changes.
    pub watch: bool,
    /// A label selector.
    pub label_selector: String,
    /// A field selector.
    pub field_selector: String,
    /// The largest number of objects; 0 means no limit.
    pub limit: u64,
    /// The token that the previous page of the list returned.
    pub continue_token: String,
    /// The revision to read at or to watch from.
    pub resource_version: String,
    /// Whether `resource_version` is exact or a minimum (`Exact`, `NotOlderThan`).
    pub resource_version_match: String,
    /// Whether the watch sends bookmarks: events that contain only the current revision.
    pub bookmarks: bool,
    /// Whether the watch begins with the existing objects.
    pub initial_events: Option<bool>,
    /// The number of seconds after which the watch ends.
    pub timeout_seconds: Option<u64>,
    /// Whether to do everything except storing.
    pub dry_run: bool,
    /// The field manager of the write.
    pub field_manager: Option<String>,
    /// How to treat unknown fields.
    pub field_validation: FieldValidation,
    /// Whether to take over fields from other appliers.
    pub force: bool,
    /// How to treat dependents.
    pub propagation_policy: Option<String>,
    /// The value of `orphanDependents`, an older form of `propagationPolicy=Orphan`.
    pub orphan_dependents: Option<bool>,
    /// The number of seconds that a graceful deletion may take.
    pub grace_period_seconds: Option<i64>,
    /// Whether the query has `pretty=true`.
    pub pretty: bool,
    /// How much of each object the rows of a Table contain.
    pub include_object: String,
}

/// Parses a query. Unknown options are ignored, as on a real server.
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
        // A negative limit means no limit.
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

/// Parses a boolean option. A missing option is false. Every value except `false`, `False`, `FALSE` and `0` is
/// true, as in Kubernetes.
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
