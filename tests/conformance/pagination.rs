//! Cases about list requests that are answered in pages.

use serde_json::{Value, json};

use crate::{
    Case, Outcome, alone, case,
    target::{Target, names, same, text},
};

pub fn cases() -> Vec<Case> {
    vec![
        case(pages_say_what_remains),
        case(pages_are_of_one_version),
        case(pages_by_labels_do_not_say_what_remains),
        case(pages_of_custom_objects),
        case(a_limit_that_is_not_reached),
        case(a_token_that_nobody_made),
        case(a_token_with_a_version),
        case(a_negative_limit),
        alone(a_token_that_is_too_old),
    ]
}

async fn filled(t: &Target, count: usize) {
    for number in 0..count {
        t.configmap(&format!("c{number}")).await;
    }
}

async fn page(t: &Target, query: &str, token: &str) -> Value {
    t.get(&format!("{}?{query}&continue={token}", t.configmaps("")))
        .await
        .ok()
}

async fn pages_say_what_remains(t: Target) -> Outcome {
    filled(&t, 5).await;
    let first = page(&t, "limit=2", "").await;
    same("first", &json!(names(&first)), json!(["c0", "c1"]));
    same(
        "remaining",
        &first["metadata"]["remainingItemCount"],
        json!(3),
    );
    let second = page(&t, "limit=2", &text(&first, "/metadata/continue")).await;
    same("second", &json!(names(&second)), json!(["c2", "c3"]));
    same(
        "remaining",
        &second["metadata"]["remainingItemCount"],
        json!(1),
    );
    let third = page(&t, "limit=2", &text(&second, "/metadata/continue")).await;
    same("third", &json!(names(&third)), json!(["c4"]));
    same(
        "remaining",
        &third["metadata"]["remainingItemCount"],
        json!(null),
    );
    same("continue", &third["metadata"]["continue"], json!(null));
    Ok(())
}

async fn pages_are_of_one_version(t: Target) -> Outcome {
    filled(&t, 4).await;
    let first = page(&t, "limit=2", "").await;
    t.configmap("c20").await;
    t.configmap("d").await;
    t.delete(&t.configmaps("/c3")).await.ok();
    let second = page(&t, "limit=10", &text(&first, "/metadata/continue")).await;
    same("second", &json!(names(&second)), json!(["c2", "c3"]));
    same(
        "version",
        &second["metadata"]["resourceVersion"],
        first["metadata"]["resourceVersion"].clone(),
    );
    let now = page(&t, "limit=10", "").await;
    same(
        "now",
        &json!(names(&now)),
        json!(["c0", "c1", "c2", "c20", "d"]),
    );
    Ok(())
}

async fn pages_by_labels_do_not_say_what_remains(t: Target) -> Outcome {
    for number in 0..6 {
        t.post(
            &t.configmaps(""),
            &json!({"metadata": {"name": format!("c{number}"), "labels": {"even": (number % 2 == 0).to_string()}}}),
        )
        .await
        .created();
    }
    let query = "limit=2&labelSelector=even%3Dtrue";
    let first = page(&t, query, "").await;
    same("first", &json!(names(&first)), json!(["c0", "c2"]));
    same(
        "remaining",
        &first["metadata"]["remainingItemCount"],
        json!(null),
    );
    let second = page(&t, query, &text(&first, "/metadata/continue")).await;
    same("second", &json!(names(&second)), json!(["c4"]));
    Ok(())
}

async fn pages_of_custom_objects(t: Target) -> Outcome {
    for name in ["a", "b", "c"] {
        t.widget(name, json!({})).await;
    }
    let first = t.get(&format!("{}?limit=2", t.widgets(""))).await.ok();
    same("first", &json!(names(&first)), json!(["a", "b"]));
    let token = text(&first, "/metadata/continue");
    let second = t
        .get(&format!("{}?limit=2&continue={token}", t.widgets("")))
        .await
        .ok();
    same("second", &json!(names(&second)), json!(["c"]));
    Ok(())
}

async fn a_limit_that_is_not_reached(t: Target) -> Outcome {
    filled(&t, 2).await;
    for limit in ["limit=2", "limit=3", "limit=0"] {
        let only = page(&t, limit, "").await;
        same("names", &json!(names(&only)), json!(["c0", "c1"]));
        same("continue", &only["metadata"]["continue"], json!(null));
        same(
            "remaining",
            &only["metadata"]["remainingItemCount"],
            json!(null),
        );
    }
    Ok(())
}

async fn a_token_that_nobody_made(t: Target) -> Outcome {
    let path = format!("{}?limit=1&continue=abc", t.configmaps(""));
    t.get(&path).await.refused(400, "BadRequest", "invalid continue token: continue key is not valid: invalid character 'i' looking for beginning of value");
    Ok(())
}

async fn a_token_with_a_version(t: Target) -> Outcome {
    filled(&t, 2).await;
    let first = page(&t, "limit=1", "").await;
    let path = format!(
        "{}?limit=1&resourceVersion=5&continue={}",
        t.configmaps(""),
        text(&first, "/metadata/continue")
    );
    t.get(&path).await.refused(
        400,
        "BadRequest",
        "specifying resource version is not allowed when using continue",
    );
    Ok(())
}

async fn a_negative_limit(t: Target) -> Outcome {
    filled(&t, 1).await;
    let path = format!("{}?limit=-1", t.configmaps(""));
    let answer = t.get(&path).await;
    same("code", &json!(answer.code), json!(200));
    Ok(())
}

async fn a_token_that_is_too_old(t: Target) -> Outcome {
    let path = t.core("serviceaccounts");
    let account = |name: &str| json!({"metadata": {"name": name}});
    for name in ["a", "b", "c", "d"] {
        t.post(&path, &account(name)).await.created();
    }
    let first = t.get(&format!("{path}?limit=2")).await.ok();
    same("first", &json!(names(&first)), json!(["a", "b"]));
    t.post(&path, &account("e")).await.created();
    t.delete(&format!("{path}/c")).await.ok();
    t.compact().await;
    let token = text(&first, "/metadata/continue");
    let answer = t.get(&format!("{path}?limit=2&continue={token}")).await;
    let token = text(&answer.body, "/metadata/continue");
    answer.refused(410, "Expired", "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.");
    // The new token continues at the same position in the newest state.
    let rest = t
        .get(&format!("{path}?limit=9&continue={token}"))
        .await
        .ok();
    same("rest", &json!(names(&rest)), json!(["d", "e"]));
    Ok(())
}
