//! Cases that compare data and functions of kube-embedded with a real server. They send requests only to the
//! real server. They are about the table of built-in kinds, their default values and decode errors, the
//! validation of custom resources, and the owners of fields.

use kube::Client;

use crate::{Case, Outcome, builtin, on_the_cluster, ownership, schemas, target::Target};

pub fn cases() -> Vec<Case> {
    vec![
        on_the_cluster(built_in_kinds_are_the_servers),
        on_the_cluster(defaults_are_the_servers),
        on_the_cluster(decode_errors_are_the_servers),
        on_the_cluster(bad_custom_resources_are_refused_alike),
        on_the_cluster(random_writes_leave_the_same_owners),
    ]
}

async fn built_in_kinds_are_the_servers(t: Target) -> Outcome {
    Ok(builtin::check(&t.client).await?)
}

async fn defaults_are_the_servers(t: Target) -> Outcome {
    Ok(builtin::defaults::check(&t.client).await?)
}

async fn decode_errors_are_the_servers(t: Target) -> Outcome {
    Ok(builtin::decode::check(&t.client).await?)
}

async fn bad_custom_resources_are_refused_alike(t: Target) -> Outcome {
    Ok(schemas::check(&t.client).await?)
}

/// Random writes leave the same field owners on both sides. `BOWLINE_FULL=1` uses ten random seeds instead of
/// one.
async fn random_writes_leave_the_same_owners(t: Target) -> Outcome {
    let seeds = if std::env::var_os("BOWLINE_FULL").is_some() {
        10
    } else {
        1
    };
    for seed in 1..=seeds {
        owners(&t.client, seed).await?;
    }
    Ok(())
}

async fn owners(client: &Client, seed: u64) -> Result<(), String> {
    ownership::check(client, seed, 100)
        .await
        .map_err(|why| format!("seed {seed}: {why}"))
}
