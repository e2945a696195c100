//! The facts of a plan, read again from the server and not from a watch: whether they are still true, and
//! if not, who changed what.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ListParams};

use crate::api::{DeploymentPipeline, Environment, Release, ReleasePin};
use crate::engine::repeat::repeat;
use crate::engine::world::{Event, Key, World};
use crate::subjects::release_pin::ownership;
use crate::subjects::release_pin::plan::{Fact, Item, Plan};
use crate::subjects::release_pin::stale;

/// The current state of the objects that the facts of some changes are about.
#[derive(Default)]
pub(super) struct Now {
    pub(super) world: World,
    pins: HashMap<Key, ReleasePin>,
}

/// The object or objects that a fact is about.
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
            Fact::Path { namespace, .. }
            | Fact::OnePipeline { namespace }
            | Fact::First { namespace, .. } => Self::Pipelines(namespace.clone()),
        }
    }
}

impl Now {
    /// Reads all objects that the facts are about, each object once.
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

    /// Returns the ReleasePin of a change.
    pub(super) fn pin(&self, item: &Item) -> Option<&ReleasePin> {
        self.pins.get(&item.pin)
    }

    /// Returns whether the ReleasePin of a change has another uid or generation than at plan time.
    pub(super) fn has_moved(&self, item: &Item) -> bool {
        self.pin(item).and_then(identity) != planned(item)
    }

    /// Returns whether the plan itself made the last change of the ReleasePin.
    pub(super) fn is_of(&self, plan: &Plan, item: &Item) -> bool {
        let operation = self
            .pin(item)
            .and_then(|pin| pin.operation().ok().flatten());
        operation.is_some_and(|operation| operation.id == plan.operation)
    }

    /// Describes the first fact of a change that is no longer true; None if all are true.
    pub(super) fn broken(&self, item: &Item, at: Timestamp) -> Option<String> {
        let broken = item.facts.iter().find(|fact| !fact.holds(&self.world, at));
        broken
            .map(|fact| self.describe(fact, item, at))
            .or_else(|| stale::ended(&self.world, item, at))
    }

    fn describe(&self, fact: &Fact, item: &Item, at: Timestamp) -> String {
        match fact {
            Fact::Pin { key, .. } => changed(item, self.pins.get(key), at),
            Fact::Source { key, release, .. } => self.source(key, release, at),
            fact => stale::describe(&self.world, fact),
        }
    }

    fn source(&self, key: &Key, release: &str, at: Timestamp) -> String {
        let (Some(pin), Some(row)) = (self.pins.get(key), self.world.pin(key)) else {
            return format!("{} was deleted; it ran {release}", key.name);
        };
        let runs = row.effective_release(at);
        if runs != release {
            let by = by_whom(pin);
            let changed = match by.is_empty() {
                true => String::new(),
                false => format!("; last changed{by}"),
            };
            return format!("{} runs {runs} now, not {release}{changed}", key.name);
        }
        let why = match &row.ready {
            _ if row.observed != Some(row.generation) => {
                "the controller has not observed its latest change".to_owned()
            }
            Some(_) if row.applied.as_deref() != Some(runs) => "it is not applied yet".to_owned(),
            Some(ready) => format!("{} ({}) since {}", ready.message, ready.reason, ready.since),
            None => "no status yet".to_owned(),
        };
        format!("{} is no longer ready: {why}", key.name)
    }
}

/// Returns the uid and the generation of a ReleasePin at plan time.
pub(super) fn planned(item: &Item) -> Option<(&str, i64)> {
    item.facts.iter().find_map(|fact| match fact {
        Fact::Pin {
            key,
            is: Some((uid, generation)),
        } if *key == item.pin => Some((uid.as_str(), *generation)),
        _ => None,
    })
}

/// Returns the uid and the generation of a ReleasePin.
pub(super) fn identity(pin: &ReleasePin) -> Option<(&str, i64)> {
    Some((pin.metadata.uid.as_deref()?, pin.metadata.generation?))
}

/// Describes a change of the ReleasePin by somebody else, with author and time.
pub(super) fn changed(item: &Item, pin: Option<&ReleasePin>, at: Timestamp) -> String {
    let name = &item.pin.name;
    let Some(pin) = pin else {
        let ran = item
            .from
            .as_ref()
            .map(|from| format!("; it ran {}", from.name));
        return format!("{name} was deleted{}", ran.unwrap_or_default());
    };
    let release = ownership::effective_release(pin, at);
    let what = match planned(item) {
        None => "was created with",
        Some((uid, _)) if pin.metadata.uid.as_deref() != Some(uid) => {
            "was deleted and created again with"
        }
        Some(_) => "was changed to",
    };
    format!("{name} {what} {release}{}", by_whom(pin))
}

/// Returns the author and time of the last change of a ReleasePin's spec: from its operation, or else
/// from its managed fields.
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
        // The times are whole seconds; of two equal ones, take the manager that owns the releaseRef.
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
        (None, _, Some(tool)) => format!(" by an unknown user with {tool}"),
        (None, _, None) => String::new(),
    };
    let written = writer.and_then(|writer| writer.time.clone());
    let at = operation.map(|operation| operation.at).or(written);
    let at = at.map(|at| format!(" at {}", at.0)).unwrap_or_default();
    by + &at
}
