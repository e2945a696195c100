//! Answers GET requests for one object and for lists, with selectors and pages. A long list is sent in pieces, so
//! that it may be larger than the memory.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD_NO_PAD};
use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use kube_values::selector::Selector;
use serde_json::{Value, json};

use super::catalog::Resource;
use super::select::{self, Fields};
use super::service::{Answer, Call, Content, Form};
use super::sqlite::{PageRequest, Revision, Row, Scope, StoreError};
use super::status::{Cause, Failure, Subject};
use super::{Shared, encode, table};

/// The largest number of rows that a list reads at once and sends as one piece.
const PIECE_ROWS: usize = 512;
/// The largest size in bytes of the rows that a list reads at once.
const PIECE_BYTES: usize = 2 << 20;

/// The objects that a list or watch request asks for: a scope, a label selector and a field selector.
#[derive(Clone)]
pub(super) struct Chosen {
    pub scope: Scope,
    pub labels: Selector,
    pub fields: Fields,
}

impl Chosen {
    pub fn of(resource: &Resource, call: &Call) -> Result<Chosen, Failure> {
        let mut fields = Fields::parse(&call.options.field_selector)?;
        check_fields(resource, &fields)?;
        if let Some(name) = &call.target.name {
            fields = Fields::parse(&format!("metadata.name={name}"))?;
        }
        Ok(Chosen {
            scope: Scope {
                resource: resource.storage.clone(),
                namespace: call.target.namespace.clone(),
            },
            labels: select::labels(&call.options.label_selector)?,
            fields,
        })
    }

    /// Returns whether all objects in the scope match, because the request has no selectors.
    pub fn all(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Returns whether the object in a row matches the selectors. Parses only the parts of the row that the selectors
    /// need.
    pub fn matches(&self, resource: &Resource, row: &Row) -> Result<bool, Failure> {
        if self.all() {
            return Ok(true);
        }
        if self.fields.metadata_only() {
            let meta: Value = serde_json::from_slice(&row.meta).map_err(Failure::internal)?;
            let labels = self.labels.matches(&meta["labels"]);
            return Ok(labels
                && (self.fields.is_empty() || self.fields.matches(&json!({"metadata": meta}))));
        }
        let object = encode::value(resource, row)?;
        Ok(self.labels.matches(&object["metadata"]["labels"]) && self.fields.matches(&object))
    }
}

/// Returns an error if a field selector uses a field that is not selectable for the resource.
pub(super) fn check_fields(resource: &Resource, fields: &Fields) -> Result<(), Failure> {
    for field in fields.names() {
        let known = field == "metadata.name"
            || field == "metadata.namespace" && resource.namespaced
            || match &resource.custom {
                Some(custom) => custom.selectable.iter().any(|path| path == field),
                None => builtin_fields(resource).contains(&field),
            };
        if !known {
            let message = match &resource.custom {
                Some(_) => format!("field label not supported: {field}"),
                None => format!(
                    "{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                ),
            };
            return Err(Failure::bad_request(message));
        }
    }
    Ok(())
}

fn builtin_fields(resource: &Resource) -> &'static [&'static str] {
    match (
        resource.subject.group.as_str(),
        resource.subject.plural.as_str(),
    ) {
        ("", "pods") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.nominatedNodeName",
        ],
        ("", "events") | ("events.k8s.io", "events") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "regarding.kind",
            "regarding.name",
            "regarding.namespace",
            "regarding.uid",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("", "secrets") => &["type"],
        ("", "namespaces") => &["status.phase"],
        ("", "services") => &["spec.clusterIP", "spec.type"],
        ("", "nodes") => &["spec.unschedulable"],
        ("apps", "replicasets") | ("", "replicationcontrollers") => &["status.replicas"],
        ("batch", "jobs") => &["status.successful"],
        _ => &[],
    }
}

impl Shared {
    /// Answers a GET request for one object.
    pub(super) async fn get(&self, resource: &Resource, call: &Call) -> Result<Answer, Failure> {
        let version = &call.options.resource_version;
        if !version.is_empty() && version.parse::<Revision>().is_err() {
            return Err(invalid_version(version));
        }
        let name = call.target.name.as_deref().unwrap_or_default();
        let namespace = call.target.namespace.as_deref().unwrap_or_default();
        let Some(row) = self.store.get(&resource.key(namespace, name)).await? else {
            return Err(Failure::not_found(&resource.subject, name));
        };
        Ok(match call.form {
            Form::Object | Form::Yaml => Answer::bytes(200, encode::bytes(resource, &row)),
            Form::Partial => Answer::bytes(200, encode::partial_bytes(&row)),
            Form::Table => {
                let object = encode::value(resource, &row)?;
                let rows = std::slice::from_ref(&object);
                Answer::json(
                    200,
                    table::of(
                        resource,
                        rows,
                        &call.options.include_object,
                        &call.writer.now,
                    ),
                )
            }
        })
    }

    /// Answers a GET request for a list.
    pub(super) async fn list(
        self: &Arc<Self>,
        resource: Arc<Resource>,
        call: Call,
    ) -> Result<Answer, Failure> {
        let chosen = Chosen::of(&resource, &call)?;
        let (at, after) = start(&call)?;
        if let Ok(asked) = call.options.resource_version.parse::<Revision>() {
            let newest = self.store.newest().await?;
            if asked > newest {
                return Err(Failure::too_large_revision(asked, newest));
            }
        }
        let listing = Listing {
            shared: self.clone(),
            chosen,
            at,
            after,
            left: match call.options.limit {
                0 => None,
                limit => Some(usize::try_from(limit).unwrap_or(usize::MAX)),
            },
            sent: 0,
            form: call.form,
            include: call.options.include_object.clone(),
            now: call.writer.now.clone(),
            resource,
            state: State::Begin,
        };
        listing.answer().await
    }
}

/// The state of a list that is sent in pieces.
struct Listing {
    shared: Arc<Shared>,
    resource: Arc<Resource>,
    chosen: Chosen,
    at: Option<Revision>,
    after: Option<(String, String)>,
    left: Option<usize>,
    sent: usize,
    form: Form,
    include: String,
    now: String,
    state: State,
}

#[derive(PartialEq)]
enum State {
    Begin,
    Middle,
    End,
}

impl Listing {
    /// Answers with the whole list if it is one piece; otherwise streams the pieces.
    async fn answer(mut self) -> Result<Answer, Failure> {
        let first = self.piece().await?;
        if self.state == State::End {
            return Ok(Answer::bytes(200, first));
        }
        if self.form == Form::Yaml {
            let mut whole = first;
            while self.state != State::End {
                whole.extend(self.piece().await?);
            }
            return Ok(Answer::bytes(200, whole));
        }
        let rest = stream::unfold(self, |mut listing| async move {
            if listing.state == State::End {
                return None;
            }
            let piece = listing.piece().await.map_err(|failure| {
                // The client sees this error only as a truncated body, because the status code is already sent.
                listing.state = State::End;
                std::io::Error::other(failure)
            });
            Some((piece.map(|bytes| Frame::data(Bytes::from(bytes))), listing))
        });
        let begun = stream::once(std::future::ready(Ok(Frame::data(Bytes::from(first)))));
        let body = StreamBody::new(futures::StreamExt::chain(begun, rest)).boxed_unsync();
        Ok(Answer {
            code: 200,
            content: Content::Stream(body),
            warnings: Vec::new(),
        })
    }

    /// Reads the next rows from the store, and returns them as the next piece of the answer.
    async fn piece(&mut self) -> Result<Vec<u8>, Failure> {
        let mut out = Vec::new();
        let page = self.read().await?;
        self.at = Some(page.revision);
        if self.state == State::Begin {
            self.open(&mut out);
            self.state = State::Middle;
        }
        let mut more = page.more;
        for row in &page.rows {
            if self.left == Some(0) {
                more = true;
                break;
            }
            self.after = Some((row.key.namespace.clone(), row.key.name.clone()));
            if !self.chosen.matches(&self.resource, row)? {
                continue;
            }
            if self.sent > 0 {
                out.push(b',');
            }
            self.item(row, &mut out)?;
            self.sent += 1;
            if let Some(left) = &mut self.left {
                *left -= 1;
            }
        }
        if self.left == Some(0) || !more {
            self.close(more, &mut out).await?;
            self.state = State::End;
        }
        Ok(out)
    }

    async fn read(&self) -> Result<super::sqlite::Page, Failure> {
        let rows = match self.left {
            // The limit of the request counts only matching objects. So with a selector, it is not a limit for the
            // rows to read.
            Some(left) if self.chosen.all() => left.min(PIECE_ROWS),
            _ => PIECE_ROWS,
        };
        let bodies = self.form != Form::Partial || !self.chosen.fields.metadata_only();
        let page = self
            .shared
            .store
            .page(PageRequest {
                scope: self.chosen.scope.clone(),
                after: self.after.clone(),
                at: self.at,
                rows,
                bytes: PIECE_BYTES,
                bodies,
            })
            .await;
        page.map_err(|error| match error {
            StoreError::Compacted { .. } => match &self.after {
                Some((namespace, name)) => {
                    let mut failure = Failure::expired(EXPIRED);
                    failure.resume = Some(token(None, namespace, name));
                    failure
                }
                None => error.into(),
            },
            other => other.into(),
        })
    }

    fn open(&self, out: &mut Vec<u8>) {
        let (kind, version) = match self.form {
            Form::Table => ("Table".to_owned(), "meta.k8s.io/v1".to_owned()),
            Form::Partial => (
                "PartialObjectMetadataList".to_owned(),
                "meta.k8s.io/v1".to_owned(),
            ),
            _ => (self.resource.list_kind(), self.resource.api_version()),
        };
        out.extend_from_slice(
            format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{version}\",").as_bytes(),
        );
        if self.form == Form::Table {
            let columns = encode::to_bytes(&table::columns(&self.resource));
            out.extend_from_slice(b"\"columnDefinitions\":");
            out.extend_from_slice(&columns);
            out.extend_from_slice(b",\"rows\":[");
        } else {
            out.extend_from_slice(b"\"items\":[");
        }
    }

    fn item(&self, row: &Row, out: &mut Vec<u8>) -> Result<(), Failure> {
        match self.form {
            Form::Partial => out.extend(encode::partial_bytes(row)),
            Form::Table => {
                let object = encode::value(&self.resource, row)?;
                let line = table::row(&self.resource, &object, &self.include, &self.now);
                out.extend(encode::to_bytes(&line));
            }
            Form::Object | Form::Yaml => out.extend(encode::item_bytes(&self.resource, row)),
        }
        Ok(())
    }

    async fn close(&self, more: bool, out: &mut Vec<u8>) -> Result<(), Failure> {
        let revision = self.at.unwrap_or_default();
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if more && let Some((namespace, name)) = &self.after {
            metadata["continue"] = token(Some(revision), namespace, name).into();
            if self.chosen.all() {
                let scope = self.chosen.scope.clone();
                let after = (namespace.clone(), name.clone());
                let remaining = self
                    .shared
                    .store
                    .count_after(scope, after, revision)
                    .await?;
                metadata["remainingItemCount"] = remaining.into();
            }
        }
        out.extend_from_slice(b"],\"metadata\":");
        out.extend(encode::to_bytes(&metadata));
        out.push(b'}');
        Ok(())
    }
}

const EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// Creates the token with which a client requests the next page, from the revision of the list (None for the newest)
/// and the last key of this page.
fn token(revision: Option<Revision>, namespace: &str, name: &str) -> String {
    let token = json!({"rv": revision, "ns": namespace, "name": name});
    BASE64_STANDARD_NO_PAD.encode(token.to_string())
}

/// Parses a continue token. Returns where the next page starts.
fn place(text: &str) -> Result<Start, Failure> {
    let wrong = |why: String| {
        Failure::bad_request(format!(
            "invalid continue token: continue key is not valid: {why}"
        ))
    };
    let bytes = BASE64_STANDARD_NO_PAD
        .decode(text)
        .map_err(|cause| wrong(cause.to_string()))?;
    let token: Value = serde_json::from_slice(&bytes).map_err(|_| {
        let first = char::from(bytes.first().copied().unwrap_or(b' '));
        wrong(format!(
            "invalid character {first:?} looking for beginning of value"
        ))
    })?;
    match (&token["ns"], &token["name"]) {
        (Value::String(namespace), Value::String(name)) => Ok((
            token["rv"].as_u64(),
            Some((namespace.clone(), name.clone())),
        )),
        _ => Err(wrong("it names no place".into())),
    }
}

type Start = (Option<Revision>, Option<(String, String)>);

/// Returns where a list starts: its revision (None for the newest), and the key after which it begins.
fn start(call: &Call) -> Result<Start, Failure> {
    let options = &call.options;
    let version: Option<Revision> = match options.resource_version.as_str() {
        "" => None,
        text => Some(text.parse().map_err(|_| invalid_version(text))?),
    };
    if version.is_none() && !options.resource_version_match.is_empty() {
        return Err(list_options_invalid(
            "FieldValueForbidden",
            "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
                .into(),
        ));
    }
    if !options.continue_token.is_empty() {
        if version.is_some_and(|version| version != 0) {
            return Err(Failure::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        return place(&options.continue_token);
    }
    match (options.resource_version_match.as_str(), version) {
        ("Exact", Some(0)) => Err(list_options_invalid(
            "FieldValueForbidden",
            "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""
                .into(),
        )),
        ("Exact", version) => Ok((version, None)),
        ("NotOlderThan" | "", _) => Ok((None, None)),
        (other, _) => Err(list_options_invalid(
            "FieldValueNotSupported",
            format!(
                "Unsupported value: {other:?}: supported values: \"Exact\", \"NotOlderThan\", \"\""
            ),
        )),
    }
}

fn list_options_invalid(reason: &str, message: String) -> Failure {
    let cause = Cause {
        reason: reason.into(),
        message,
        field: "resourceVersionMatch".into(),
    };
    Failure::invalid(&Subject::options("ListOptions"), "", vec![cause])
}

/// Parses the resourceVersion of an object that a client sends.
pub(super) fn parse_version(text: &str) -> Result<Revision, Failure> {
    text.parse().map_err(|_| {
        Failure::other(
            500,
            "",
            format!("strconv.ParseUint: parsing {text:?}: invalid syntax"),
        )
    })
}

/// Creates the failure for a requested resourceVersion that is not a number.
pub(super) fn invalid_version(text: &str) -> Failure {
    Failure::other(
        500,
        "",
        format!(
            "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
        ),
    )
}
