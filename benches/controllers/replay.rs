//! Records the writes of the controllers, and sends them again for another set of objects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bowline::connect::only_reads;
use futures::StreamExt;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

use crate::world::World;

/// A recorded write request, with the values of its answer that later writes contain.
#[derive(Clone)]
struct Write {
    method: Method,
    uri: String,
    headers: HeaderMap,
    body: String,
    /// The uid and the resourceVersion in the answer to this write. Later recorded writes may contain them.
    answered: Option<(String, String)>,
}

/// Records every successful write of the client that sends its requests through this recorder.
#[derive(Clone, Default)]
pub struct Recorder(Arc<Mutex<Vec<Write>>>);

impl Recorder {
    pub fn around(&self, client: &Client) -> Client {
        let (recorder, inner) = (self.clone(), client.clone());
        let recording = tower::service_fn(move |request: Request<Body>| {
            let (recorder, inner) = (recorder.clone(), inner.clone());
            async move {
                if only_reads(request.method(), request.uri().path(), request.headers()) {
                    return inner.send(request).await;
                }
                let (head, body) = request.into_parts();
                let body = body.collect().await?.to_bytes();
                let mut write = Write {
                    method: head.method.clone(),
                    uri: head.uri.path_and_query().unwrap().to_string(),
                    headers: head.headers.clone(),
                    body: String::from_utf8(body.to_vec()).unwrap(),
                    answered: None,
                };
                let answer = inner
                    .send(Request::from_parts(head, Body::from(body)))
                    .await?;
                let (head, body) = answer.into_parts();
                let body = body.collect().await?.to_bytes();
                if head.status.is_success() {
                    write.answered = names(&body);
                    recorder.0.lock().unwrap().push(write);
                }
                Ok::<_, kube::Error>(Response::from_parts(head, Body::from(body)))
            }
        });
        Client::new(recording, client.default_namespace())
    }
}

/// Returns the uid and the resourceVersion of the object in the body of an answer.
fn names(body: &[u8]) -> Option<(String, String)> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let text = |field: &str| Some(body["metadata"][field].as_str()?.to_owned());
    Some((text("uid")?, text("resourceVersion")?))
}

/// The recorded writes of a [`World`]: a sequence for each ReleasePin.
pub struct Script {
    from: String,
    from_data_plane: String,
    /// The writes that belong to no ReleasePin. They are sent before all others.
    first: Vec<Write>,
    of_pins: BTreeMap<String, Vec<Write>>,
    pins: BTreeMap<String, [(String, String); 2]>,
}

impl Script {
    pub fn of(recorder: Recorder, world: &World) -> Self {
        let mut script = Self {
            from: world.namespace.clone(),
            from_data_plane: world.data_plane(),
            first: Vec::new(),
            of_pins: BTreeMap::new(),
            pins: world.pins.clone(),
        };
        for write in std::mem::take(&mut *recorder.0.lock().unwrap()) {
            // The creation of the namespace comes first, because the other writes need the namespace.
            if write.uri.starts_with("/api/v1/namespaces?") {
                script.first.push(write);
                continue;
            }
            let whole = format!("{} {}", write.uri, write.body);
            // The name of a component must match a whole word, so that c1 is not found in c11.
            let mut words = whole.split(|c: char| !c.is_ascii_alphanumeric());
            let of = words.find(|word| world.pins.contains_key(*word));
            match of {
                Some(component) => script
                    .of_pins
                    .entry(component.to_owned())
                    .or_default()
                    .push(write),
                None => script.first.push(write),
            }
        }
        script
    }

    pub fn writes(&self) -> usize {
        self.first.len() + self.of_pins.values().map(Vec::len).sum::<usize>()
    }

    /// Sends the recorded writes for another world, for `at_once` ReleasePins at the same time. Returns how
    /// long this took.
    pub async fn replay(&self, client: &Client, world: &World, at_once: usize) -> Duration {
        let begun = Instant::now();
        self.play(client, world, &self.first, BTreeMap::new()).await;
        futures::stream::iter(&self.of_pins)
            .for_each_concurrent(at_once, |(component, writes)| {
                let mut known = BTreeMap::new();
                for (there, here) in self.pins[component].iter().zip(&world.pins[component]) {
                    same(&mut known, there, here);
                }
                self.play(client, world, writes, known)
            })
            .await;
        begun.elapsed()
    }

    async fn play(
        &self,
        client: &Client,
        world: &World,
        writes: &[Write],
        mut known: BTreeMap<String, String>,
    ) {
        for write in writes {
            let put_right = |text: &str| {
                // The longer name is replaced first, because the shorter name is its beginning.
                let mut text = text
                    .replace(&self.from_data_plane, &world.data_plane())
                    .replace(&self.from, &world.namespace);
                for (there, here) in &known {
                    text = text.replace(there.as_str(), here);
                }
                text
            };
            let mut request = Request::builder()
                .method(write.method.clone())
                .uri(put_right(&write.uri))
                .body(Body::from(put_right(&write.body).into_bytes()))
                .unwrap();
            *request.headers_mut() = write.headers.clone();
            let answer = client.send(request).await.unwrap();
            let status = answer.status();
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            assert!(
                status.is_success(),
                "{} {}: {}",
                write.method,
                write.uri,
                String::from_utf8_lossy(&body)
            );
            if let (Some(there), Some(here)) = (&write.answered, names(&body)) {
                same(&mut known, there, &here);
            }
        }
    }
}

/// Records that the uid and resourceVersion `here` replace `there` in the recorded writes.
fn same(known: &mut BTreeMap<String, String>, there: &(String, String), here: &(String, String)) {
    known.insert(there.0.clone(), here.0.clone());
    // The resourceVersion is replaced together with its JSON quotes, because its number may occur in other
    // texts.
    known.insert(format!("\"{}\"", there.1), format!("\"{}\"", here.1));
}
