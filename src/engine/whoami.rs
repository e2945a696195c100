//! Our user name and the time, according to the server.
//!
//! Claims, holds and collections use the server's clock: the clocks of two machines may differ by more
//! than the duration of a claim.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::Client;
use kube::api::{Api, PostParams};

use super::repeat::repeat;

/// Returns the current time by the server's clock. A plan may be applied long after it was made.
pub type Clock<'a> = &'a (dyn Fn() -> Timestamp + Send + Sync);

/// The smallest clock difference that matters. A smaller one comes only from network delay and the
/// server's whole seconds.
const NOTICED: SignedDuration = SignedDuration::from_secs(5);

/// Our user name and clock difference, according to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whoami {
    /// Our user name.
    pub user: String,
    /// How far the server's clock is ahead of ours; zero if the difference is too small to matter.
    pub ahead: SignedDuration,
}

/// Asks the server for our user name and its time; `clock` returns our time.
pub async fn ask(client: &Client, clock: Clock<'_>) -> Result<Whoami, kube::Error> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let (params, question) = (PostParams::default(), SelfSubjectReview::default());
    // A login may delay the first attempts, so take the time after the attempt that was answered.
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
