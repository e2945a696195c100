//! From method, path and query to a typed request. Pure, so that it can be tested as a table.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;

use super::status::Failure;

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// A resource, one object of it, or a part of that object.
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
    /// Nothing that this server knows.
    Unknown,
}

/// A resource, one object of it, or a part of that object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The API group; empty for core.
    pub group: String,
    /// The API version.
    pub version: String,
    /// The namespace in the path.
    pub namespace: Option<String>,
    /// The plural name.
    pub plural: String,
    /// The object.
    pub name: Option<String>,
    /// `status`, `scale` and the like.
    pub subresource: Option<String>,
}

/// Reads a path. Segments are decoded; an empty or undecodable one leads nowhere.
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
        // A namespace's own parts, not resources in it.
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

/// What a client wants done with fields that the schema does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drop them silently.
    Ignore,
    /// Drop them with a warning.
    #[default]
    Warn,
    /// Refuse the request.
    Strict,
}

/// The options of a request, as its query gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Stream changes.
    pub watch: bool,
    /// A label selector.
    pub label_selector: String,
    /// A field selector.
    pub field_selector: String,
    /// At most so many objects; 0 is all.
    pub limit: u64,
    /// Where an earlier page ended.
    pub continue_token: String,
    /// The revision to read at or to watch from.
    pub resource_version: String,
    /// How exactly that revision is meant.
    pub resource_version_match: String,
    /// Tell how far the watch is, now and then.
    pub bookmarks: bool,
    /// Begin the watch with what is there.
    pub initial_events: Option<bool>,
    /// End the watch after so many seconds.
    pub timeout_seconds: Option<u64>,
    /// Do everything but store.
    pub dry_run: bool,
    /// Who writes, for the ownership of fields.
    pub field_manager: Option<String>,
    /// What to do with unknown fields.
    pub field_validation: FieldValidation,
    /// Take fields over from other appliers.
    pub force: bool,
    /// What becomes of dependents.
    pub propagation_policy: Option<String>,
    /// An older way to say `propagationPolicy=Orphan`.
    pub orphan_dependents: Option<bool>,
    /// How long a graceful deletion may take.
    pub grace_period_seconds: Option<i64>,
    /// `pretty=true`.
    pub pretty: bool,
    /// How much of each object a Table row carries.
    pub include_object: String,
}

/// Reads a query. Unknown options are ignored, as a real server does.
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
        // A negative limit is none.
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

/// Everything but a clear no counts as yes, as in Kubernetes' own conversion.
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
