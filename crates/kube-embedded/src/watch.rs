//! Answers watches: sends the changes in the log that are after a revision and match the selectors.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::catalog::Resource;
use super::list::{Chosen, invalid_version};
use super::service::{Answer, Call, Content, Form};
use super::sqlite::{Event, PageRequest, Revision, Row, StoreError};
use super::status::Failure;
use super::{Shared, encode, table};

/// The time after which a watch without events sends a bookmark.
const BOOKMARK: Duration = Duration::from_secs(20);
/// The lifetime of a watch if the client requests none. It is limited, so that clients list again from time to time.
const DEFAULT_LIFE: Duration = Duration::from_secs(3000);
/// The longest lifetime of a watch that a client can request. It is limited, because the clock cannot represent very
/// late times.
const LONGEST_LIFE: Duration = Duration::from_secs(24 * 3600);

impl Shared {
    /// Answers a GET request with `watch=true`.
    pub(super) async fn watch(
        self: &Arc<Self>,
        resource: Arc<Resource>,
        call: Call,
    ) -> Result<Answer, Failure> {
        let chosen = Chosen::of(&resource, &call)?;
        let options = &call.options;
        let from: Option<Revision> = match options.resource_version.as_str() {
            "" => None,
            text => Some(text.parse().map_err(|_| invalid_version(text))?),
        };
        if options.initial_events.is_some() {
            check_initial_events(&call)?;
        }
        let newest = self.store.newest().await?;
        let initial = match options.initial_events {
            Some(true) => true,
            Some(false) => false,
            None => from.unwrap_or_default() == 0,
        };
        if let Some(asked) = from
            && asked > newest
        {
            return Err(Failure::too_large_revision(asked, newest));
        }
        let life = options
            .timeout_seconds
            // A timeout of zero means the default lifetime.
            .filter(|seconds| *seconds > 0)
            .map_or(DEFAULT_LIFE, Duration::from_secs)
            .min(LONGEST_LIFE);
        let watching = Watching {
            head: self.store.head(),
            shared: self.clone(),
            position: if initial {
                newest
            } else {
                from.filter(|from| *from > 0).unwrap_or(newest)
            },
            initial: initial.then_some(Initial {
                at: newest,
                after: None,
                mark: options.initial_events == Some(true),
            }),
            chosen,
            bookmarks: options.bookmarks,
            next_bookmark: Instant::now() + BOOKMARK,
            told: 0,
            asked: false,
            more: false,
            ends: Instant::now() + life,
            form: call.form,
            include: options.include_object.clone(),
            now: call.writer.now.clone(),
            columns_sent: false,
            over: false,
            resource,
        };
        // The error about a compacted revision is sent as an event of the watch, as in kube-apiserver.
        let frames = stream::unfold(watching, |mut watching| async move {
            let bytes = watching.next().await?;
            Some((Ok(Frame::data(Bytes::from(bytes))), watching))
        });
        Ok(Answer {
            code: 200,
            content: Content::Stream(StreamBody::new(frames).boxed_unsync()),
            warnings: Vec::new(),
        })
    }
}

fn check_initial_events(call: &Call) -> Result<(), Failure> {
    let refuse = |why: &str| {
        Err(Failure::other(
            422,
            "Invalid",
            format!("ListOptions.meta.k8s.io \"\" is invalid: {why}"),
        ))
    };
    match call.options.resource_version_match.as_str() {
        "NotOlderThan" => Ok(()),
        "" => refuse(
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
        other => refuse(&format!(
            "resourceVersionMatch: Unsupported value: {other:?}: supported values: \"NotOlderThan\""
        )),
    }
}

/// The progress of a watch that begins with events for the existing objects.
struct Initial {
    at: Revision,
    after: Option<(String, String)>,
    mark: bool,
}

/// An open watch. Between two reads of the log it needs no transaction, because it remembers its position.
struct Watching {
    shared: Arc<Shared>,
    resource: Arc<Resource>,
    chosen: Chosen,
    head: tokio::sync::watch::Receiver<Revision>,
    /// The revision up to which the watch has sent all changes.
    position: Revision,
    initial: Option<Initial>,
    bookmarks: bool,
    next_bookmark: Instant,
    told: Revision,
    /// Whether the watch has read the log before. After the first time, it reads the log only if its resource has
    /// changed.
    asked: bool,
    /// Whether the log has more changes after those that were read.
    more: bool,
    ends: Instant,
    form: Form,
    include: String,
    now: String,
    columns_sent: bool,
    over: bool,
}

impl Watching {
    async fn changes(&self) -> Result<super::sqlite::Changes, StoreError> {
        let previous = !self.chosen.all();
        let bodies = self.form != Form::Partial || !self.chosen.fields.metadata_only();
        let scope = self.chosen.scope.clone();
        self.shared
            .store
            .changes(scope, self.position, previous, bodies)
            .await
    }

    /// Returns the next bytes of the watch's body; None when the watch ends.
    async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if self.over {
                return None;
            }
            let beginning = self.initial.is_some();
            let step = match beginning {
                true => self.tell_initial().await,
                false => self.tell_changes().await,
            };
            match step {
                Ok(bytes) if !bytes.is_empty() => return Some(bytes),
                Ok(_) if beginning || self.more => continue,
                Ok(_) => {}
                Err(failure) => {
                    self.over = true;
                    return Some(line("ERROR", &encode::to_bytes(&failure.to_json())));
                }
            }
            if let Some(bookmark) = self.wait().await? {
                return Some(bookmark);
            }
        }
    }

    /// Waits for a change of the resource, for the time of the next bookmark, or for the end of the watch.
    async fn wait(&mut self) -> Option<Option<Vec<u8>>> {
        loop {
            tokio::select! {
                moved = self.head.changed() => moved.ok()?,
                () = tokio::time::sleep_until(self.ends) => {
                    self.over = true;
                    // A last bookmark is sent, so that the client can continue from this revision.
                    return self.bookmarks.then(|| Some(self.bookmark(false)));
                }
                () = tokio::time::sleep_until(self.next_bookmark), if self.bookmarks => {
                    self.next_bookmark = Instant::now() + BOOKMARK;
                    if self.told < self.position {
                        return Some(Some(self.bookmark(false)));
                    }
                    continue;
                }
            }
            let head = *self.head.borrow_and_update();
            if self.shared.store.touched(&self.resource.storage) > self.position {
                return Some(None);
            }
            if self.asked {
                self.position = self.position.max(head);
            }
        }
    }

    async fn tell_initial(&mut self) -> Result<Vec<u8>, Failure> {
        let mut out = Vec::new();
        let Some(initial) = &mut self.initial else {
            return Ok(out);
        };
        let bodies = self.form != Form::Partial || !self.chosen.fields.metadata_only();
        let page = self
            .shared
            .store
            .page(PageRequest {
                scope: self.chosen.scope.clone(),
                after: initial.after.clone(),
                at: Some(initial.at),
                rows: 256,
                bytes: 2 << 20,
                bodies,
            })
            .await?;
        if let Some(last) = page.rows.last() {
            initial.after = Some((last.key.namespace.clone(), last.key.name.clone()));
        }
        let mark = initial.mark;
        for row in &page.rows {
            if self.chosen.matches(&self.resource, row)? {
                let event = self.event("ADDED", row)?;
                out.extend(event);
            }
        }
        if !page.more {
            self.initial = None;
            if mark {
                out.extend(self.bookmark(true));
            }
        }
        Ok(out)
    }

    async fn tell_changes(&mut self) -> Result<Vec<u8>, Failure> {
        let mut out = Vec::new();
        let changes = self.changes().await?;
        for (row, before) in &changes.rows {
            let matches = |row: &Row| self.chosen.matches(&self.resource, row);
            let was = match (row.event, before) {
                (Event::Created, _) => false,
                (_, Some(before)) => matches(before)?,
                (_, None) => true,
            };
            let is = row.event != Event::Deleted && matches(row)?;
            let event = match (was, is) {
                (false, false) => continue,
                (false, true) => self.event("ADDED", row)?,
                (true, true) => self.event("MODIFIED", row)?,
                // The object matched the selectors before this change and no longer does, so it is sent as deleted:
                // in its last matching state, with the revision of this change.
                (true, false) => {
                    let mut last = before.clone().unwrap_or_else(|| row.clone());
                    last.revision = row.revision;
                    self.event("DELETED", &last)?
                }
            };
            out.extend(event);
        }
        self.position = changes.upto;
        self.more = changes.more;
        self.asked = true;
        if !changes.rows.is_empty() {
            self.told = self.position;
        }
        Ok(out)
    }

    fn event(&mut self, kind: &str, row: &Row) -> Result<Vec<u8>, Failure> {
        let object = match self.form {
            Form::Partial => encode::partial_bytes(row),
            Form::Table => {
                let object = encode::value(&self.resource, row)?;
                let mut table = table::of(&self.resource, &[object], &self.include, &self.now);
                if self.columns_sent {
                    table["columnDefinitions"] = Value::Null;
                }
                self.columns_sent = true;
                encode::to_bytes(&table)
            }
            Form::Object | Form::Yaml => encode::bytes(&self.resource, row),
        };
        Ok(line(kind, &object))
    }

    fn bookmark(&mut self, end_of_initial: bool) -> Vec<u8> {
        self.told = self.position;
        let mut metadata = json!({"resourceVersion": self.position.to_string()});
        if end_of_initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = match self.form {
            Form::Partial => json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
            }),
            Form::Table => {
                let mut table = table::of(&self.resource, &[], &self.include, &self.now);
                table["metadata"] = metadata;
                table
            }
            Form::Object | Form::Yaml => json!({
                "kind": self.resource.subject.kind,
                "apiVersion": self.resource.api_version(),
                "metadata": metadata,
            }),
        };
        line("BOOKMARK", &encode::to_bytes(&object))
    }
}

fn line(kind: &str, object: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(object.len() + 40);
    out.extend_from_slice(format!("{{\"type\":\"{kind}\",\"object\":").as_bytes());
    out.extend_from_slice(object);
    out.extend_from_slice(b"}\n");
    out
}
