//! Tests of the contexts screen.

use super::{copied, still};
use crate::effect::{Answer, Destination, Effect};
use crate::snapshot_test::{SnapshotTest, known};

fn contexts() -> SnapshotTest {
    let mut still = still();
    let mut audited = known("audit");
    audited.readonly = true;
    let mut us = known("prod-us");
    us.protected = true;
    still.model.target_info.contexts = vec![audited, known("prod-eu"), us, known("staging")];
    still.keys("g x").answer(|effect| {
        assert!(matches!(effect, Effect::Namespaces(_)));
        Answer::Namespaces(Ok(vec!["pay".into(), "shop".into()]))
    })
}

#[test]
fn contexts_say_where_writes_pass_and_lead_there() {
    contexts()
        .shows("read-only")
        .shows("protected")
        .golden("contexts");
    let going = contexts().keys("j j j enter");
    let wanted = Destination {
        context: Some("prod-us".into()),
        namespace: None,
    };
    assert!(matches!(going.effects.last(), Some(Effect::Connect(_, to)) if *to == wanted));
    // Enter on the current context does not connect again.
    let here = contexts().keys("enter");
    assert!(
        !here
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::Connect(..)))
    );
    contexts().keys("/").keys("\"read-only\"").hides("prod-us");
}

#[test]
fn the_namespaces_of_the_context_lead_there() {
    let there = contexts().shows("4 contexts  2 namespaces").keys("j enter");
    let wanted = Destination {
        context: None,
        namespace: Some("pay".into()),
    };
    assert!(matches!(there.effects.last(), Some(Effect::Connect(_, to)) if *to == wanted));
    for (keys, expected) in [
        (
            "Y",
            "--context prod-eu --kubeconfig /home/ana/.kube/config --namespace shop",
        ),
        (
            "j Y",
            "--context prod-eu --kubeconfig /home/ana/.kube/config --namespace pay",
        ),
        (
            "j j j Y",
            "--context prod-us --kubeconfig /home/ana/.kube/config --namespace shop",
        ),
    ] {
        let expected = format!("bowline {expected}");
        assert_eq!(copied(&contexts().keys(keys)), Some(&*expected));
    }
    let denied = "nobody may list namespaces";
    still()
        .keys("g x")
        .answer(|_| Answer::Namespaces(Err(denied.into())))
        .shows(denied)
        .shows("prod-us");
}
