//! Describes which facts of a plan are no longer true, and who changed the objects.
//!
//! The functions are pure. A front end calls them with the read model while it shows a plan; `apply` calls them with
//! the objects that it has read again.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kube::api::ObjectMeta;
use serde_json::Value;

use super::actions::gc::{self, Collection, Gc};
use super::facts::{self, PinFact};
use super::marking::Marking;
use crate::api::openchoreo::environment::EnvironmentSpec;
use crate::api::openchoreo::pin;
use crate::api::openchoreo::release::Verdict;
use crate::engine::ownership::GitOps;
use crate::engine::plan::{Asked, Change, Fact, Plan};
use crate::engine::world::{Key, World};
use crate::subjects::release_pin::rows::Pin;
use crate::text;

/// Describes the facts of a plan that are no longer true, each once; empty if all facts are true.
///
/// `unmade` is the name of a release that the plan creates first. It may be missing in the read model.
pub fn of_plan(world: &World, plan: &Plan, unmade: Option<&str>, now: Timestamp) -> Vec<String> {
    let mut stale: Vec<String> = Vec::new();
    for change in &plan.changes {
        let matters = |fact: &&PinFact| match fact {
            // A change that writes nothing depends only on two values: the effective release in the source
            // environment, and its own.
            PinFact::Source { key, release, .. } if change.unchanged => {
                let source = world.pin(key);
                source.is_none_or(|source| source.effective_release(now) != release)
            }
            PinFact::Pin { .. } | PinFact::Effective { .. } => true,
            _ if change.unchanged => false,
            PinFact::Release { key, .. } => unmade != Some(&*key.name),
            _ => true,
        };
        let broken = facts::of(change).filter(matters);
        let mut broken = broken.filter(|fact| !fact.holds(world, now)).peekable();
        // The end of a hold is described only if no other fact explains the difference.
        let first = broken.peek().copied();
        let broken = broken.filter(|fact| {
            !matches!(fact, PinFact::Effective { .. })
                || first.is_some_and(|first| std::ptr::eq(first, *fact))
        });
        for fact in broken {
            let what = fact.describe(world, change, now);
            if !stale.contains(&what) {
                stale.push(what);
            }
        }
    }
    stale
}

/// Describes how a release has changed since its mark was planned; None if the plan is still valid.
pub fn of_marking(world: &World, marking: &Marking) -> Option<String> {
    let name = &marking.release.name;
    let Some(release) = world.release(&marking.release) else {
        return Some(format!("release {name} was deleted"));
    };
    if *release.uid != *marking.uid {
        return Some(release_changed(world, &marking.release, &marking.uid));
    }
    if release.mark == marking.was {
        return None;
    }
    let by = release.marked.as_deref();
    let by = by.map(|mark| format!(" by {} at {}", mark.by, mark.at.0));
    let word = match release.mark {
        Some(Verdict::Bad) => "was marked bad",
        Some(Verdict::Good) => "was marked good",
        None => "lost its mark",
    };
    Some(format!("release {name} {word}{}", by.unwrap_or_default()))
}

/// Describes the objects for which gc would now decide differently than in the plan; empty if the plan is still
/// valid.
pub fn of_collection(world: &World, gc: &Gc, plan: &Collection, now: Timestamp) -> Vec<String> {
    let asked = Asked {
        operation: plan.operation.clone(),
        now,
        user: String::new(),
        reason: None,
        namespace: plan.namespace.clone(),
    };
    let Ok(again) = gc::plan(world, gc, &asked) else {
        // Without an up-to-date read model, nothing can be compared. The screens report this on their own.
        return Vec::new();
    };
    let going = |plan: &Collection| -> BTreeSet<Key> {
        plan.going()
            .map(|candidate| candidate.key.clone())
            .collect()
    };
    let (then, now) = (going(plan), going(&again));
    let kept = then.difference(&now).map(|key| {
        let all = again.releases.iter().chain(&again.snapshots);
        let found = all.into_iter().find(|candidate| candidate.key == *key);
        match found {
            Some(candidate) => format!("{} stays now: {}", key.name, candidate.why()),
            None => format!("{} was deleted", key.name),
        }
    });
    let more = now.difference(&then);
    let more = more.map(|key| format!("{} can be deleted now as well", key.name));
    kept.chain(more).collect()
}

/// Describes a fact that is no longer true: the difference, and the tool or user that caused it.
pub(super) fn describe(world: &World, fact: &PinFact, change: &Change, now: Timestamp) -> String {
    match fact {
        PinFact::Pin { key, is } => pin(world, change, key, is.as_ref(), now),
        PinFact::Source { key, release, .. } => source(world, key, release, now),
        PinFact::Effective { .. } => ended(world, fact, now).unwrap_or_default(),
        PinFact::Owner { key, is } => {
            let now = world.pin(key).and_then(|pin| pin.gitops);
            let tool = |tool: Option<GitOps>| tool.map_or("no tool", GitOps::name);
            format!(
                "{} owns {} now; {} owned it when this was planned",
                tool(now),
                key.name,
                tool(*is)
            )
        }
        PinFact::Release { key, uid } => release_changed(world, key, uid),
        PinFact::Environment { key, spec } => environment(world, key, spec),
        PinFact::Path {
            namespace,
            from,
            to,
        } => {
            let pipeline = pipeline(world, namespace);
            format!("the pipeline no longer has a path from {from} to {to}: {pipeline}")
        }
        PinFact::OnePipeline { namespace } => pipeline(world, namespace),
        PinFact::First {
            namespace,
            environment,
        } => {
            let pipeline = pipeline(world, namespace);
            format!("{environment} is no longer a first environment: {pipeline}")
        }
    }
}

/// Describes how the ReleasePin of a change has changed since plan time.
fn pin(
    world: &World,
    change: &Change,
    key: &Key,
    planned: Option<&(String, i64)>,
    now: Timestamp,
) -> String {
    let name = &key.name;
    let Some(pin) = world.pin(key) else {
        return format!("{name} was deleted");
    };
    let release = pin.effective_release(now);
    let by = by(pin);
    match planned {
        None => format!("{name} was created with {release}{by}"),
        Some((uid, _)) if **uid != *pin.uid => {
            format!("{name} was deleted and created again with {release}{by}")
        }
        Some((_, revision)) => {
            let same = change
                .from
                .as_ref()
                .is_some_and(|from| from.name == release);
            let what = match (same, pin.changed_by.as_deref()) {
                (true, Some(by)) => format!("{by} changed the holds or the releaseRef of {name}"),
                (true, None) => format!("the holds or the releaseRef of {name} changed"),
                (false, Some(by)) => format!("{by} changed {name} to {release}"),
                (false, None) => format!("{name} was changed to {release}"),
            };
            let (is, was) = (pin.generation, revision);
            format!("{what}: revision {is}, planned from revision {was}")
        }
    }
}

/// Describes how the ReleasePin in the source environment of a promotion has changed since plan time.
fn source(world: &World, key: &Key, release: &str, now: Timestamp) -> String {
    let name = &key.name;
    let Some(pin) = world.pin(key) else {
        return format!("{name} was deleted, which ran {release}");
    };
    let runs = pin.effective_release(now);
    match (runs == release, &pin.ready) {
        (false, _) => {
            let by = pin.changed_by.as_deref();
            let by = by.map(|by| format!("; last changed by {by}"));
            let by = by.unwrap_or_default();
            format!("{name} runs {runs} now, not {release}{by}")
        }
        (true, _) if pin.observed != Some(pin.generation) => {
            format!("{name} is no longer ready: the controller has not seen its latest change")
        }
        (true, Some(ready)) => format!(
            "{name} is no longer ready: {} ({}) since {}",
            ready.message, ready.reason, ready.since
        ),
        (true, None) => format!("{name} is no longer ready"),
    }
}

/// Describes why a fact of the kind `Effective` is no longer true: a hold ended after the plan was made, and another
/// release than planned is effective now, or would be effective after the change. None if the fact is still true, or
/// of another kind.
pub(super) fn ended(world: &World, fact: &PinFact, now: Timestamp) -> Option<String> {
    let PinFact::Effective {
        key,
        from,
        release_ref,
        holds,
        to,
    } = fact
    else {
        return None;
    };
    let pin = world.pin(key);
    let owned = pin.is_some_and(|pin| pin.gitops.is_some());
    let before = pin.map(|pin| pin.effective_release(now));
    let planned = from.as_deref();
    let active = holds.iter().filter(|hold| hold.is_effective(now, owned));
    let after = pin::fixed(active).unwrap_or(release_ref);
    let name = &key.name;
    match (before, planned) {
        (Some(now), Some(then)) if now != then => Some(format!(
            "a hold on {name} ended: its effective release is {now}, no longer {then}"
        )),
        _ if after != to => Some(format!(
            "a hold on {name} ended: its effective release would be {after}, not {to}"
        )),
        _ => None,
    }
}

/// Returns the user who made the newest change of a ReleasePin, as the end of a sentence: ` by ana`. Empty if the
/// server recorded no user.
fn by(pin: &Pin) -> String {
    let by = pin.changed_by.as_deref();
    by.map(|by| format!(" by {by}")).unwrap_or_default()
}

fn release_changed(world: &World, key: &Key, uid: &str) -> String {
    let name = &key.name;
    let Some(release) = world.release(key) else {
        return format!("release {name} was deleted");
    };
    if *release.uid != *uid {
        return format!(
            "release {name} was deleted, and another one was made at {}",
            release.created
        );
    }
    if release.deleting {
        return format!("release {name} is being deleted");
    }
    match &release.marked {
        Some(mark) => {
            let note = mark.note.as_ref().map(|note| format!(" ({note})"));
            format!(
                "release {name} was marked bad by {} at {}{}",
                mark.by,
                mark.at.0,
                note.unwrap_or_default()
            )
        }
        None => format!("release {name} was marked bad"),
    }
}

fn environment(world: &World, key: &Key, planned: &EnvironmentSpec) -> String {
    let Some(environment) = world.environment(key) else {
        return format!("environment {} was deleted", key.name);
    };
    let fields = |spec: &EnvironmentSpec| match serde_json::to_value(spec) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let (then, now) = (fields(planned), fields(&environment.spec));
    let names: BTreeSet<&String> = then.keys().chain(now.keys()).collect();
    let changes: Vec<String> = names
        .into_iter()
        .filter(|name| then.get(*name) != now.get(*name))
        .map(|name| {
            let word = |value: Option<&Value>| value.map_or("unset".into(), Value::to_string);
            let (then, now) = (word(then.get(name)), word(now.get(name)));
            format!("{name} is {now}, was {then}")
        })
        .collect();
    let with = with_tool(&environment.metadata);
    format!(
        "environment {} changed{with}: {}",
        key.name,
        changes.join(", ")
    )
}

fn pipeline(world: &World, namespace: &str) -> String {
    if let Some(fault) = world.pipeline_fault(namespace) {
        return fault.to_string();
    }
    let Some(pipeline) = world.pipeline_object(namespace) else {
        return "its DeploymentPipeline was deleted".to_owned();
    };
    let edges = pipeline.spec.promotion_paths.iter().flat_map(|path| {
        let from = &path.source_environment_ref.name;
        let targets = path.target_environment_refs.iter();
        targets.map(move |to| format!("{from} to {}", to.name))
    });
    let edges: Vec<String> = edges.collect();
    let with = with_tool(&pipeline.metadata);
    match edges.is_empty() {
        true => format!("its DeploymentPipeline has no paths; it changed{with}"),
        false => {
            let edges = edges.join(", ");
            format!("its DeploymentPipeline has the paths {edges}; it changed{with}")
        }
    }
}

/// Returns the tool that wrote the spec of an object last, and the time, as the end of a sentence. It names a tool,
/// because the server records users only for ReleasePins.
fn with_tool(metadata: &ObjectMeta) -> String {
    let managers = metadata.managed_fields.iter().flatten();
    let of_spec = managers.filter(|manager| {
        let fields = manager.fields_v1.as_ref();
        fields.is_some_and(|fields| fields.0.get("f:spec").is_some())
    });
    let last = of_spec.max_by_key(|manager| manager.time.clone());
    let Some(last) = last else {
        return String::new();
    };
    let tool = last.manager.as_deref().unwrap_or("an unnamed tool");
    let at = last.time.as_ref().map(|time| format!(" at {}", time.0));
    format!(" with {}{}", text::line(tool), at.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use kube::api::PartialObjectMeta;
    use serde_json::json;

    use std::sync::Arc;

    use super::*;
    use crate::api::Release;
    use crate::engine::world::Event;
    use crate::fixture::{self, now, outcomes, pipeline, release, stored, unready};
    use crate::subjects::release_pin::actions::promote::{self, Promote};
    use crate::subjects::release_pin::actions::{mark, rollback};

    fn asked() -> Asked {
        Asked {
            operation: "one".to_owned(),
            now: now(),
            user: "ana".to_owned(),
            reason: None,
            namespace: "shop".to_owned(),
        }
    }

    fn shop() -> World {
        let mut world = fixture::world();
        for version in ["v1", "v2"] {
            world.releases(Event::Applied(release("cart", version, 1)));
        }
        world.pins(Event::Applied(fixture::pin("cart", "development", "v2")));
        world.pins(Event::Applied(fixture::pin("cart", "staging", "v1")));
        world
    }

    fn marked_bad(version: &str) -> PartialObjectMeta<Release> {
        let mut release = release("cart", version, 1);
        let mark = json!({"verdict": "bad", "by": "tom", "at": now(), "note": "leaks"});
        let annotations = release.metadata.annotations.get_or_insert_default();
        annotations.insert("bowline.dev/mark".to_owned(), mark.to_string());
        release
    }

    fn promotion(world: &World) -> Plan {
        let command = Promote {
            components: vec!["cart".to_owned()],
            from: "development".to_owned(),
            to: "staging".to_owned(),
            unready: false,
            skip_path: false,
        };
        promote::plan(world, &command, &asked()).unwrap()
    }

    /// Returns a ReleasePin that another user has changed.
    fn moved(environment: &str, version: &str, by: &str) -> crate::api::ReleasePin {
        let mut pin = fixture::pin("cart", environment, version);
        pin.metadata.generation = Some(2);
        let annotations = pin.metadata.annotations.get_or_insert_default();
        annotations.insert("bowline.dev/changed-by".to_owned(), by.to_owned());
        pin
    }

    type Change = fn(&mut World);

    #[test]
    fn every_fact_that_changes_is_named_with_the_user_who_changed_it() {
        let changes: &[(&str, Change, &[&str])] = &[
            ("nothing", |_| {}, &[]),
            (
                "another component",
                |world| world.pins(Event::Applied(fixture::pin("ledger", "staging", "v9"))),
                &[],
            ),
            (
                "the status of the target",
                |world| {
                    let pin = fixture::pin("cart", "staging", "v1");
                    let pin = unready(pin, "Degraded", "1 of 2 ready", "13:59:00");
                    world.pins(Event::Applied(pin));
                },
                &[],
            ),
            (
                "the target",
                |world| world.pins(Event::Applied(moved("staging", "v9", "tom"))),
                &["tom changed cart-staging to cart-v9: revision 2, planned from revision 1"],
            ),
            (
                "the holds of the target",
                |world| world.pins(Event::Applied(moved("staging", "v1", "mei"))),
                &[
                    "mei changed the holds or the releaseRef of cart-staging: revision 2, planned from revision 1",
                ],
            ),
            (
                "the target is deleted",
                |world| world.pins(Event::Deleted(fixture::pin("cart", "staging", "v1"))),
                &["cart-staging was deleted"],
            ),
            (
                "the source",
                |world| world.pins(Event::Applied(moved("development", "v1", "tom"))),
                &["cart-development runs cart-v1 now, not cart-v2; last changed by tom"],
            ),
            (
                "the source fails",
                |world| {
                    let pin = fixture::pin("cart", "development", "v2");
                    let pin = unready(pin, "Degraded", "0 of 2 ready", "13:59:00");
                    world.pins(Event::Applied(pin));
                },
                &[
                    "cart-development is no longer ready: 0 of 2 ready (Degraded) since 2026-11-17T13:59:00Z",
                ],
            ),
            (
                "the owner of the target",
                |world| {
                    let mut pin = fixture::pin("cart", "staging", "v1");
                    let tracked = "argocd.argoproj.io/tracking-id";
                    let annotations = pin.metadata.annotations.get_or_insert_default();
                    let id = "shop:openchoreo.dev/ReleasePin:shop/cart-staging";
                    annotations.insert(tracked.to_owned(), id.to_owned());
                    world.pins(Event::Applied(pin));
                },
                &["Argo CD owns cart-staging now; no tool owned it when this was planned"],
            ),
            (
                "the release",
                |world| world.releases(Event::Applied(marked_bad("v2"))),
                &["release cart-v2 was marked bad by tom at 2026-11-17T14:00:00Z (leaks)"],
            ),
            (
                "the path",
                |world| {
                    world.pipelines(Event::Applied(stored(pipeline(&[(
                        "staging",
                        "production",
                    )]))))
                },
                &[
                    "the pipeline no longer has a path from development to staging: its DeploymentPipeline has the paths staging to production; it changed",
                ],
            ),
            (
                "the environment",
                |world| {
                    let edited = json!({
                        "metadata": {"managedFields": [
                            {"manager": "kubectl-edit", "time": "2026-11-17T13:59:00Z", "fieldsV1": {"f:spec": {}}},
                        ]},
                        "spec": {"isProduction": true},
                    });
                    let environment = stored(fixture::environment("staging"));
                    world.environments(Event::Applied(fixture::with(environment, edited)));
                },
                &[
                    "environment staging changed with kubectl-edit at 2026-11-17T13:59:00Z: isProduction is true, was false",
                ],
            ),
        ];
        for (what, change, expected) in changes {
            let mut world = shop();
            let plan = promotion(&world);
            change(&mut world);
            assert_eq!(of_plan(&world, &plan, None, now()), *expected, "{what}");
        }
    }

    #[test]
    fn a_hold_that_ends_is_a_change() {
        let mut world = shop();
        let pin = outcomes(
            fixture::pin("cart", "production", "v2"),
            json!([
                {"generation": 1, "release": "cart-v1", "since": "2026-11-17T10:00:00Z", "until": "2026-11-17T11:00:00Z", "healthy": true},
                {"generation": 2, "release": "cart-v2", "since": "2026-11-17T11:00:00Z", "healthy": true},
            ]),
        );
        let pin = fixture::held(
            pin,
            json!([{"id": "x", "owner": "mei", "since": "2026-11-17T11:00:00Z", "until": "2026-11-17T14:05:00Z", "release": "cart-v9"}]),
        );
        world.releases(Event::Applied(release("cart", "v9", 3)));
        world.pins(Event::Applied(pin));
        let command = rollback::Rollback {
            component: "cart".to_owned(),
            environment: "production".to_owned(),
            to: rollback::Target::Release("cart-v1".to_owned()),
            hold: true,
            recorded: Vec::new(),
            controller: crate::engine::controller_status::ControllerStatus::Runs,
        };
        let plan = rollback::plan(&world, &command, &asked()).unwrap();
        assert_eq!(of_plan(&world, &plan, None, now()), Vec::<String>::new());
        assert_eq!(
            of_plan(&world, &plan, None, fixture::at("14:06:00")),
            [
                "a hold on cart-production ended: its effective release is cart-v2, no longer cart-v9"
            ]
        );
    }

    #[test]
    fn a_hold_that_the_plan_writes_and_that_ends_is_a_change() {
        let world = shop();
        let mut plan = promotion(&world);
        let hold = json!([{"id": "x", "owner": "ana", "since": "2026-11-17T11:00:00Z", "until": "2026-11-17T14:05:00Z", "release": "cart-v2"}]);
        for change in &mut plan.changes {
            let written = |fact: &PinFact| -> Arc<dyn Fact> {
                let mut fact = fact.clone();
                if let PinFact::Effective {
                    holds, release_ref, ..
                } = &mut fact
                {
                    *holds = serde_json::from_value(hold.clone()).unwrap();
                    *release_ref = "cart-v1".to_owned();
                }
                Arc::new(fact)
            };
            change.facts = facts::of(change).map(written).collect();
        }
        assert_eq!(of_plan(&world, &plan, None, now()), Vec::<String>::new());
        assert_eq!(
            of_plan(&world, &plan, None, fixture::at("14:06:00")),
            ["a hold on cart-staging ended: its effective release would be cart-v1, not cart-v2"]
        );
    }

    #[test]
    fn an_idle_plan_follows_the_releases_on_both_sides() {
        let mut world = shop();
        world.pins(Event::Applied(fixture::pin("cart", "staging", "v2")));
        let plan = promotion(&world);
        assert!(plan.changes.iter().all(|change| change.unchanged));
        world.releases(Event::Applied(marked_bad("v2")));
        assert_eq!(of_plan(&world, &plan, None, now()), Vec::<String>::new());
        world.pins(Event::Applied(moved("staging", "v1", "tom")));
        assert_eq!(
            of_plan(&world, &plan, None, now()),
            ["tom changed cart-staging to cart-v1: revision 2, planned from revision 1"]
        );
    }

    #[test]
    fn a_second_pipeline_is_a_change_of_a_plan_that_skips_the_path() {
        let mut world = shop();
        let command = Promote {
            components: vec!["cart".to_owned()],
            from: "development".to_owned(),
            to: "staging".to_owned(),
            unready: false,
            skip_path: true,
        };
        let plan = promote::plan(&world, &command, &asked()).unwrap();
        assert_eq!(of_plan(&world, &plan, None, now()), Vec::<String>::new());
        let mut other = stored(pipeline(&[]));
        other.metadata.name = Some("other".to_owned());
        world.pipelines(Event::Applied(other));
        let stale = of_plan(&world, &plan, None, now());
        assert!(
            stale
                .iter()
                .any(|what| what.contains("2 DeploymentPipelines (default, other)")),
            "{stale:?}"
        );
    }

    #[test]
    fn a_release_that_the_plan_creates_need_not_be_there() {
        let mut world = shop();
        let plan = promotion(&world);
        world.releases(Event::Deleted(release("cart", "v2", 1)));
        assert_eq!(
            of_plan(&world, &plan, None, now()),
            ["release cart-v2 was deleted"]
        );
        assert!(of_plan(&world, &plan, Some("cart-v2"), now()).is_empty());
    }

    #[test]
    fn marks_and_collections_follow_too() {
        let mut world = shop();
        let command = mark::Mark {
            release: "cart-v2".to_owned(),
            verdict: Verdict::Good,
        };
        let marking = mark::plan(&world, &command, &asked()).unwrap();
        let gc = Gc {
            keep: Some(0),
            min_age: Some(std::time::Duration::ZERO),
            ..Gc::default()
        };
        world.releases(Event::Applied(release("cart", "v0", 0)));
        let collection = gc::plan(&world, &gc, &asked()).unwrap();
        assert_eq!(collection.going().count(), 1);
        assert_eq!(of_marking(&world, &marking), None);
        assert!(of_collection(&world, &gc, &collection, now()).is_empty());
        world.releases(Event::Applied(marked_bad("v2")));
        world.pins(Event::Applied(moved("staging", "v0", "tom")));
        assert_eq!(
            of_marking(&world, &marking).unwrap(),
            "release cart-v2 was marked bad by tom at 2026-11-17T14:00:00Z"
        );
        let stale = of_collection(&world, &gc, &collection, now());
        assert!(
            stale
                .iter()
                .any(|what| what
                    .starts_with("cart-v0 stays now: named by the ReleasePin in staging")),
            "{stale:?}"
        );
    }
}
