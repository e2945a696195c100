//! `get -w`: prints the objects, and then each changed object.

use std::io::Write;
use std::pin::pin;
use std::time::Duration;

use futures::TryStreamExt;
use http::header;
use jiff::Timestamp;
use kube::api::{WatchEvent, WatchParams};
use kube::core::Request;
use serde_json::Value;

use super::super::Outcome;
use super::super::connect::Connection;
use super::super::error::Error;
use super::super::kinds::{self, Kind};
use super::super::output::{self, Format};
use super::{Arguments, accept, finish, list, name_line, table, version_of};

/// The pause before a watch that has ended is started again.
const AGAIN: Duration = Duration::from_secs(1);

/// Prints the objects and then each changed object, until the reader of stdout closes the pipe.
#[allow(
    clippy::too_many_arguments,
    reason = "what is watched, and where it goes"
)]
pub async fn run(
    arguments: &Arguments,
    connection: &Connection,
    kind: &Kind,
    name: Option<&str>,
    now: Timestamp,
    out: &mut dyn Write,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    let namespace = (!arguments.all_namespaces).then_some(connection.namespace.as_str());
    let objects = kind.objects(&connection.client, namespace);
    let name = name.map(|name| format!("metadata.name={name}"));
    let fields = name.or_else(|| arguments.field_selector.clone());
    let (values, mut version) =
        list(arguments, connection, kind, &objects, fields.as_deref()).await?;
    let columns = values
        .first()
        .and_then(|value| value.get("columnDefinitions"));
    let columns = columns.cloned();
    let namespaces = arguments.all_namespaces && kind.namespaced;
    let wide = arguments.output == Format::Wide;
    // The widest cell of each column so far. It keeps later rows aligned with the rows that are already printed.
    let mut widest: Vec<String> = Vec::new();
    let mut print = |values: Vec<Value>, first: bool| -> Result<(), Error> {
        let text = match arguments.output {
            Format::Table | Format::Wide => {
                let rows = table::rows(&table::made(values, now), wide, namespaces, "");
                let rows = rows.into_iter().skip(usize::from(!first));
                let rows: Vec<_> = std::iter::once(widest.clone()).chain(rows).collect();
                widest = table::widest(&rows);
                let text =
                    output::table(&[&[widest.clone()], rows.get(1..).unwrap_or_default()].concat());
                text.split_once('\n')
                    .map(|(_, rest)| rest.to_owned())
                    .unwrap_or_default()
            }
            Format::Name => values.iter().map(|value| name_line(kind, value)).collect(),
            Format::Json => values.iter().map(output::json).collect(),
            Format::Yaml => values
                .iter()
                .map(|value| format!("---\n{}", output::yaml(value)))
                .collect(),
        };
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    };
    print(values, true)?;
    loop {
        let parameters = WatchParams {
            label_selector: arguments.selector.clone(),
            field_selector: fields.clone(),
            ..WatchParams::default()
        };
        let mut request = Request::new(objects.resource_url())
            .watch(&parameters, &version)
            .map_err(kube::Error::BuildRequest)?;
        let form = accept(arguments.output, false);
        request.headers_mut().insert(header::ACCEPT, form);
        let events = connection.client.request_events::<Value>(request).await;
        let mut events = pin!(events.map_err(|error| kinds::about(kind, "", error))?);
        while let Some(event) = events.try_next().await? {
            let (mut value, deleted) = match event {
                WatchEvent::Added(value) | WatchEvent::Modified(value) => (value, false),
                WatchEvent::Deleted(value) => (value, true),
                WatchEvent::Bookmark(bookmark) => {
                    version = bookmark.metadata.resource_version;
                    continue;
                }
                WatchEvent::Error(status) => return Err(kube::Error::Api(status).into()),
            };
            version = version_of(&value).unwrap_or(version);
            if deleted {
                let metadata = value.pointer("/rows/0/object").unwrap_or(&value);
                say(format!("{} deleted", name_line(kind, metadata).trim_end()));
                continue;
            }
            // The server sends the columns only in the first event of a watch, so they are added to the later events.
            if let (Value::Object(table), Some(columns)) = (&mut value, &columns)
                && table.contains_key("rows")
            {
                table.insert("columnDefinitions".to_owned(), columns.clone());
            }
            finish(arguments, kind, &mut value);
            print(vec![value], false)?;
        }
        tokio::time::sleep(AGAIN).await;
    }
}
