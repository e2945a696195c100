//! What a plan rests on, read again from the server and not from a watch: whether it still holds, and if
//! not, who changed what.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use kube::api::{Api, ListParams, PartialObjectMeta};
use kube::{Client, ResourceExt};
use serde_json::Value;

use crate::api::environment::EnvironmentSpec;
use crate::api::release::{Mark, Verdict};
use crate::api::{DeploymentPipeline, Environment, Release, ReleasePin, labels};
use crate::engine::ownership::{self, GitOps};
use crate::engine::plan::{Fact, Item, Plan};
use crate::engine::repeat::repeat;
use crate::engine::world::{Event, Key, World};

/// What the facts of some changes are about, as it is now.
#[derive(Default)]
pub(super) struct Now {
    pub(super) world: World,
    pins: HashMap<Key, ReleasePin>,
    releases: HashMap<Key, PartialObjectMeta<Release>>,
}

/// Something that a fact is about.
#[derive(PartialEq, Eq, Hash)]
enum Subject {
    Pin(Key),
    Release(Key),
    Environment(Key),
    Pipelines(String),
}

impl Subject {
    fn of(fact: &Fact) -> Self {
        match fact {
            Fact::Pin { key, .. } | Fact::Owner { key, .. } | Fact::Source { key, .. } => {
                Self::Pin(key.clone())
            }
            Fact::Release { key, .. } => Self::Release(key.clone()),
            Fact::Environment { key, .. } => Self::Environment(key.clone()),
            Fact::Path { namespace, .. } | Fact::First { namespace, .. } => {
                Self::Pipelines(namespace.clone())
            }
        }
    }
}

impl Now {
    /// Reads everything that the facts of changes are about, each object once.
    pub(super) async fn read<'i>(
        client: &Client,
        items: impl IntoIterator<Item = &'i Item>,
    ) -> Result<Self, kube::Error> {
        let mut now = Self::default();
        let mut asked = HashSet::new();
        for fact in items.into_iter().flat_map(|item| &item.facts) {
            let subject = Subject::of(fact);
            if !asked.contains(&subject) {
                now.take_in(client, &subject).await?;
                asked.insert(subject);
            }
        }
        Ok(now)
    }

    async fn take_in(&mut self, client: &Client, subject: &Subject) -> Result<(), kube::Error> {
        let client = client.clone();
        match subject {
            Subject::Pin(key) => {
                let api: Api<ReleasePin> = Api::namespaced(client, &key.namespace);
                if let Some(pin) = repeat(|| api.get_opt(&key.name)).await? {
                    self.pins.insert(key.clone(), pin.clone());
                    self.world.pins(Event::Applied(pin));
                }
            }
            Subject::Release(key) => {
                let api: Api<Release> = Api::namespaced(client, &key.namespace);
                if let Some(release) = repeat(|| api.get_metadata_opt(&key.name)).await? {
                    self.releases.insert(key.clone(), release.clone());
                    self.world.releases(Event::Applied(release));
                }
            }
            Subject::Environment(key) => {
                let api: Api<Environment> = Api::namespaced(client, &key.namespace);
                if let Some(environment) = repeat(|| api.get_opt(&key.name)).await? {
                    self.world.environments(Event::Applied(environment));
                }
            }
            Subject::Pipelines(namespace) => {
                let api: Api<DeploymentPipeline> = Api::namespaced(client, namespace);
                let all = ListParams::default();
                for pipeline in repeat(|| api.list(&all)).await? {
                    self.world.pipelines(Event::Applied(pipeline));
                }
            }
        }
        Ok(())
    }

    /// Returns the pin of a change.
    pub(super) fn pin(&self, item: &Item) -> Option<&ReleasePin> {
        self.pins.get(&item.pin)
    }

    /// Tells whether the pin of a change is not the one that it was planned from.
    pub(super) fn has_moved(&self, item: &Item) -> bool {
        self.pin(item).and_then(identity) != planned(item)
    }

    /// Tells whether the pin of a change is as a plan made it.
    pub(super) fn is_of(&self, plan: &Plan, item: &Item) -> bool {
        let operation = self
            .pin(item)
            .and_then(|pin| pin.operation().ok().flatten());
        operation.is_some_and(|operation| operation.id == plan.operation)
    }

    /// Says what is no more of what a change rests on.
    pub(super) fn broken(&self, item: &Item, at: Timestamp) -> Option<String> {
        let broken = item.facts.iter().find(|fact| !fact.holds(&self.world, at));
        broken
            .map(|fact| self.describe(fact, item, at))
            .or_else(|| self.ended(item, at))
    }

    /// A hold that ended while the plan was looked at: another release counts than it says.
    fn ended(&self, item: &Item, at: Timestamp) -> Option<String> {
        let before = self.world.pin(&item.pin);
        let owned = before.is_some_and(|pin| pin.gitops.is_some());
        let before = before.map(|pin| pin.effective_release(at));
        let planned = item.from.as_ref().map(|from| from.name.as_str());
        let after = super::publish::spec(item);
        let after = after.release_that_counts(at, owned);
        let name = &item.pin.name;
        match (before, planned) {
            (Some(now), Some(then)) if now != then => Some(format!(
                "a hold of {name} ended, and {now} counts there instead of {then}"
            )),
            _ if after != item.to.name => Some(format!(
                "a hold of {name} ended, so that {after} would count and not {}",
                item.to.name
            )),
            _ => None,
        }
    }

    fn describe(&self, fact: &Fact, item: &Item, at: Timestamp) -> String {
        match fact {
            Fact::Pin { key, .. } => changed(item, self.pins.get(key), at),
            Fact::Owner { key, is } => {
                let now = self.world.pin(key).and_then(|pin| pin.gitops);
                let tool = |tool: Option<GitOps>| tool.map_or("no tool", GitOps::name);
                format!("{} owns {} now, and not {}", tool(now), key.name, tool(*is))
            }
            Fact::Source { key, release, .. } => self.source(key, release, at),
            Fact::Release { key, uid } => self.release(key, uid),
            Fact::Environment { key, spec } => self.environment(key, spec),
            Fact::Path {
                namespace,
                from,
                to,
            } => {
                let pipeline = self.pipeline(namespace);
                format!("{from} does not promote to {to} any more: {pipeline}")
            }
            Fact::First {
                namespace,
                environment,
            } => {
                let pipeline = self.pipeline(namespace);
                format!("{environment} is not deployed to any more: {pipeline}")
            }
        }
    }

    fn source(&self, key: &Key, release: &str, at: Timestamp) -> String {
        let (Some(pin), Some(row)) = (self.pins.get(key), self.world.pin(key)) else {
            return format!("{} was deleted, which ran {release}", key.name);
        };
        let runs = row.effective_release(at);
        if runs != release {
            let by = by_whom(pin);
            return format!("{} runs {runs} now and not {release}{by}", key.name);
        }
        let why = match &row.ready {
            _ if row.observed != Some(row.generation) => {
                "the controller has not seen its latest change".to_owned()
            }
            Some(_) if row.applied.as_deref() != Some(runs) => "it was not applied yet".to_owned(),
            Some(ready) => format!("{} ({}) since {}", ready.message, ready.reason, ready.since),
            None => "nothing is known of it".to_owned(),
        };
        format!("{} is not ready any more: {why}", key.name)
    }

    fn release(&self, key: &Key, uid: &str) -> String {
        let name = &key.name;
        let Some(release) = self.releases.get(key) else {
            return format!("release {name} was deleted");
        };
        if release.metadata.uid.as_deref() != Some(uid) {
            let made = release.metadata.creation_timestamp.as_ref();
            let made = made.map(|made| format!(" at {}", made.0));
            let made = made.unwrap_or_default();
            return format!("release {name} was deleted, and another one was made{made}");
        }
        if let Some(since) = &release.metadata.deletion_timestamp {
            return format!("release {name} is being deleted since {}", since.0);
        }
        let mark = release.annotations().get(labels::MARK);
        let mark: Option<Mark> = mark.and_then(|text| serde_json::from_str(text).ok());
        match mark.filter(|mark| mark.verdict == Verdict::Bad) {
            Some(mark) => {
                let note = mark.note.map(|note| format!(" ({note})"));
                let note = note.unwrap_or_default();
                format!(
                    "release {name} was marked bad by {} at {}{note}",
                    mark.by, mark.at.0
                )
            }
            None => format!("release {name} was marked bad"),
        }
    }

    fn environment(&self, key: &Key, planned: &EnvironmentSpec) -> String {
        let Some(environment) = self.world.environment(key) else {
            return format!("environment {} was deleted", key.name);
        };
        let fields = |spec: &EnvironmentSpec| match serde_json::to_value(spec) {
            Ok(Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let (then, now) = (fields(planned), fields(&environment.spec));
        let names: HashSet<&String> = then.keys().chain(now.keys()).collect();
        let mut changes: Vec<String> = names
            .into_iter()
            .filter(|name| then.get(*name) != now.get(*name))
            .map(|name| {
                let word = |value: Option<&Value>| value.map_or("unset".into(), Value::to_string);
                let (then, now) = (word(then.get(name)), word(now.get(name)));
                format!("{name} is {now} and was {then}")
            })
            .collect();
        changes.sort();
        format!("environment {} changed: {}", key.name, changes.join(", "))
    }

    fn pipeline(&self, namespace: &str) -> String {
        let Some(pipeline) = self.world.pipeline(namespace) else {
            return "its DeploymentPipeline was deleted".to_owned();
        };
        let edges = pipeline.promotion_paths.iter().flat_map(|path| {
            let from = &path.source_environment_ref.name;
            let targets = path.target_environment_refs.iter();
            targets.map(move |to| format!("{from} to {}", to.name))
        });
        let edges: Vec<String> = edges.collect();
        match edges.is_empty() {
            true => "its DeploymentPipeline has no paths".to_owned(),
            false => format!("its DeploymentPipeline leads from {}", edges.join(", ")),
        }
    }
}

/// Returns the uid and the generation that a pin had when its change was planned.
pub(super) fn planned(item: &Item) -> Option<(&str, i64)> {
    item.facts.iter().find_map(|fact| match fact {
        Fact::Pin {
            key,
            is: Some((uid, generation)),
        } if *key == item.pin => Some((uid.as_str(), *generation)),
        _ => None,
    })
}

/// Returns the uid and the generation of a pin.
pub(super) fn identity(pin: &ReleasePin) -> Option<(&str, i64)> {
    Some((pin.metadata.uid.as_deref()?, pin.metadata.generation?))
}

/// Says what somebody else made of the pin of a change, who and when.
pub(super) fn changed(item: &Item, pin: Option<&ReleasePin>, at: Timestamp) -> String {
    let name = &item.pin.name;
    let Some(pin) = pin else {
        let ran = item
            .from
            .as_ref()
            .map(|from| format!(", which ran {}", from.name));
        return format!("{name} was deleted{}", ran.unwrap_or_default());
    };
    let release = ownership::effective_release(pin, at);
    let what = match planned(item) {
        None => "was made, with",
        Some((uid, _)) if pin.metadata.uid.as_deref() != Some(uid) => {
            "was deleted and made again, with"
        }
        Some(_) => "was changed to",
    };
    format!("{name} {what} {release}{}", by_whom(pin))
}

/// Says who changed a pin's spec last, and when: by the operation on it, else by its managed fields.
fn by_whom(pin: &ReleasePin) -> String {
    let operation = pin.operation().ok().flatten();
    let managers = pin.metadata.managed_fields.iter().flatten();
    let of_spec = managers.filter_map(|manager| {
        let spec = manager.fields_v1.as_ref()?.0.get("f:spec")?;
        let whole = manager
            .subresource
            .as_deref()
            .unwrap_or_default()
            .is_empty();
        // The times are whole seconds; of two, it is who owns the reference.
        whole.then(|| {
            (
                manager.time.clone(),
                spec.pointer("/f:releaseRef/f:name").is_some(),
                manager,
            )
        })
    });
    let writer = of_spec.max_by_key(|(time, reference, _)| (time.clone(), *reference));
    let writer = writer.map(|(_, _, manager)| manager);
    let tool = writer.and_then(|writer| writer.manager.as_deref());
    let by = match (pin.changed_by(), &operation, tool) {
        (Some(user), Some(_), _) | (Some(user), None, None) => format!(" by {user}"),
        (Some(user), None, Some(tool)) => format!(" by {user} with {tool}"),
        (None, _, Some(tool)) => format!(" by somebody with {tool}"),
        (None, _, None) => String::new(),
    };
    let written = writer.and_then(|writer| writer.time.clone());
    let at = operation.map(|operation| operation.at).or(written);
    let at = at.map(|at| format!(" at {}", at.0)).unwrap_or_default();
    by + &at
}
