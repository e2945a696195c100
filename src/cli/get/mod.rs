//! `bowline get`: prints objects of any kind, as the tables that the server makes or as complete objects.

mod table;
mod watch;

use std::io::Write;

use clap::Args;
use http::{HeaderValue, header};
use jiff::Timestamp;
use kube::api::{Api, DynamicObject, GetParams, ListParams};
use kube::core::Request;
use serde_json::{Value, json};

use super::Outcome;
use super::connect::{self, Address, Connection, Environment, Options};
use super::error::{Error, Exit, Failures};
use super::kinds::{self, Kind, Kinds};
use super::output::{self, Format};

/// The number of objects that one page of a list contains.
const PAGE: u32 = 500;

/// The arguments of `get`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// A kind or a list of kinds (releasepins,releases), then names [default: all objects]; or KIND/NAME
    #[arg(required = true, value_name = "KIND [NAME]")]
    words: Vec<String>,
    /// Only objects with these labels (team=payments,tier!=test)
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    /// Only objects with these fields (metadata.name=cart)
    #[arg(long, value_name = "FIELDS")]
    field_selector: Option<String>,
    /// List the objects of all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    /// Print managedFields too, in JSON and YAML
    #[arg(long)]
    show_managed_fields: bool,
    /// Watch, and print each change; deletions go to stderr
    #[arg(short, long)]
    watch: bool,
}

struct Found {
    kind: Kind,
    /// The answers of the server for one kind: tables, or objects if the output format needs them.
    values: Vec<Value>,
}

pub async fn run(
    arguments: &Arguments,
    options: &Options,
    environment: &Environment,
    now: Timestamp,
    out: &mut dyn Write,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    let wanted = kinds::objects_of(&arguments.words)?;
    let named = wanted.iter().any(|(_, names)| !names.is_empty());
    let filtered = arguments.selector.is_some() || arguments.field_selector.is_some();
    if named && (filtered || arguments.all_namespaces) {
        return Err(Error::new(
            Exit::Usage,
            "names cannot be combined with -A, -l or --field-selector",
        ));
    }
    let connection = connect::connect(options, environment).await?;
    let finder = Kinds::new(&connection.client);
    if arguments.watch {
        let (said, name) = match wanted.as_slice() {
            [(said, names)] if names.len() < 2 => (said, names.first().map(String::as_str)),
            _ => {
                return Err(Error::new(
                    Exit::Usage,
                    "-w takes one kind and at most one name",
                ));
            }
        };
        let kind = finder.named(said).await?;
        return watch::run(arguments, &connection, &kind, name, now, out, say).await;
    }
    let mut failures = Failures::default();
    let address = Address::of(&connection, options, environment);
    let mut found = Vec::new();
    let mut in_namespaces = false;
    for (said, names) in &wanted {
        let kind = match finder.named(said).await {
            Ok(kind) => kind,
            Err(error) => {
                failures.add(error, say);
                continue;
            }
        };
        in_namespaces |= kind.namespaced;
        let namespace = (!arguments.all_namespaces).then_some(connection.namespace.as_str());
        let objects = kind.objects(&connection.client, namespace);
        let mut values = Vec::new();
        if names.is_empty() {
            let fields = arguments.field_selector.as_deref();
            match list(arguments, &connection, &kind, &objects, fields).await {
                Ok((listed, _)) => values = listed,
                Err(error) => failures.add(error, say),
            }
        }
        for name in names {
            match one(arguments, &connection, &kind, &objects, name, &address).await {
                Ok(value) => values.push(value),
                Err(error) => failures.add(error, say),
            }
        }
        found.push(Found { kind, values });
    }
    let several = wanted.len() > 1 || wanted.iter().any(|(_, names)| names.len() != 1);
    let text = match arguments.output {
        Format::Table | Format::Wide => tables(arguments, &mut found, now),
        Format::Name => names(&found),
        Format::Json | Format::Yaml => {
            let single = (!several).then(|| found.iter_mut().find_map(|found| found.values.pop()));
            let value = match single {
                Some(Some(value)) => value,
                // The requested object does not exist, and its error is already printed, so only the exit code is
                // left.
                Some(None) => return Ok(Outcome::ending(String::new(), failures.exit())),
                None => {
                    let items: Vec<Value> =
                        found.into_iter().flat_map(|kind| kind.values).collect();
                    json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items})
                }
            };
            match arguments.output {
                Format::Json => output::json(&value),
                _ => output::yaml(&value),
            }
        }
    };
    if text.is_empty() && failures.is_empty() {
        say(match in_namespaces && !arguments.all_namespaces {
            true => format!("No resources found in {} namespace.", connection.namespace),
            false => "No resources found.".to_owned(),
        });
    }
    Ok(Outcome::ending(text, failures.exit()))
}

/// Returns the Accept header for an output format, which asks the server for tables, for metadata or for complete
/// objects.
fn accept(format: Format, list: bool) -> HeaderValue {
    HeaderValue::from_static(match (format, list) {
        (Format::Table | Format::Wide, _) => {
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
        }
        (Format::Name, true) => {
            "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
        }
        (Format::Name, false) => {
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
        }
        (Format::Json | Format::Yaml, _) => "application/json",
    })
}

async fn one(
    arguments: &Arguments,
    connection: &Connection,
    kind: &Kind,
    objects: &Api<DynamicObject>,
    name: &str,
    address: &Address,
) -> Result<Value, Error> {
    let mut request = Request::new(objects.resource_url())
        .get(name, &GetParams::default())
        .map_err(kube::Error::BuildRequest)?;
    let form = accept(arguments.output, false);
    request.headers_mut().insert(header::ACCEPT, form);
    match connection.client.request::<Value>(request).await {
        Ok(mut value) => {
            finish(arguments, kind, &mut value);
            Ok(value)
        }
        Err(kube::Error::Api(status)) if is_missing(&status) => {
            let Connection {
                client, namespace, ..
            } = connection;
            Err(kinds::missing(kind, client, namespace, name, address).await)
        }
        Err(error) => Err(kinds::about(kind, name, error)),
    }
}

/// Returns whether an error 404 means that the object does not exist. If false, the server does not have the kind.
fn is_missing(status: &kube::core::Status) -> bool {
    let names_it = |details: &kube::core::response::StatusDetails| !details.name.is_empty();
    status.code == 404 && status.details.as_ref().is_some_and(names_it)
}

/// Lists objects page by page, as tables or as objects. Also returns the resourceVersion of the list, to start a
/// watch from it.
async fn list(
    arguments: &Arguments,
    connection: &Connection,
    kind: &Kind,
    objects: &Api<DynamicObject>,
    fields: Option<&str>,
) -> Result<(Vec<Value>, String), Error> {
    let mut page = ListParams {
        label_selector: arguments.selector.clone(),
        field_selector: fields.map(str::to_owned),
        limit: Some(PAGE),
        ..ListParams::default()
    };
    let (mut found, mut version) = (Vec::new(), String::new());
    loop {
        let mut request = Request::new(objects.resource_url())
            .list(&page)
            .map_err(kube::Error::BuildRequest)?;
        let form = accept(arguments.output, true);
        request.headers_mut().insert(header::ACCEPT, form);
        let mut answer: Value = connection
            .client
            .request(request)
            .await
            .map_err(|error| kinds::about(kind, "", error))?;
        let next = answer.pointer("/metadata/continue").and_then(Value::as_str);
        let next = next.filter(|token| !token.is_empty()).map(str::to_owned);
        version = version_of(&answer).unwrap_or(version);
        match answer.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => found.extend(items),
            // Some servers answer an empty list with `items: null`, which is no object.
            Some(_) => {}
            None => found.push(answer),
        }
        match next {
            Some(_) => page.continue_token = next,
            None => break,
        }
    }
    for value in &mut found {
        finish(arguments, kind, value);
    }
    Ok((found, version))
}

fn version_of(value: &Value) -> Option<String> {
    let version = value.pointer("/metadata/resourceVersion")?.as_str()?;
    (!version.is_empty()).then(|| version.to_owned())
}

/// Adds apiVersion and kind to an object, because the items of a list do not have them. Removes managedFields, unless
/// the user asked for them.
fn finish(arguments: &Arguments, kind: &Kind, value: &mut Value) {
    let Value::Object(object) = value else {
        return;
    };
    if object.get("kind").and_then(Value::as_str) == Some("Table") {
        return;
    }
    for (key, said) in [
        ("apiVersion", &kind.resource.api_version),
        ("kind", &kind.resource.kind),
    ] {
        object.entry(key).or_insert_with(|| said.as_str().into());
    }
    if let Some(Value::Object(metadata)) = object.get_mut("metadata")
        && !arguments.show_managed_fields
    {
        metadata.remove("managedFields");
    }
}

fn names(found: &[Found]) -> String {
    let lines = found
        .iter()
        .flat_map(|Found { kind, values }| values.iter().map(|value| name_line(kind, value)));
    lines.collect()
}

fn name_line(kind: &Kind, value: &Value) -> String {
    let name = value.pointer("/metadata/name").and_then(Value::as_str);
    output::name_line(&kind.label(), name.unwrap_or_default())
}

/// Returns one table per kind, as text. If there are several kinds, each name gets its kind as a prefix.
fn tables(arguments: &Arguments, found: &mut [Found], now: Timestamp) -> String {
    let wide = arguments.output == Format::Wide;
    let several = found.len() > 1;
    let mut parts = Vec::new();
    for Found { kind, values } in found {
        let tables = table::made(std::mem::take(values), now);
        let prefix = several.then(|| format!("{}/", kind.label()));
        let namespaces = arguments.all_namespaces && kind.namespaced;
        let rows = table::rows(&tables, wide, namespaces, &prefix.unwrap_or_default());
        if rows.len() > 1 {
            parts.push(output::table(&rows));
        }
    }
    parts.join("\n")
}
