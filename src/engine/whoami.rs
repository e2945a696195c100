//! Who the server takes us for, and what time it has.
//!
//! What is claimed, held and collected is judged by the server's clock: those of two machines may
//! disagree by more than a claim lasts.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::Client;
use kube::api::{Api, PostParams};

use super::repeat::repeat;

/// What time it is, by the server's clock: a plan may have been looked at for long before it is applied.
pub type Clock<'a> = &'a (dyn Fn() -> Timestamp + Send + Sync);

/// A difference below this is the way to the server and back, and the server's whole seconds.
const NOTICED: SignedDuration = SignedDuration::from_secs(5);

/// What the server says of us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whoami {
    /// The user that it takes us for.
    pub user: String,
    /// How far its clock is ahead of ours; zero where nobody would notice.
    pub ahead: SignedDuration,
}

/// Asks the server; `clock` is ours.
pub async fn ask(client: &Client, clock: Clock<'_>) -> Result<Whoami, kube::Error> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let (params, question) = (PostParams::default(), SelfSubjectReview::default());
    // Before the first answer there may be a login; the time is that of the question that was answered.
    let (review, asked) = repeat(|| async {
        let review = reviews.create(&params, &question).await?;
        Ok((review, clock()))
    })
    .await?;
    let user = review.status.and_then(|status| status.user_info);
    let there = review.metadata.creation_timestamp;
    Ok(Whoami {
        user: user.and_then(|user| user.username).unwrap_or_default(),
        ahead: there.map_or(SignedDuration::ZERO, |there| ahead(there.0, asked)),
    })
}

fn ahead(there: Timestamp, here: Timestamp) -> SignedDuration {
    let ahead = there.duration_since(here);
    match ahead.abs() < NOTICED {
        true => SignedDuration::ZERO,
        false => ahead,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_differences_are_none() {
        for (there, expected) in [
            ("2026-01-06T12:00:00Z", 0),
            ("2026-01-06T12:00:04Z", 0),
            ("2026-01-06T11:59:57Z", 0),
            ("2026-01-06T12:00:05Z", 5),
            ("2026-01-06T11:00:00Z", -3_600),
        ] {
            let here = "2026-01-06T12:00:00Z".parse().unwrap();
            let found = ahead(there.parse().unwrap(), here);
            assert_eq!(found.as_secs(), expected, "{there}");
        }
    }
}
